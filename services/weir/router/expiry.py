"""The sweeper expires messages, notifications and unused queues that no command meets.

Every edge sweeps periodically. A lock in Redis lets one edge at a time work, in slices short enough that Redis serves
others in between.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.router.router import Shared

_log = logging.getLogger(__name__)


class Sweeper:
    def __init__(self, router: Shared) -> None:
        self._router = router
        self._cursor = 0
        self._damaged = 0  # queues of this round

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
        stats.qDamaged += swept.damaged
        self._damaged += swept.damaged
        if swept.cursor == 0:
            if self._damaged:
                _log.error("the sweeper left out %d queues whose keys are damaged", self._damaged)
            self._damaged = 0
