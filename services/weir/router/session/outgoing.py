"""The outgoing side of a session: answers, events and messages.

    answers, events ──add──────────────────────────────────────► items ──flush, once per turn──► transport
    messages ──message──► waiting (ids) ──room──► fetch body ──send──┘
    fold (source) ◄──pull, when nothing waits and there is room

Everything that is added in one turn of the loop is packed into as few blocks as possible and handed to the transport
at once. Answers are always taken, because a client whose answers pile up is not read from. Messages wait as ids until
the bytes that wait for the client are under the limit; only then the router fetches their bodies, a few at a time. So
a slow reader costs ids, not bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.delivery.expired import skip_expired
from weir.router.store.records import Entry
from weir.wire.smp.transmission import encode_msg, encode_server, pack_forward

if TYPE_CHECKING:
    from weir.router.router import Shared
    from weir.router.session.subscriptions import Sub, Subscriptions
    from weir.router.stats import ServiceUse
    from weir.runtime.turns import Share
    from weir.telemetry.tracing import Span
    from weir.transport.smp import SmpConnection

_FETCHES = 4  # bodies that are fetched for one client at the same time: bounds the cost of one client per turn
_MESSAGE = 16384
_END = b"END"  # and ENDS
# (entity id, event) in their order, each once: a subscription that ended, began again and ended has ended.
_Events = dict[tuple[bytes, bytes], None]
_RETRY = 1.0  # seconds until a body is fetched again that Redis did not return


class Source(Protocol):
    """Brings more messages when the client has room for them."""

    def pull(self) -> None:
        """Bring more messages."""

    def message_left(self, rcv_id: bytes) -> None:
        """The message of this queue has left for the client, or will never leave."""

    def span_of(self, rcv_id: bytes) -> Span:
        """Return the span that the message of this queue belongs to."""

    def stop(self) -> None:
        """The messages are not for this client any more."""


def _cannot() -> bool:
    return False


class Barrier:
    """Holds back events for queues whose answers are still queued.

    An END must not overtake the answer to a SUB: the client would take the queue for its own again. It must not come
    behind the answer to a later SUB either: the client would take that subscription for ended. So an event makes the
    answers before it leave, where they can.
    """

    __slots__ = ("events", "ids", "send_answers")

    def __init__(self, ids: Iterable[bytes], send_answers: Callable[[], bool]) -> None:
        """`send_answers` sends what is answered so far. It returns whether it could."""
        self.ids = set(ids)
        self.events: _Events = {}
        self.send_answers = send_answers

    def holds(self, entity_id: bytes) -> bool:
        """Whether an event for this queue must wait."""
        if entity_id not in self.ids:
            return False
        return any(before == entity_id for before, _ in self.events) or not self.send_answers()


class Outgoing:
    __slots__ = (
        "_barriers",
        "_bytes",
        "_conn",
        "_delayed",
        "_fetching",
        "_framing",
        "_items",
        "_marked",
        "_shared",
        "_subscriptions",
        "_use",
        "charged_to",
        "closed",
        "full",
        "source",
        "waiting",
    )

    def __init__(
        self, conn: SmpConnection, shared: Shared, subscriptions: Subscriptions, use: ServiceUse | None
    ) -> None:
        self._conn = conn
        self._use = use
        self._framing = conn.session
        self._shared = shared
        self._subscriptions = subscriptions
        self._items: list[bytes] = []
        self._bytes = 0
        self._marked = False
        self._fetching = 0
        self._delayed: _Events = {}  # came while the client did not read
        self._barriers: list[Barrier] = []
        self.waiting: dict[bytes, tuple[Sub, Entry]] = {}
        self.source: Source | None = None
        self.full = False
        self.closed = False
        self.charged_to: Share[Any] | None = None  # pays for flushes while blocks of the client wait

    # Answers and events.

    def add(self, transmission: bytes) -> None:
        """Send an encoded transmission at the end of this turn."""
        self._items.append(transmission)
        self._bytes += len(transmission)
        if not self._marked:
            self._marked = True
            self._shared.flush_later(self)

    def push(self, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        """Send an event, or an answer that comes apart from its block."""
        if not self.closed:
            self.add(encode_server(self._framing, corr_id, entity_id, reply))

    def event(self, entity_id: bytes, reply: bytes) -> None:
        """Send END, DELD and the like, behind answers that are queued. Delayed while the client does not read."""
        for barrier in self._barriers:
            if barrier.holds(entity_id):
                barrier.events[entity_id, reply] = None
                return
        if self.full:
            self._delayed[entity_id, reply] = None
        else:
            self.push(b"", entity_id, reply)

    def _late_event(self, entity_id: bytes, reply: bytes) -> None:
        """Send an event that was held back. END and ENDS are dropped if the client has subscribed again since.

        Behind the answer to that, END would say that the present subscription has ended.
        """
        if not reply.startswith(_END) or not self._subscriptions.answered(entity_id):
            self.event(entity_id, reply)

    def barrier(self, *ids: bytes, send_answers: Callable[[], bool] = _cannot) -> Barrier:
        """Hold back events for these queues, and for those added to `ids`, until `lift`."""
        barrier = Barrier(ids, send_answers)
        self._barriers.append(barrier)
        return barrier

    def lift(self, barrier: Barrier) -> None:
        """The answers have left: send the events that were held back for them."""
        self._barriers.remove(barrier)
        barrier.send_answers = _cannot  # a block refers to its barrier: the two would form a reference cycle
        for entity_id, reply in barrier.events:
            self._late_event(entity_id, reply)

    # Messages.

    def message(self, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """Fetch and send a message when there is room."""
        self.waiting[rcv_id] = (sub, entry)
        self.pump()

    def message_with(self, answers: list[bytes], barrier: Barrier, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """Send answers in one block with a message."""
        self._fetching += 1
        self._shared.bodies.fetch(rcv_id, entry, _Fetch(self, rcv_id, sub, entry, answers, barrier).done)

    def message_with_body(self, rcv_id: bytes, sub: Sub, entry: Entry, body: bytes) -> None:
        """Send a message whose body is known. Without room, only the id is kept."""
        if self.waiting or not self.has_room():
            self.waiting[rcv_id] = (sub, entry)
        else:
            self._send(rcv_id, sub, entry, body)

    def forget(self, rcv_id: bytes) -> None:
        """The message of this queue is not for this client any more."""
        self.waiting.pop(rcv_id, None)
        if self.source is not None:
            self.source.message_left(rcv_id)

    def _send(self, rcv_id: bytes, sub: Sub, entry: Entry, body: bytes) -> None:
        self.message_leaves(rcv_id, sub, entry)
        sub.trace = entry.trace
        self.add(encode_msg(self._framing, b"", rcv_id, entry.msg_id, body))
        source = self.source
        if entry.trace or source is not None:
            self._trace(rcv_id, entry)
        if source is not None:
            source.message_left(rcv_id)

    def message_leaves(self, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """Note the time at which a message is sent to the client.

        The time from SEND to MSG is between the clocks of two edges when the sender is connected to another one: clocks
        that differ move it by as much, and a negative time counts as 0.
        """
        sub.sent = now = time()
        self._subscriptions.unacknowledged[rcv_id] = sub
        if entry.sent:
            self._shared.stats.send_msg.observe((now - entry.sent) * 1e6)
        if self._use is not None:
            self._use.delivered += 1

    def _trace(self, rcv_id: bytes, entry: Entry) -> None:
        """Record MSG as one span: below the fold's page if there is one, linked to the span of its SEND."""
        page = self.source.span_of(rcv_id) if self.source is not None else None
        if entry.trace or (page is not None and page.recording):
            self._shared.tracer.start("MSG", page, links=(entry.trace,)).end()

    # Room.

    def has_room(self) -> bool:
        used = self._conn.buffered + self._bytes + self._fetching * _MESSAGE
        return used <= self._shared.outgoing_bytes

    @property
    def pending_bytes(self) -> int:
        return self._conn.buffered + self._bytes

    def pump(self) -> None:
        """Fetch waiting messages in their order while there is room, then ask the source for more."""
        waiting = self.waiting
        while waiting and self._fetching < _FETCHES and self.has_room():
            rcv_id = next(iter(waiting))
            sub, entry = waiting.pop(rcv_id)
            self._fetching += 1
            self._shared.bodies.fetch(rcv_id, entry, _Fetch(self, rcv_id, sub, entry).done)
        if not waiting and self.source is not None and self.has_room():
            self.source.pull()

    def on_writable(self) -> None:
        """The transport's buffer has drained."""
        self.full = False
        delayed, self._delayed = self._delayed, {}
        for entity_id, reply in delayed:
            self._late_event(entity_id, reply)
        self.pump()

    # To the transport.

    def flush(self) -> None:
        """Hand this turn's transmissions to the transport."""
        self._marked = False
        items = self._items
        self._items = []
        self._bytes = 0
        if self.closed or not items:
            return
        conn = self._conn
        conn.send_contents(pack_forward(items))
        if conn.buffered > self._shared.outgoing_bytes:
            self.full = True
        elif self.waiting or self.source is not None:
            self.pump()

    def abort(self) -> None:
        """Disconnect the client: it lacks an answer."""
        self._conn.abort()

    def flush_now(self) -> None:
        if self._items:
            self.flush()

    # Bodies.

    def _fetched(self, fetch: _Fetch, body: bytes | Unavailable | None) -> None:
        self._fetching -= 1
        if self.closed:
            return
        for answer in fetch.answers:
            self.add(answer)
        if fetch.barrier is not None:
            self.lift(fetch.barrier)
        rcv_id, sub, entry = fetch.rcv_id, fetch.sub, fetch.entry
        if self._subscriptions.awaits(rcv_id, sub, entry.msg_id):
            if body is UNAVAILABLE:
                self._shared.loop.call_later(_RETRY, self._fetch_again, rcv_id, sub, entry)
            elif body:
                self._send(rcv_id, sub, entry, body)  # type: ignore[arg-type]
            else:
                self.skip(rcv_id, sub, entry)
                if self.source is not None:
                    self.source.message_left(rcv_id)
        self.pump()

    def _fetch_again(self, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        if not self.closed and self._subscriptions.awaits(rcv_id, sub, entry.msg_id):
            self.message(rcv_id, sub, entry)

    def skip(self, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """The message has no body any more: acknowledge it for the client and send the next message."""
        skip_expired(self._shared, self._conn.id, self._subscriptions, self, rcv_id, sub, entry)


class _Fetch:
    """A body that is being fetched, with the answers that leave before it."""

    __slots__ = ("_outgoing", "answers", "barrier", "entry", "rcv_id", "sub")

    def __init__(
        self,
        outgoing: Outgoing,
        rcv_id: bytes,
        sub: Sub,
        entry: Entry,
        answers: Sequence[bytes] = (),
        barrier: Barrier | None = None,
    ) -> None:
        self._outgoing = outgoing
        self.rcv_id = rcv_id
        self.sub = sub
        self.entry = entry
        self.answers = answers
        self.barrier = barrier

    def done(self, body: bytes | Unavailable | None) -> None:
        self._outgoing._fetched(self, body)
