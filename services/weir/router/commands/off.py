"""OFF: the queue takes no more messages."""

from __future__ import annotations

from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.store.records import QueueRecord
from weir.wire.smp.commands import OFF


@handles(OFF)
class OffHandler(RareQueueHandler):
    __slots__ = ()

    refuses_blocked = False

    async def work(self, record: QueueRecord) -> None:
        shared = self.session.shared
        if await self.succeeded(shared.store.queues.suspend(record)):
            shared.forget(record)
            self.answer(OK)
