"""LDEL: a queue's short link and its data are deleted."""

from __future__ import annotations

from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.store.records import QueueRecord
from weir.wire.smp.commands import LDEL


@handles(LDEL)
class LdelHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        shared = self.session.shared
        if await self.succeeded(shared.store.links.delete_link(record)):
            shared.forget(record)
            self.answer(OK)
