"""NDEL: a queue's notifier is deleted, with its notifications."""

from __future__ import annotations

from weir.redis.errors import Unavailable
from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.delivery.deleted import report_if_deleted
from weir.router.store.records import QueueRecord, Status
from weir.wire.errors import Simple
from weir.wire.smp.commands import NDEL


@handles(NDEL)
class NdelHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        session, shared = self.session, self.session.shared
        had_notifier = record.ntf_id is not None
        shared.forget(record)
        try:
            status = (await shared.store.notifications.delete_notifier(record, session.id)).status
        except Unavailable:
            self.fail(Simple.INTERNAL)
            session.spawn(report_if_deleted(session, record))
            return
        if status is Status.OK:
            shared.stats.ntfDeleted += had_notifier
            self.answer(OK)
        else:
            self.not_ok(status)
