"""One client's conversation with the router, in three parts that know little of each other:

    incoming       blocks, their order, holds                        (runtime/incoming.py, session/block.py)
    subscriptions  queues, notifiers, the ownership of a service     (session/subscriptions.py)
    outgoing       answers, events, messages                         (session/outgoing.py)

The session itself connects the parts: it decodes a block, finds the handler of each command (router/commands), and is
the origin of commands that come alone in their block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from weir.router.commands.handler import Handler, Origin, PublicKeyHandler, encode_error
from weir.router.commands.table import HANDLERS
from weir.router.commands.verification import Verifier
from weir.router.session.block import Block
from weir.router.session.outgoing import Outgoing
from weir.router.session.spans import TracedOrigin
from weir.router.session.subscriptions import Sub, Subscriptions
from weir.router.store.records import Entry
from weir.runtime.incoming import Incoming
from weir.runtime.turns import Charged, Share
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import SOK
from weir.wire.smp.transmission import (
    ClientTransmission,
    TransmissionError,
    block_spans,
    decode_client,
    encode_server,
)

if TYPE_CHECKING:
    from weir.router.commands.send import SendHandler
    from weir.router.commands.sub import SubBatch
    from weir.router.router import Shared
    from weir.router.stats import ServiceUse
    from weir.transport.smp import SmpConnection

_ROLES = {ServiceRole.MESSAGING: "messages", ServiceRole.NOTIFIER: "notifications"}


class Session:
    """One client's conversation. The transport calls `on_blocks`, `on_writable` and `on_closed`."""

    __slots__ = (
        "_forwards",
        "closed",
        "conn",
        "draining",
        "forwarding",
        "framing",
        "id",
        "incoming",
        "on_blocks",
        "outgoing",
        "sends",
        "service",
        "shared",
        "sok",
        "sub_batch",
        "subscriptions",
        "traced",
        "use",
        "verifier",
    )

    def __init__(self, shared: Shared, conn: SmpConnection) -> None:
        self.shared = shared
        self.conn = conn
        self.id = conn.id
        self.framing = conn.session
        self.service = conn.service
        self.verifier = Verifier(conn.session_key, conn.service)
        service_id = None if self.service is None else self.service.service_id
        self.sok = encode_reply(self.framing.version, SOK(service_id))
        self.subscriptions = Subscriptions(conn.service)
        self.use = _use(shared, conn)
        self.outgoing = Outgoing(conn, shared, self.subscriptions, self.use)
        share: Share[PublicKeyHandler] = Share(shared.turns, conn.abort)
        self.incoming = Incoming(conn, shared.turns, share, self.outgoing, self._begin_block)
        self.on_blocks = self.incoming.on_blocks
        self.sends: dict[bytes, list[SendHandler]] = {}  # sender id → SENDs that are not answered, in their order
        self.sub_batch: SubBatch | None = None  # SUBs that are not sent to the store yet
        self._forwards: asyncio.Semaphore | None = None
        self.forwarding = 0  # commands for other routers that wait for their turn
        self.closed = False
        self.draining = False
        self.traced = False  # every command of this session is traced

    # The transport's side.

    def on_writable(self) -> None:
        self.outgoing.on_writable()
        self.shared.notifications.on_writable(self)
        self.incoming.schedule()

    def on_closed(self) -> None:
        self.closed = self.outgoing.closed = True
        self.incoming.close()
        self.sends.clear()
        self.shared.on_closed(self)

    # Commands.

    def _begin_block(self, sealed: bytes) -> Block | None:
        content = self.conn.open(sealed)
        spans = block_spans(content)
        if len(spans) > 1:
            return Block(self, content, spans)
        self.dispatch(decode_client(self.framing, content, *spans[0]), self, 0)
        return None

    def dispatch(self, t: ClientTransmission | TransmissionError, origin: Origin, index: int) -> None:
        """Begin a command that came from `origin`."""
        if type(t) is TransmissionError:
            self.shared.answers.unreadable(t.error)
            origin.put(index, t.corr_id, t.entity_id, encode_error(origin.framing.version, t.error))
            return
        assert type(t) is ClientTransmission
        handler = HANDLERS[t.command.__class__]
        if self.traced and not handler.traces_itself:
            origin = TracedOrigin(origin, self.shared.tracer, t)
        handler(self, origin, t, index).begin()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a command's work that waits for Redis or for another router. Its CPU time is charged to this session."""
        self.shared.spawn(Charged(self.incoming.share, work))

    # The origin of commands that come alone in their block.

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self.incoming.block_answered()
        self.outgoing.add(encode_server(self.framing, corr_id, entity_id, reply))

    def answer(self, handler: Handler, reply: bytes) -> None:
        t = handler.t
        self.shared.answers.by_command[t.command.__class__] += 1
        self.incoming.block_answered()
        self.outgoing.add(encode_server(self.framing, t.corr_id, t.entity_id, reply))

    def answer_sub(self, handler: Handler, reply: bytes, sub: Sub, entry: Entry) -> None:
        t = handler.t
        self.shared.answers.by_command[t.command.__class__] += 1
        self.incoming.block_answered()
        answer = encode_server(self.framing, t.corr_id, t.entity_id, reply)
        outgoing = self.outgoing
        outgoing.message_with([answer], outgoing.barrier(t.entity_id), t.entity_id, sub, entry)

    def detach(self, handler: Handler) -> None:
        self.incoming.block_answered()

    # Questions and requests of the edge.

    @property
    def forwards(self) -> asyncio.Semaphore:
        """Limits the commands for other routers that this client may have in progress."""
        if self._forwards is None:
            self._forwards = asyncio.Semaphore(self.shared.config.proxy.client_concurrency)
        return self._forwards

    @property
    def is_subscribed(self) -> bool:
        """Whether the client waits for messages, and so is never idle."""
        return self.subscriptions.any

    def end_service(self) -> None:
        """Another session owns this session's service now."""
        self.subscriptions.lose_service()
        if self.outgoing.source is not None:
            self.outgoing.source.stop()
        self.outgoing.waiting.clear()

    def count_into(self, gauges: dict[str, int], now: int) -> None:
        """Add this session to an edge's gauges."""
        outgoing = self.outgoing
        if pending := outgoing.pending_bytes:
            gauges["outgoing_bytes"] += pending
        if outgoing.waiting:
            gauges["deferred"] += len(outgoing.waiting)
        self.subscriptions.count_into(gauges, now)

    def drain(self) -> None:
        """Close the connection as soon as everything that came is answered. Its queues then have no owner."""
        if not self.draining:
            self.draining = True
            self.incoming.stop_reading()
        if self.incoming.idle:
            self.outgoing.flush_now()
            self.conn.close()


def _use(shared: Shared, conn: SmpConnection) -> ServiceUse | None:
    """Where the use of the session's service is counted."""
    service = conn.service
    role = None if service is None else _ROLES.get(service.role)
    return None if service is None or role is None else shared.stats.services.of(service.service_id, role)
