"""LSET: the data behind a queue's short link are set."""

from __future__ import annotations

from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.commands.verification import is_secured_messaging
from weir.router.store.records import QueueRecord
from weir.wire.errors import Simple
from weir.wire.smp.commands import LSET


@handles(LSET)
class LsetHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        command, shared = self.t.command, self.session.shared
        assert isinstance(command, LSET)
        if is_secured_messaging(record) or record.link_id not in (None, command.link_id):
            self.fail(Simple.AUTH)  # a link id never changes
        elif await self.succeeded(shared.store.links.set_link(record, command.link_id, command.data)):
            shared.forget(record)
            self.answer(OK)
