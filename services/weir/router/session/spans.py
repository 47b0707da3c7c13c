"""The span of a command, from its beginning to its answer.

SEND, SUBS and, in sessions that are traced whole, every other command begin a trace. A message carries the context of
its SEND. The MSG that delivers the message, on whatever edge, and the ACK that ends it are traces linked to the SEND.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.router.commands.handler import Handler, Origin
    from weir.router.session.subscriptions import Sub
    from weir.router.store.records import Entry
    from weir.telemetry.tracing import Tracer
    from weir.wire.smp.transmission import ClientTransmission


class TracedOrigin:
    """The origin of a traced command: the command's span ends with its answer. `link` is a trace that it continues."""

    __slots__ = ("_origin", "_span", "framing", "verifier")

    def __init__(self, origin: Origin, tracer: Tracer, t: ClientTransmission, link: bytes = b"") -> None:
        self._origin = origin
        self._span = tracer.start(type(t.command).__name__, links=(link,))
        self.framing = origin.framing
        self.verifier = origin.verifier

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self._end(reply)
        self._origin.put(index, corr_id, entity_id, reply)

    def answer(self, handler: Handler, reply: bytes) -> None:
        self._end(reply)
        self._origin.answer(handler, reply)

    def answer_sub(self, handler: Handler, reply: bytes, sub: Sub, entry: Entry) -> None:
        self._end(reply)
        self._origin.answer_sub(handler, reply, sub, entry)

    def detach(self, handler: Handler) -> None:
        self._span.end()
        self._origin.detach(handler)

    def _end(self, reply: bytes) -> None:
        words = reply.split(b" ", 2)
        self._span.end(words[1].decode("latin-1") if words[0] == b"ERR" else None)
