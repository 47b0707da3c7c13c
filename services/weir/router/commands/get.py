"""GET: the queue's first message as the answer, without a subscription."""

from __future__ import annotations

from functools import partial
from time import time

from weir.redis.errors import Unavailable
from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.session.subscriptions import Sub
from weir.router.store.records import Entry, QueueRecord, Status
from weir.runtime.state.calls import awaited
from weir.wire.encoding import short
from weir.wire.errors import CommandError, Simple
from weir.wire.smp.commands import GET


@handles(GET)
class GetHandler(RareQueueHandler):
    __slots__ = ()

    auth_stat = "msgGetAuth"

    async def work(self, record: QueueRecord) -> None:
        shared, subscriptions = self.session.shared, self.session.subscriptions
        queues = subscriptions.queues
        stats = shared.stats
        rcv_id = record.rcv_id
        sub = queues.get(rcv_id)
        if sub is not None and not sub.prohibit:
            stats.msgGetProhibited += 1
            self.fail(CommandError.PROHIBITED)
            return
        if sub is None:
            sub = queues[rcv_id] = Sub(0, prohibit=True)  # at once, to prohibit a SUB of the same block
            subscriptions.read_queues.add(rcv_id)
        now = int(time())
        try:
            entry = await shared.store.messages.peek(record, shared.expire_before(now))
            body = None if entry is None or isinstance(entry, Status) else await self._body(entry)
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if isinstance(entry, Status):
            if entry is Status.GONE and queues.get(rcv_id) is sub:  # else a DEL or GET of the same block removed it
                del queues[rcv_id]
            self.not_ok(entry)
            return
        if entry is None or body is None:
            sub.msg_id = None
            stats.msgGetNoMsg += 1
            self.answer(OK)
            return
        if sub.msg_id is None:
            stats.msgGet += 1
        else:
            stats.msgGetDuplicate += 1
        sub.msg_id, sub.last, sub.sent = entry.msg_id, None, time()
        subscriptions.unacknowledged[rcv_id] = sub
        self.answer(b"MSG " + short(entry.msg_id) + body)

    async def _body(self, entry: Entry) -> bytes | None:
        return await awaited(partial(self.session.shared.bodies.fetch, self.t.entity_id, entry))
