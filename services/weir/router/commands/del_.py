"""DEL: the queue is deleted with its messages. Another owner of the queue gets DELD."""

from __future__ import annotations

from weir.redis.errors import Unavailable
from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.delivery.deleted import report_if_deleted
from weir.router.store.records import QueueRecord, Status
from weir.wire.errors import Simple
from weir.wire.smp.commands import DEL


@handles(DEL)
class DelHandler(RareQueueHandler):
    __slots__ = ()

    refuses_blocked = False

    async def work(self, record: QueueRecord) -> None:
        session, shared = self.session, self.session.shared
        try:
            result = await shared.store.queues.delete(record, session.id)
        except Unavailable:
            self.fail(Simple.INTERNAL)
            session.spawn(report_if_deleted(session, record))
            return
        if result.status is not Status.OK:
            self.not_ok(result.status)
            return
        shared.forget(record)
        session.subscriptions.queues.pop(record.rcv_id, None)
        if record.ntf_id is not None:
            session.subscriptions.notifiers.pop(record.ntf_id, None)
        session.outgoing.forget(record.rcv_id)
        if session.service is not None and record.rcv_service == session.service.service_id:
            session.subscriptions.totals.subtract(record.rcv_id)
        shared.stats.qDeletedAll += 1
        if record.snd_key is None:
            shared.stats.qDeletedNew += 1
        else:
            shared.stats.qDeletedSecured += 1
        self.answer(OK)
