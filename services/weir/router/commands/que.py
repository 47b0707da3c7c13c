"""QUE: what the router knows about a queue, for the recipient's debugging."""

from __future__ import annotations

import base64
from time import time

from weir.redis.errors import Unavailable
from weir.router.commands.handler import RareQueueHandler, handles
from weir.router.store.records import QueueRecord, Status
from weir.wire.errors import Simple
from weir.wire.smp.commands import QUE
from weir.wire.smp.queue_info import MsgInfo, MsgType, QSub, QueueInfo, SubThread


@handles(QUE)
class QueHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        shared = self.session.shared
        now = int(time())
        try:
            info = await shared.store.messages.info(record, shared.expire_before(now))
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if isinstance(info, Status):
            self.not_ok(info)
            return
        head = info.head
        message = None
        if head is not None:
            message = MsgInfo.of(head.msg_id, head.ts, MsgType.QUOTA if head.quota else MsgType.MESSAGE)
        queue_info = QueueInfo(record.snd_key is not None, record.ntf_id is not None, self._sub(), info.size, message)
        self.answer(b"INFO " + queue_info.to_json())

    def _sub(self) -> QSub | None:
        sub = self.session.subscriptions.queues.get(self.t.entity_id)
        if sub is None:
            return None
        if sub.msg_id is not None and not sub.sent:
            return QSub(SubThread.SUB_PENDING)
        delivered = None if sub.msg_id is None else base64.b64encode(sub.msg_id).decode()
        return QSub(SubThread.PROHIBIT_SUB if sub.prohibit else SubThread.NO_SUB, delivered)
