"""One client's connection: its commands in order, its answers and messages folded into few blocks.

Commands of a connection are begun in the order they came. A command that needs more than cached credentials holds back
the blocks behind it (`hold`), so that nothing of one connection overtakes. Answers of one block leave together, in the
order of its commands. Messages wait as ids (`waiting`) until there is room for their bodies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from weir.router.batch import Batch
from weir.router.handlers import OPS
from weir.router.op import Op, Origin, encode_error
from weir.router.outgoing import Outgoing
from weir.router.scheduler import Charged
from weir.router.subscriptions import ServiceTotals, Sub, count_subs
from weir.router.traces import TracedOrigin
from weir.router.verification import Verifier
from weir.store.records import Entry, Event
from weir.wire import commands as cmd
from weir.wire.errors import Name, NameErrorTag
from weir.wire.replies import SOK
from weir.wire.smp import encode_reply
from weir.wire.transmission import ClientTransmission, TransmissionError, block_spans, decode_client, encode_server

if TYPE_CHECKING:
    from weir.router.router import Router
    from weir.router.sending import SendOp
    from weir.router.services import Fold
    from weir.transport.connection import Connection

# Blocks of one client that are begun and not answered: what others wait behind at this edge and at Redis.
_OPEN_ALONE = 8  # fewer cost more each: an edge puts what a turn began into one write to Redis
_OPEN = 2  # one more than is being worked on
_TRACED_BY_THEMSELVES = frozenset((cmd.SEND, cmd.ACK, cmd.SUBS, cmd.NSUBS))
_PONG = b"PONG"
_NO_RESOLVER = Name(NameErrorTag.NO_RESOLVER)  # names are a later version's; older clients may ask all the same


class Client:
    """The handler of one connection."""

    __slots__ = (
        "_forwards",
        "backlog",
        "batch",
        "blocks",
        "closed",
        "conn",
        "draining",
        "early",
        "epoch",
        "fold",
        "forwarding",
        "going_on",
        "hold",
        "id",
        "in_ring",
        "ntf_subs",
        "ntf_waiting",
        "open_blocks",
        "out",
        "paused",
        "rested_at",
        "resting",
        "router",
        "sending",
        "service",
        "service_subscribed",
        "session",
        "sok",
        "subs",
        "takeover",
        "totals",
        "trace",
        "verifier",
    )

    def __init__(self, router: Router, conn: Connection) -> None:
        self.router = router
        self.conn = conn
        self.id = conn.id
        self.session = conn.session
        self.service = conn.service
        self.verifier = Verifier(conn.session_key, conn.service)
        self.sok = encode_reply(self.session.version, SOK(None if self.service is None else self.service.service_id))
        self.out = Outgoing(self)
        self.subs: dict[bytes, Sub] = {}
        self.ntf_subs: dict[bytes, tuple[int, bytes]] = {}  # notifier id → gen, the queue's recipient id
        self.ntf_waiting: set[bytes] = set()  # notifier ids with notifications to take
        self.epoch: int | None = None  # of the service, once this connection has taken it over
        self.takeover: asyncio.Event | None = None  # set when the takeover under way has ended
        self.early: list[Event] | None = None  # what came for the service before its takeover was heard of
        self.service_subscribed = False
        self.totals = ServiceTotals()
        self.fold: Fold | None = None
        self.sending: dict[bytes, list[SendOp]] = {}  # sender id → SENDs under way, in order
        self.backlog: deque[Op] = deque()
        self.in_ring = False
        self.blocks: deque[bytes] = deque()  # sealed, not begun
        self.batch: Batch | None = None  # a block whose commands are not all begun; it holds back the others
        self.going_on = False
        self.resting = False
        self.rested_at = 0.0  # when it has rested from what it has had done, see Scheduler
        self.hold = 0
        self.open_blocks = 0
        self._forwards: asyncio.Semaphore | None = None
        self.forwarding = 0  # commands for other routers that wait for their turn
        self.paused = False
        self.closed = False
        self.draining = False
        self.trace = False

    # What the transport tells.

    def on_blocks(self, blocks: list[bytes]) -> None:
        scheduler = self.router.scheduler
        if scheduler.last != self.id:
            scheduler.heard(self.id)
        if self.open_blocks or self.blocks or len(blocks) > 1 or self.hold or self.out.full:
            self.blocks += blocks
            if scheduler.rest(self):
                self.go_on()
            elif not self.going_on:
                self._next()
        else:
            self._block(blocks[0])

    def on_writable(self) -> None:
        self.out.on_writable()
        self.go_on()

    def on_closed(self) -> None:
        self.closed = True
        self.blocks.clear()
        self.batch = None
        self.sending.clear()
        self.router.gone(self)

    # Commands in.

    def release(self) -> None:
        """A command that held the connection back has been begun."""
        self.hold -= 1
        if self.blocks and not self.hold:
            self.go_on()

    def go_on(self) -> None:
        """More of what came may be begun, in the loop's next turn, or after a rest: others have theirs first."""
        if self.going_on or (self.batch is None and not self.blocks):
            return
        self.going_on = True
        rest = self.router.scheduler.rest(self)
        if rest:
            self.resting = True
            self._pause()
            self.router.loop.call_later(rest, self._next)
        else:
            self.router.loop.call_soon(self._next)

    def _next(self) -> None:
        began = perf_counter()
        self.going_on = self.resting = False
        if self.batch is not None:
            self._more()
        alone = self.router.scheduler.alone
        limit = _OPEN_ALONE if alone else _OPEN
        turns = _OPEN_ALONE if alone else 1
        while self.blocks and not self.hold and self.open_blocks < limit and not self.out.full:
            if not turns:
                self.go_on()
                break
            turns -= 1
            self._block(self.blocks.popleft())
        if self.blocks:
            self._pause()
        elif self.paused and not (self.resting or self.closed or self.draining):
            self.paused = False
            self.conn.resume_reading()
        self.router.scheduler.worked(self, began, perf_counter())

    def _more(self) -> None:
        assert self.batch is not None
        if self.batch.more():
            self.batch = None
            self.release()
        elif not (self.batch.waits or self.out.full):
            self.go_on()

    def _pause(self) -> None:
        if not self.paused:
            self.paused = True
            self.conn.pause_reading()

    def _block(self, block: bytes) -> None:
        content = self.conn.open(block)
        spans = block_spans(content)
        self.open_blocks += 1
        if len(spans) == 1:
            self.begin(decode_client(self.session, content, *spans[0]), self, 0)
            return
        self.batch = Batch(self, content, spans)
        self.hold += 1
        self._more()

    def begin(self, t: ClientTransmission | TransmissionError, origin: Origin, index: int) -> None:
        if type(t) is TransmissionError:
            origin.put(index, t.corr_id, t.entity_id, encode_error(self.session.version, t.error))
            return
        assert type(t) is ClientTransmission
        kind = type(t.command)
        if kind is cmd.PING:
            origin.put(index, t.corr_id, b"", _PONG)
        elif kind is cmd.RSLV:
            origin.put(index, t.corr_id, b"", encode_error(origin.session.version, _NO_RESOLVER))
        else:
            if self.trace and self.router.tracer is not None and kind not in _TRACED_BY_THEMSELVES:
                origin = TracedOrigin(origin, self.router.tracer, t)
            OPS[kind](self, origin, t, index).begin()

    # Answers out: this is the origin of commands that come alone in their block.

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self.block_done()
        self.out.add(encode_server(self.session, corr_id, entity_id, reply))

    def answer(self, op: Op, reply: bytes) -> None:
        t = op.t
        self.open_blocks -= 1
        if self.blocks and not self.hold:
            self.go_on()
        self.out.add(encode_server(self.session, t.corr_id, t.entity_id, reply))

    def answer_sub(self, op: Op, reply: bytes, sub: Sub, entry: Entry) -> None:
        t = op.t
        self.block_done()
        answer = encode_server(self.session, t.corr_id, t.entity_id, reply)
        self.out.message_with([answer], self.out.hold(t.entity_id), t.entity_id, sub, entry)

    def detach(self, op: Op) -> None:
        self.block_done()

    def push(self, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        """An event, or an answer that comes on its own."""
        if not self.closed:
            self.out.add(encode_server(self.session, corr_id, entity_id, reply))

    def block_done(self) -> None:
        self.open_blocks -= 1
        if self.blocks and not self.hold:
            self.go_on()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A command's work that waits for the store, or for another router."""
        self.router.spawn(Charged(self, work))

    def ntf_gen(self, ntf_id: bytes) -> int | None:
        """The generation under which this connection has a notifier."""
        if self.service is not None:
            return self.epoch
        sub = self.ntf_subs.get(ntf_id)
        return None if sub is None else sub[0]

    @property
    def forwards(self) -> asyncio.Semaphore:
        """Commands for other routers under way at once."""
        if self._forwards is None:
            self._forwards = asyncio.Semaphore(self.router.config.proxy.client_concurrency)
        return self._forwards

    # The service.

    @asynccontextmanager
    async def taking_over(self) -> AsyncIterator[None]:
        """Redis has the new owner before this edge hears its epoch: events that come meanwhile are held back, and
        follow behind the answer to the command that took the service over."""
        self.takeover = ended = asyncio.Event()
        self.early = self.early or []
        try:
            yield
        finally:
            self.takeover = None
            ended.set()
            self.router.loop.call_soon(self._replay)

    def _replay(self) -> None:
        if self.takeover is not None:
            return  # it failed, and another has begun
        early, self.early = self.early, None
        for event in early or ():
            self.router.delivery.on_event(event)

    def end_service(self) -> None:
        """This connection does not own its service any more."""
        self.epoch = None
        self.service_subscribed = False
        if self.fold is not None:
            self.fold.stop()
        for rcv_id in [rcv_id for rcv_id, sub in self.subs.items() if not sub.prohibit]:
            del self.subs[rcv_id]
        self.out.waiting.clear()
        self.ntf_waiting.clear()

    @property
    def is_subscribed(self) -> bool:
        """Subscribed clients are never idle. (GET is no subscription.)"""
        return (
            bool(self.ntf_subs)
            or self.service_subscribed
            or self.totals.count > 0
            or any(not sub.prohibit for sub in self.subs.values())
        )

    def count_into(self, gauges: dict[str, int], now: int) -> None:
        gauges["outgoing_bytes"] += self.out.pending_bytes
        gauges["deferred"] += len(self.out.waiting)
        subs = count_subs(self.subs.values(), now, gauges)
        if self.service is None:
            gauges["subscriptions"] += subs
            gauges["subscribed_clients"] += bool(subs)
            gauges["ntf_subscriptions"] += len(self.ntf_subs)
            gauges["ntf_clients"] += bool(self.ntf_subs)
        elif self.epoch is not None:
            kind = "ntf_service" if self.service.role is cmd.ServiceRole.NOTIFIER else "service"
            gauges["ntf_services" if kind == "ntf_service" else "service_subscriptions"] += self.service_subscribed
            gauges[f"{kind}_queues"] += self.totals.count

    def drain(self) -> None:
        """Let the client go once what it has sent is answered: its queues have no owner after that."""
        if not self.draining:
            self.draining = True
            self._pause()
        if not self.open_blocks and not self.blocks:
            self.out.flush_now()
            self.conn.close()
