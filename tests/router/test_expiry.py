"""The sweeper's job: it continues after failures, and counts what it removed."""

import asyncio
from types import SimpleNamespace
from typing import Any

from weir.redis.errors import Unavailable
from weir.router.expiry import Sweeper
from weir.router.stats import Stats
from weir.router.store.records import Swept
from weir.runtime.supervisor import Supervisor


class Slices:
    """Answers of the store, one after the other; the cursors it was asked for."""

    def __init__(self, *answers: Swept | Exception | None) -> None:
        self._answers = list(answers)
        self.cursors: list[int] = []
        self.done = asyncio.Event()

    async def sweep_slice(self, cursor: int) -> Swept | None:
        self.cursors.append(cursor)
        if not self._answers:
            self.done.set()
            return None
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_slices_follow_each_other() -> None:
    slices = Slices(
        Swept(7, 2, 1, 0),
        Unavailable("away"),
        None,  # another edge has the lock
        RuntimeError("a mistake"),
        Swept(0, 3, 0, 1),
    )
    stats = Stats()
    router: Any = SimpleNamespace(store=SimpleNamespace(sweeper=slices), stats=stats)
    supervisor = Supervisor()
    supervisor.every("the sweeper", 0.001, Sweeper(router).sweep)
    async with asyncio.timeout(5):
        await slices.done.wait()
    await supervisor.close()
    assert slices.cursors[:6] == [0, 7, 7, 7, 7, 0]
    assert (stats.msgExpired, stats.msgNtfExpired, stats.qDeletedAll) == (5, 1, 1)
