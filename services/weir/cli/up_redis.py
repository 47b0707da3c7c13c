"""The embedded Redis of `weir up`. Redis is restarted when it ends, until the router stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.errors import Fail, os_error

if TYPE_CHECKING:
    from weir.redis.embedded import Embedded

_CHECK = 0.2  # seconds
_PAUSE_FIRST, _PAUSE_MOST = 0.2, 10.0


class RedisProcess:
    """A server whose process may change through restarts. Its Unix socket stays the same."""

    def __init__(self, directory: Path, unix_socket: Path, durability: str) -> None:
        self._directory = directory
        self._unix_socket = unix_socket
        self._appendfsync = "always" if durability == "fsync" else "everysec"
        self._server: Embedded | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.url

    @property
    def pid(self) -> int | None:
        return None if self._server is None else self._server.pid

    def start(self) -> None:
        """Return when the server answers. Raises Fail with one line."""
        from weir.redis.embedded import start_embedded
        from weir.redis.errors import StoreError
        from weir.redis.memory import default_limit

        try:
            self._server = start_embedded(
                self._directory,
                unix_socket=self._unix_socket,
                appendfsync=self._appendfsync,
                options={"maxmemory": str(default_limit())},
            )
        except StoreError as error:
            raise Fail(str(error)) from None
        except OSError as error:
            raise os_error(error.filename or self._directory, error) from None

    async def watch(self, warn: Callable[[str], None], on_restart: Callable[[], None]) -> None:
        """Restart the server whenever it ends, until cancelled. The pause between attempts doubles up to a limit."""
        assert self._server is not None
        while True:
            await asyncio.sleep(_CHECK)
            if self._server.running:
                continue
            warn(f"Redis ended ({self._server.why_it_ended()}); restarting it")
            pause = _PAUSE_FIRST
            while not self._server.running:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_MOST)
                try:
                    self.start()
                    on_restart()
                except Fail as failure:
                    warn(str(failure))

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
