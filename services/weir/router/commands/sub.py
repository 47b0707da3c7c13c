"""SUB: the session becomes the owner of a queue, and gets the queue's first message.

SUBs of one session that follow each other go to the store together, with one script call for the queues of one
partition:

    step, step, step … ──► SubBatch ──no further SUB waits──► store.subscriptions.sub_many ──► subscribed, one by one

A script call costs Redis and the edge much more than one more queue in the call: 38 µs of CPU for each queue in batches
of 5, 17 µs in batches of 128.
"""

from __future__ import annotations

from functools import partial
from time import time
from typing import TYPE_CHECKING

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.commands.handler import handles
from weir.router.commands.subscription import SubscriptionHandler
from weir.router.delivery.ownership import count_association, ensure_owner, execute_as_owner, lose_service
from weir.router.session.subscriptions import Sub
from weir.router.store.records import Assoc, Entry, QueueRecord, Status, SubResult
from weir.runtime.state.calls import awaited
from weir.wire.errors import CommandError
from weir.wire.smp.commands import SUB

if TYPE_CHECKING:
    from weir.router.session.session import Session

_MOST_SUBS = 256  # in one batch: further SUBs of the session wait for no more than one block


@handles(SUB)
class SubHandler(SubscriptionHandler):
    __slots__ = ("_before", "_gen", "_sub")

    auth_stat = "qSubAuth"

    def execute(self, record: QueueRecord) -> None:
        if self.refuse_blocked(record):
            return
        session = self.session
        shared, subscriptions = session.shared, session.subscriptions
        sub = subscriptions.queues.get(record.rcv_id)
        if sub is not None and sub.prohibit:
            shared.stats.qSubProhibited += 1
            self.fail(CommandError.PROHIBITED)
            return
        if session.service is not None and subscriptions.epoch is None:
            session.spawn(execute_as_owner(self, record, session.incoming.hold()))
            return
        batch = session.sub_batch
        if batch is None or not batch.takes(record.rcv_id, subscriptions.epoch):
            if batch is not None:
                batch.send()
            batch = session.sub_batch = SubBatch(session)
        gen = batch.gen
        self._record = record
        self._before = None if sub is None else sub.gen  # the generation of an earlier subscription
        if sub is None:
            sub = subscriptions.queues[record.rcv_id] = Sub(gen)
        else:
            # A repeated SUB brings its message again: drop the message that was on its way for the old one.
            shared.stats.qSubDuplicate += 1
            session.outgoing.forget(record.rcv_id)
            sub.gen = gen
            sub.msg_id = sub.last = None
        self._sub = sub
        self._gen = gen
        batch.add(record, self)

    def subscribed(self, result: SubResult | Unavailable) -> None:
        """Take the store's result, or after UNAVAILABLE a late result."""
        session = self.session
        if result is UNAVAILABLE:
            self.time_out()
            return
        status, head, assoc, expired = result  # type: ignore[misc]
        rcv_id = self.t.entity_id
        stats, queues = session.shared.stats, session.subscriptions.queues
        if expired:
            stats.msgExpired += expired
        if status is Status.OK:
            if session.service is not None or assoc is Assoc.REMOVED:
                count_association(session, rcv_id, assoc, stats.rcvServices)
            sub = self._sub
            sub.answered |= not self._timed_out
            if self._timed_out:
                self._deliver_late(head)
            elif head is None:
                if session.service is not None and sub.msg_id is None:
                    queues.pop(rcv_id, None)  # a service's queue is kept here only while it has a message
                self.answer(session.sok)
            else:
                if self._before is None:
                    stats.qSub += 1
                if sub.give(head.msg_id):
                    self.origin.answer_sub(self, session.sok, sub, head)
                else:
                    self.answer(session.sok)
            return
        self._undo(gone=status is Status.GONE)
        self.not_subscribed(status, self._gen)

    def _undo(self, *, gone: bool) -> None:
        """The script has changed nothing: the client's earlier subscription stands, unless the queue is gone."""
        session, rcv_id, sub = self.session, self.t.entity_id, self._sub
        queues = session.subscriptions.queues
        if queues.get(rcv_id) is not sub or sub.gen != self._gen:
            return
        if self._before is not None and not gone:
            sub.gen = self._before
        elif self._before is not None and self._timed_out and session.service is None:
            self.report_deleted(self._gen)
        else:
            del queues[rcv_id]

    def _deliver_late(self, head: Entry | None) -> None:
        """The client was told INTERNAL, but the script has marked a message as in flight: deliver it."""
        sub, rcv_id = self._sub, self.t.entity_id
        is_present = self.session.subscriptions.queues.get(rcv_id) is sub and sub.gen == self._gen
        if head is not None and is_present and sub.give(head.msg_id):
            self.session.outgoing.message(rcv_id, sub, head)


class SubBatch:
    """SUBs of one session that follow each other.

    One generation serves for all, because a generation fences the subscription of one queue.
    """

    __slots__ = ("_handlers", "_session", "gen")

    def __init__(self, session: Session) -> None:
        self._session = session
        epoch = session.subscriptions.epoch
        self.gen = session.shared.next_gen() if epoch is None else epoch
        self._handlers: dict[bytes, tuple[QueueRecord, SubHandler]] = {}  # by recipient id
        session.shared.loop.call_soon(self._end_turn)

    def takes(self, rcv_id: bytes, epoch: int | None) -> bool:
        """Whether this queue may join: it is not in the batch yet, and the session owns its service as before."""
        return rcv_id not in self._handlers and epoch in (None, self.gen)

    def add(self, record: QueueRecord, handler: SubHandler) -> None:
        self._handlers[record.rcv_id] = (record, handler)

    def _end_turn(self) -> None:
        """Send the batch, unless the session's next command that waits for its turn is a SUB and can join."""
        session = self._session
        if session.sub_batch is not self:
            return  # sent already
        waiting = session.incoming.share.waiting
        if waiting and waiting[0].__class__ is SubHandler and len(self._handlers) < _MOST_SUBS:
            session.shared.loop.call_soon(self._end_turn)
        else:
            self.send()

    def send(self) -> None:
        """Send the batch to the store, so that no command that follows overtakes it."""
        session = self._session
        if session.sub_batch is not self:
            return  # sent already
        session.sub_batch = None
        if session.closed:
            return  # a SUB must not displace the client's next session
        records, handlers = zip(*self._handlers.values(), strict=True)
        service = session.service
        now = int(time())
        session.shared.store.subscriptions.sub_many(
            records,
            session.id,
            self.gen,
            None if service is None else service.service_id,
            now // 86400,
            session.shared.expire_before(now),
            lambda place, result: handlers[place].subscribed(result),
        )


async def subscribe(session: Session, rcv_id: bytes) -> bool:
    """Subscribe to a queue whose NEW was repeated. A message that came meanwhile follows. False: no such queue."""
    shared, subscriptions = session.shared, session.subscriptions
    while True:
        record = await shared.store.lookups.get_rcv(rcv_id)
        if record is None:
            return False
        service = session.service
        if service is not None:
            await ensure_owner(session)
        gen = shared.next_gen() if service is None or subscriptions.epoch is None else subscriptions.epoch
        sub = subscriptions.queues[rcv_id] = Sub(gen)
        service_id = None if service is None else service.service_id
        now = int(time())
        call = partial(
            shared.store.subscriptions.sub,
            record,
            session.id,
            gen,
            service_id,
            now // 86400,
            shared.expire_before(now),
        )
        result: SubResult = await awaited(call)
        if result.status is Status.OK:
            sub.answered = True
            if result.head is not None and sub.give(result.head.msg_id):
                session.outgoing.message(rcv_id, sub, result.head)
            return True
        if result.status is Status.GONE:
            subscriptions.queues.pop(rcv_id, None)
            return False
        if result.status is Status.FENCED:
            lose_service(session, gen)
