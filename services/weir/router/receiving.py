"""SUB, ACK, GET and QUE: how a recipient gets its messages."""

from __future__ import annotations

import base64
from functools import partial
from time import time

from weir.router.op import OK, ColdOp, QueueOp
from weir.router.subscriptions import Sub
from weir.router.traces import TracedOrigin
from weir.store.core import awaited
from weir.store.records import (
    UNAVAILABLE,
    AckResult,
    Assoc,
    EntityStatus,
    Entry,
    QueueRecord,
    Status,
    SubResult,
    Unavailable,
)
from weir.wire.commands import ACK
from weir.wire.encoding import short
from weir.wire.errors import Blocked, CommandError, Simple
from weir.wire.queue_info import MsgInfo, MsgType, QSub, QueueInfo, SubThread

_NO_ID = b"\0"  # matches no message


class SubOp(QueueOp):
    __slots__ = ("_gen", "_made", "_sub")

    auth_stat = "qSubAuth"

    def run(self, record: QueueRecord) -> None:
        client = self.client
        router = client.router
        if record.status.__class__ is not EntityStatus:
            self.fail(Blocked(record.status))  # type: ignore[arg-type]
            return
        sub = client.subs.get(record.rcv_id)
        if sub is not None and sub.prohibit:
            router.stats.qSubProhibited += 1
            self.fail(CommandError.PROHIBITED)
            return
        service = client.service
        if service is None:
            gen = router.next_gen()
        elif client.epoch is None:
            client.hold += 1
            router.services.take_over(client, self._taken_over, record)
            return
        else:
            gen = client.epoch
        self._record = record
        self._made = sub is None
        if sub is None:
            sub = client.subs[record.rcv_id] = Sub(gen)
        else:
            # A repeated SUB brings its message again: what was on its way for the old one is dropped.
            router.stats.qSubDuplicate += 1
            client.out.forget(record.rcv_id)
            sub.gen = gen
            sub.msg_id = sub.last = None
        self._sub = sub
        self._gen = gen
        now = int(time())
        router.store.sub(
            record,
            client.id,
            gen,
            None if service is None else service.service_id,
            now // 86400,
            router.expire_before(now),
            self._subscribed,
        )

    def _subscribed(self, result: SubResult | Unavailable) -> None:
        client = self.client
        if result is UNAVAILABLE:
            self.too_late()
            return
        status, head, assoc, expired = result  # type: ignore[misc]
        rcv_id = self.t.entity_id
        router = client.router
        if expired:
            router.stats.msgExpired += expired
        if status is Status.OK:
            if client.service is not None or assoc is Assoc.REMOVED:
                router.services.associated(client, rcv_id, assoc, router.stats.rcvServices)
            sub = self._sub
            if self._late:
                self._subscribed_late(head)
            elif head is None:
                if client.service is not None and sub.msg_id is None:
                    client.subs.pop(rcv_id, None)  # a service's queue is remembered while it has a message
                self.answer(client.sok)
            else:
                if self._made:
                    router.stats.qSub += 1
                if sub.give(head.msg_id):
                    self.origin.answer_sub(self, client.sok, sub, head)
                else:
                    self.answer(client.sok)
            return
        if self._made and client.subs.get(rcv_id) is self._sub:
            del client.subs[rcv_id]
        if self._late:
            pass
        elif status is Status.STALE:
            self.stale()
        elif status is Status.FENCED:
            router.delivery.lost_service(client)
            self.stale()
        else:
            self.gone()

    def _subscribed_late(self, head: Entry | None) -> None:
        client, sub, rcv_id = self.client, self._sub, self.t.entity_id
        if head is not None and client.subs.get(rcv_id) is sub and sub.gen == self._gen and sub.give(head.msg_id):
            client.out.message(rcv_id, sub, head)


class AckOp(QueueOp):
    __slots__ = ("_id", "_next", "_skipped", "_sub")

    def begin(self) -> None:
        client = self.client
        tracer = client.router.tracer
        if tracer is not None:
            sub = client.subs.get(self.t.entity_id)
            trace = b"" if sub is None else sub.trace
            if client.trace or trace:
                self.origin = TracedOrigin(self.origin, tracer, self.t, trace)
        QueueOp.begin(self)

    def run(self, record: QueueRecord) -> None:
        client = self.client
        if record.status.__class__ is not EntityStatus:
            self.fail(Blocked(record.status))  # type: ignore[arg-type]
            return
        self._record = record
        self._sub = sub = client.subs.get(record.rcv_id)
        self._skipped = False
        command = self.t.command
        assert type(command) is ACK
        if sub is None:
            self._ack(client.epoch or 0, command.msg_id or _NO_ID)
        elif sub.prohibit:
            if sub.msg_id is None or command.msg_id not in (sub.msg_id, b""):
                self.fail(Simple.NO_MSG)
            else:
                client.hold += 1
                msg_id, sub.msg_id = sub.msg_id, None  # another ACK of the same block has no message
                client.spawn(self._got(record, sub, msg_id))
        else:
            # Without an id, only a message that has left for the client is meant.
            self._ack(sub.gen, command.msg_id or (sub.msg_id if sub.sent and sub.msg_id else _NO_ID))

    def _ack(self, gen: int, msg_id: bytes) -> None:
        router = self.client.router
        now = int(time())
        assert self._record is not None
        self._id = msg_id
        router.store.ack(
            self._record, self.client.id, gen, msg_id, router.expire_before(now), now // 86400, self._acked
        )

    def _acked(self, result: AckResult | Unavailable) -> None:
        if result is UNAVAILABLE:
            self.too_late()
            return
        status, acked, following, expired = result  # type: ignore[misc]
        client = self.client
        stats = client.router.stats
        if expired:
            stats.msgExpired += expired
        if status is Status.OK:
            sub, rcv_id = self._sub, self.t.entity_id
            if sub is not None:
                if acked is not None and not self._skipped:
                    self._count(acked, sub)
                if sub.msg_id in (None, self._id):  # else the next one has come by itself already
                    sub.clear()
                if following is not None and client.subs.get(rcv_id) is sub and sub.give(following.msg_id):
                    if self._late:
                        client.out.message(rcv_id, sub, following)
                        return
                    self._next: Entry = following
                    client.router.delivery.body(rcv_id, following, self._next_body)
                    return
                if client.service is not None and sub.msg_id is None and client.subs.get(rcv_id) is sub:
                    del client.subs[rcv_id]
            if not self._late:
                self.origin.answer(self, OK)
        elif self._late:
            pass
        elif status is Status.NO_MSG:
            if self._sub is not None and self._sub.msg_id == self._id:
                self._sub.msg_id = None  # a master took it with it before it was replicated: it may come again
                self._sub.last = None
            self.fail(Simple.NO_MSG)
        elif status is Status.STALE:
            self.stale()
        else:
            self.gone()

    def _next_body(self, body: bytes | Unavailable | None) -> None:
        client, sub, rcv_id, entry = self.client, self._sub, self.t.entity_id, self._next
        assert sub is not None
        if client.subs.get(rcv_id) is not sub or sub.msg_id != entry.msg_id:
            self.answer(OK)  # taken over meanwhile: the message is another's
        elif isinstance(body, bytes) and body:
            sub.sent = int(time())
            self.answer(b"MSG " + short(entry.msg_id) + body)
        elif body is UNAVAILABLE:
            self.answer(OK)
            client.out.message(rcv_id, sub, entry)
        else:
            self._skipped = True
            self._ack(sub.gen, entry.msg_id)

    def _count(self, flags: int, sub: Sub) -> None:
        if flags & 2:
            return  # the quota message is not counted
        router = self.client.router
        stats = router.stats
        stats.msgRecv += 1
        stats.active_queues.add(self.t.entity_id)
        if flags & 1:
            stats.msgRecvNtf += 1
            stats.active_queues_ntf.add(self.t.entity_id)
        stats.acknowledged(int(time()) - sub.sent if sub.sent else 0)

    async def _got(self, record: QueueRecord, sub: Sub, msg_id: bytes) -> None:
        """A GET client's ACK: OK even when the subscriber has acknowledged the message before."""
        router = self.client.router
        try:
            result = await router.store.ack_get(record, msg_id, router.today())
        except Unavailable:
            sub.msg_id = sub.msg_id or msg_id
            self.fail(Simple.INTERNAL)
        else:
            if result.status is Status.STALE:
                sub.msg_id = sub.msg_id or msg_id
                self.stale()
            elif result.status is Status.GONE:
                self.gone()
            else:
                if result.acked is not None:
                    self._count(result.acked, sub)
                    router.stats.msgRecvGet += 1
                self.answer(OK)
        finally:
            self.client.release()


class GetOp(ColdOp):
    __slots__ = ()

    auth_stat = "msgGetAuth"

    async def work(self, record: QueueRecord) -> None:
        client = self.client
        router = client.router
        stats = router.stats
        rcv_id = record.rcv_id
        sub = client.subs.get(rcv_id)
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
            return
        if sub is not None and not sub.prohibit:
            stats.msgGetProhibited += 1
            self.fail(CommandError.PROHIBITED)
            return
        if sub is None:
            sub = client.subs[rcv_id] = Sub(0, prohibit=True)  # at once: a SUB of the same block is prohibited too
        now = int(time())
        try:
            entry = await router.store.peek(record, router.expire_before(now))
            body = None if entry is None or isinstance(entry, Status) else await self._body(entry)
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if isinstance(entry, Status):
            if entry is Status.GONE:
                del client.subs[rcv_id]
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
        sub.msg_id, sub.last, sub.sent = entry.msg_id, None, now
        self.answer(b"MSG " + short(entry.msg_id) + body)

    async def _body(self, entry: Entry) -> bytes | None:
        return await awaited(partial(self.client.router.delivery.body, self.t.entity_id, entry))


class QueOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        router = self.client.router
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
            return
        now = int(time())
        try:
            info = await router.store.info(record, router.expire_before(now))
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
        sub = self.client.subs.get(self.t.entity_id)
        if sub is None:
            return None
        if sub.msg_id is not None and not sub.sent:
            return QSub(SubThread.SUB_PENDING)
        delivered = None if sub.msg_id is None else base64.b64encode(sub.msg_id).decode()
        return QSub(SubThread.PROHIBIT_SUB if sub.prohibit else SubThread.NO_SUB, delivered)
