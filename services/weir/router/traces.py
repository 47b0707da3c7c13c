"""What of a command is traced, where tracing is on. Nothing here runs otherwise.

SEND, SUBS and, in sessions that are traced whole, every other command begin a trace. A message carries the context of
its SEND; the MSG that delivers it, on whatever edge, and the ACK that ends it are traces linked to that one, or part of
the SUBS whose fold brought it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir.router.op import Op, Origin
from weir.router.subscriptions import Sub
from weir.store.records import Entry

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.telemetry.tracing import Span, Tracer
    from weir.wire.transmission import ClientTransmission


def trace_message(client: Client, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
    """MSG: one span, linked to its SEND."""
    tracer = client.router.tracer
    assert tracer is not None
    page = client.fold.page_of(rcv_id) if client.fold is not None else None
    sub.trace = entry.trace
    if page is not None or entry.trace:
        tracer.start("MSG", page, links=(entry.trace,)).end()


class TracedOrigin:
    """The origin of a command that is traced, maybe in continuation of another trace: its span ends with the answer."""

    __slots__ = ("_origin", "_span", "session", "verifier")

    def __init__(self, origin: Origin, tracer: Tracer, t: ClientTransmission, link: bytes = b"") -> None:
        self._origin = origin
        self._span: Span = tracer.start(type(t.command).__name__, links=(link,))
        self.session = origin.session
        self.verifier = origin.verifier

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self._end(reply)
        self._origin.put(index, corr_id, entity_id, reply)

    def answer(self, op: Op, reply: bytes) -> None:
        self._end(reply)
        self._origin.answer(op, reply)

    def answer_sub(self, op: Op, reply: bytes, sub: Sub, entry: Entry) -> None:
        self._end(reply)
        self._origin.answer_sub(op, reply, sub, entry)

    def detach(self, op: Op) -> None:
        self._span.end()
        self._origin.detach(op)

    def _end(self, reply: bytes) -> None:
        words = reply.split(b" ", 2)
        self._span.end(words[1].decode("latin-1") if words[0] == b"ERR" else None)
