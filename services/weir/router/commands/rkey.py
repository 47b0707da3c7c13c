"""RKEY: the recipient keys of a contact queue are replaced."""

from __future__ import annotations

from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.store.records import QueueRecord
from weir.wire.errors import Simple
from weir.wire.smp.commands import RKEY, QueueMode


@handles(RKEY)
class RkeyHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        command, shared = self.t.command, self.session.shared
        assert isinstance(command, RKEY)
        if record.mode is not QueueMode.CONTACT:
            self.fail(Simple.AUTH)
        elif await self.succeeded(shared.store.queues.set_rcv_keys(record, command.keys)):
            shared.forget(record)
            self.answer(OK)
