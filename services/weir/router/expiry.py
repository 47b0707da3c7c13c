"""The sweeper expires messages, notifications and unused queues that no command meets.

Every edge sweeps periodically. A lock in Redis lets one edge at a time work, in slices short enough that Redis serves
others in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.router.router import Shared


class Sweeper:
    def __init__(self, router: Shared) -> None:
        self._router = router
        self._cursor = 0

    async def sweep(self) -> None:
        """Expire one slice, and count what was removed."""
        swept = await self._router.store.sweeper.sweep_slice(self._cursor)
        if swept is None:
            return  # another edge has the lock
        self._cursor = swept.cursor
        stats = self._router.stats
        stats.msgExpired += swept.messages
        stats.msgNtfExpired += swept.notifications
        stats.qDeletedAll += swept.queues
