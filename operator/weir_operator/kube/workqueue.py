"""A queue of keys for the workers of an operator.

One worker at a time works on a key. Requests for a key that is queued already are merged with it. A request that comes
while a worker is busy with the key starts the work once more afterwards. Work that fails is repeated after a pause that
doubles with each failure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_log = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """`work(key)` returns the seconds after which it wants to be called again, or None."""

    def __init__(
        self,
        work: Callable[[K], Awaitable[float | None]],
        *,
        workers: int,
        first_retry: float = 0.5,
        last_retry: float = 60.0,
    ) -> None:
        self._work = work
        self._workers = workers
        self._first, self._last = first_retry, last_retry
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._queued: set[K] = set()
        self._running: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    def add(self, key: K, delay: float = 0.0) -> None:
        """Ask for work on a key. Of several requests the earliest counts."""
        if delay > 0:
            self._add_later(key, delay)
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._running:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)

    def _add_later(self, key: K, delay: float) -> None:
        loop = asyncio.get_running_loop()
        if key in self._queued:
            return
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + delay:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(delay, self._due, key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    @property
    def depth(self) -> int:
        return len(self._queued)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            key = await self._ready.get()
            self._queued.discard(key)
            self._running.add(key)
            delay: float | None = None
            try:
                delay = await self._work(key)
                self._failures.pop(key, None)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                delay = min(self._first * 2 ** (failures - 1), self._last)
                _log.warning("%s: %s; retrying in %.1f s", key, error, delay, exc_info=not _expected(error))
            finally:
                self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key, delay if key in self._failures and delay else 0.0)
            elif delay is not None:
                self.add(key, delay)


def _expected(error: Exception) -> bool:
    """Whether the message of an error is enough. Errors of the API server and of the network need no traceback."""
    return isinstance(error, OSError) or getattr(error, "status", None) is not None
