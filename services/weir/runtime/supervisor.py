"""Background jobs that never end in silence.

A job that fails is logged in one line and starts again. Pauses between failures grow from one second to a minute. A
failure of Redis is expected: a periodic job skips the round without a line. The store counts and logs such failures
itself (weir/redis/failures.py), and health, metrics and the page show them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from weir.redis.errors import Unavailable
from weir.telemetry.errors import describe

_log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

Job = Callable[[], Awaitable[None]]


def pause_after(failures: int) -> float:
    """Seconds to wait before a job that has failed this many times in a row starts again."""
    return min(FIRST_PAUSE * 2.0 ** min(failures - 1, 16), LONGEST_PAUSE)


class Supervisor:
    """The background jobs of one edge."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, name: str, job: Job) -> None:
        """Keep a job running that should not end by itself."""
        task = asyncio.get_running_loop().create_task(self._keep_running(name, job), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def every(self, name: str, seconds: float, job: Job, *, at_once: bool = False) -> None:
        """Run a job periodically, the first time after `seconds` or `at_once`."""

        async def rounds() -> None:
            if not at_once:
                await asyncio.sleep(seconds)
            while True:
                try:
                    await job()
                except Unavailable:
                    _log.debug("%s: Redis failed, next round in %g s", name, seconds)
                await asyncio.sleep(seconds)

        self.run(name, rounds)

    async def _keep_running(self, name: str, job: Job) -> None:
        failures = 0
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await job()
            except Exception as error:
                problem = describe(error)
                _log.debug("%s", name, exc_info=True)
            else:
                problem = "it ended"
            ran_for = asyncio.get_running_loop().time() - started
            failures = 1 if ran_for > LONGEST_PAUSE else failures + 1
            pause = pause_after(failures)
            _log.error("%s failed and starts again in %g s (%s)", name, pause, problem)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
