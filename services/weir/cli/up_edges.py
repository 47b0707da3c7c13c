"""The edge processes of `weir up`. An edge reports through a pipe that it is ready, and is restarted when it ends."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from weir.cli.errors import Fail

_START_LIMIT = 20.0
_PAUSE_FIRST, _PAUSE_MOST = 0.5, 10.0
_PR_SET_PDEATHSIG = 1


class EdgeProcess:
    """One edge, whose process may change through restarts."""

    def __init__(self, number: int, config: Path, environment: Mapping[str, str]) -> None:
        self.number = number
        self.pid = 0
        self._config = config
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Return when clients can connect. Raises Fail with the edge's own message if the edge cannot start."""
        read, write = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "weir.cli.main",
                "smp",
                "edge",
                "--config",
                str(self._config),
                "--ready-fd",
                str(write),
                env=self._environment,
                pass_fds=(write,),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the supervisor, which stops the edges in order
                preexec_fn=_die_with_parent,
            )
        finally:
            os.close(write)
        self.pid = self._process.pid
        try:
            report = await asyncio.wait_for(_read_report(read), _START_LIMIT)
        except TimeoutError:
            report = {"error": f"edge {self.number} is not ready after {_START_LIMIT:.0f} s"}
        if "error" in report:
            await self.stop(0)
            raise Fail(str(report["error"]))

    async def watch(self, warn: Callable[[str], None], on_restart: Callable[[], None]) -> None:
        """Restart the edge whenever it ends, until cancelled. The pause between two attempts doubles up to a limit."""
        pause = _PAUSE_FIRST
        while self._process is not None:
            code = await self._process.wait()
            warn(f"edge {self.number} ended with {_describe(code)}; restarting it")
            while True:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_MOST)
                try:
                    await self.start()
                except (Fail, OSError) as failure:  # OSError: no process can be started now
                    warn(f"edge {self.number} does not start: {failure}")
                else:
                    pause = _PAUSE_FIRST
                    on_restart()
                    break

    async def stop(self, grace: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace` seconds."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM if grace else signal.SIGKILL)
        try:
            await asyncio.wait_for(process.wait(), grace or None)
        except TimeoutError:
            process.kill()
            await process.wait()


def _die_with_parent() -> None:
    """Make the kernel end this edge when the supervisor dies, even by kill -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def _read_report(descriptor: int) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        line = await reader.readline()
    finally:
        transport.close()
    if not line:
        return {"error": "the edge ended before it was ready; its output is above"}
    report: dict[str, object] = json.loads(line)
    return report


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
