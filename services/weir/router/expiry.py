"""The sweeper: expires messages, notifications and unused queues that no command comes across.

Every edge runs it; a lock in Redis lets one at a time work, in slices short enough that Redis serves others between.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from weir.store.records import Unavailable

if TYPE_CHECKING:
    from weir.router.router import Router

_log = logging.getLogger(__name__)


class Sweeper:
    def __init__(self, router: Router, interval: float) -> None:
        self._router = router
        self._interval = interval
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        cursor = 0
        while True:
            await asyncio.sleep(self._interval)
            try:
                cursor = await self._slice(cursor)
            except Unavailable:
                continue
            except Exception:
                _log.exception("the sweeper stumbled and goes on")

    async def _slice(self, cursor: int) -> int:
        swept = await self._router.store.sweep_slice(cursor)
        if swept is None:
            return cursor  # another edge has the lock
        stats = self._router.stats
        stats.msgExpired += swept.messages
        stats.msgNtfExpired += swept.notifications
        stats.qDeletedAll += swept.queues
        return swept.cursor
