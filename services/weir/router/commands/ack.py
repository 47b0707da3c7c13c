"""ACK: the message in flight is removed, and the next one comes as the answer."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.commands.handler import OK, QueueHandler, handles
from weir.router.session.spans import TracedOrigin
from weir.router.store.records import AckResult, Entry, QueueRecord, Status
from weir.wire.encoding import short
from weir.wire.errors import Simple
from weir.wire.smp.commands import ACK

if TYPE_CHECKING:
    from weir.router.session.subscriptions import Sub
    from weir.runtime.incoming import Hold

_NO_ID = b"\0"  # matches no message
_NOTIFICATION, _QUOTA = 1, 2  # flags of a message


@handles(ACK)
class AckHandler(QueueHandler):
    __slots__ = ("_id", "_next", "_skipped", "_sub")

    traces_itself = True

    def begin(self) -> None:
        session = self.session
        sub = session.subscriptions.queues.get(self.t.entity_id)
        trace = b"" if sub is None else sub.trace
        if trace or session.traced:
            self.origin = TracedOrigin(self.origin, session.shared.tracer, self.t, trace)
        QueueHandler.begin(self)

    def execute(self, record: QueueRecord) -> None:
        if self.refuse_blocked(record):
            return
        session = self.session
        if session.sub_batch is not None:
            session.sub_batch.send()  # an ACK must not overtake the SUB of its queue
        self._record = record
        self._sub = sub = session.subscriptions.queues.get(record.rcv_id)
        self._skipped = False
        command = self.t.command
        assert type(command) is ACK
        if sub is None:
            self._acknowledge(session.subscriptions.epoch or 0, command.msg_id or _NO_ID)
        elif sub.prohibit:
            self._execute_after_get(record, sub, command.msg_id)
        else:
            # Without an id, the client means only a message that has left for it.
            self._acknowledge(sub.gen, command.msg_id or (sub.msg_id if sub.sent and sub.msg_id else _NO_ID))

    def _acknowledge(self, gen: int, msg_id: bytes) -> None:
        session, shared = self.session, self.session.shared
        now = int(time())
        assert self._record is not None
        self._id = msg_id
        shared.store.messages.ack(
            self._record, session.id, gen, msg_id, now - shared.message_ttl, now // 86400, self._acknowledged
        )

    def _acknowledged(self, result: AckResult | Unavailable) -> None:
        if result is UNAVAILABLE:
            self.time_out()
            return
        status, acked, following, expired = result  # type: ignore[misc]
        if expired:
            self.session.shared.stats.msgExpired += expired
        if status is Status.OK:
            self._removed(acked, following)
        elif self._timed_out:
            pass
        elif status is Status.NO_MSG:
            if self._sub is not None and self._sub.msg_id == self._id:
                # A Redis master took the message with it before it was replicated: the message may come again.
                self._sub.msg_id = None
                self._sub.last = None
            self.fail(Simple.NO_MSG)
        elif status is Status.STALE:
            self.retry_stale()
        else:
            self.queue_is_gone()

    def _removed(self, acked: int | None, following: Entry | None) -> None:
        """The store has removed the message. Answer with the next message if there is one."""
        session, sub, rcv_id = self.session, self._sub, self.t.entity_id
        if sub is not None:
            if acked is not None and not self._skipped:
                self._count(acked, sub)
            if sub.msg_id in (None, self._id):  # otherwise the next message has already arrived as an event
                sub.clear()
            queues = session.subscriptions.queues
            is_present = queues.get(rcv_id) is sub
            if following is not None and is_present and sub.give(following.msg_id):
                if self._timed_out:
                    session.outgoing.message(rcv_id, sub, following)
                    return
                self._next: Entry = following
                session.shared.bodies.fetch(rcv_id, following, self._answer_with)
                return
            if session.service is not None and sub.msg_id is None and queues.get(rcv_id) is sub:
                del queues[rcv_id]
        if not self._timed_out:
            self.origin.answer(self, OK)

    def _answer_with(self, body: bytes | Unavailable | None) -> None:
        session, sub, rcv_id, entry = self.session, self._sub, self.t.entity_id, self._next
        assert sub is not None
        if not session.subscriptions.awaits(rcv_id, sub, entry.msg_id):
            self.answer(OK)  # another session has taken the queue over, and the message is for that session
        elif isinstance(body, bytes) and body:
            session.outgoing.message_leaves(rcv_id, sub, entry)
            self.answer(b"MSG " + short(entry.msg_id) + body)
        elif body is UNAVAILABLE:
            self.answer(OK)
            session.outgoing.message(rcv_id, sub, entry)
        else:
            self._skipped = True
            self._acknowledge(sub.gen, entry.msg_id)

    def _count(self, flags: int, sub: Sub) -> None:
        if flags & _QUOTA:
            return
        stats = self.session.shared.stats
        stats.msgRecv += 1
        stats.active_queues.add(self.t.entity_id)
        if flags & _NOTIFICATION:
            stats.msgRecvNtf += 1
            stats.active_queues_ntf.add(self.t.entity_id)
        stats.acknowledged(sub.sent, time())

    # After GET.

    def _execute_after_get(self, record: QueueRecord, sub: Sub, msg_id: bytes) -> None:
        if sub.msg_id is None or msg_id not in (sub.msg_id, b""):
            self.fail(Simple.NO_MSG)
        else:
            got, sub.msg_id = sub.msg_id, None  # a second ACK of the same block has no message
            self.session.spawn(self._acknowledge_get(record, sub, got, self.session.incoming.hold()))

    async def _acknowledge_get(self, record: QueueRecord, sub: Sub, msg_id: bytes, hold: Hold) -> None:
        """Answer OK even if the subscriber has acknowledged the message before."""
        shared = self.session.shared
        with hold:
            try:
                result = await shared.store.messages.ack_get(record, msg_id, shared.today())
            except Unavailable:
                sub.msg_id = sub.msg_id or msg_id
                self.fail(Simple.INTERNAL)
                return
            if result.status is Status.STALE:
                sub.msg_id = sub.msg_id or msg_id
                self.retry_stale()
            elif result.status is Status.GONE:
                self.queue_is_gone()
            else:
                if result.acked is not None:
                    self._count(result.acked, sub)
                    shared.stats.msgRecvGet += 1
                self.answer(OK)
