"""Spans for the router, behind a hook small enough that `tracing is None` is all it costs when it is off.

A context (25 bytes: trace id, span id, flags) travels in inbox events and stored messages, so that what another edge
does with a message belongs to the same trace. Attributes are a closed vocabulary of numbers and protocol words:
an id, a key, an address or a body cannot be put into a span.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import set_span_in_context as in_context

CONTEXT_LENGTH = 25
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NO_PARENT = Context()

# Everything a span may say. What is not here, or is text and no protocol word, is left out and counted in `refused`.
ATTRIBUTES = frozenset(
    {
        "version",  # of the session
        "result",  # a reply's or an error's tag
        "role",  # messaging, notifier
        "batch",  # transmissions in the block
        "edge_local",  # whether the owner is on the calling edge
        "count",  # queues of the service
        "ready",  # of them, those with a message at SOKS
        "delivered",
        "left",
        "partition",
        "drift",  # ok, more, fewer, diff
        "expired",
        "quota",
        "deferred",  # waited for room in the outgoing queue
        "notification",
        "waited_ms",
        "fenced",
    }
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_ ]{0,31}")
refused = 0


class Span:
    """One recorded span. Ended exactly once, by `end`."""

    __slots__ = ("_otel",)

    def __init__(self, otel: OtelSpan) -> None:
        self._otel = otel

    def context(self) -> bytes:
        """What to store with a message or send in an inbox event."""
        ctx = self._otel.get_span_context()
        return ctx.trace_id.to_bytes(16, "big") + ctx.span_id.to_bytes(8, "big") + bytes([ctx.trace_flags])

    def set(self, name: str, value: int | bool | str) -> None:
        global refused
        if name not in ATTRIBUTES or (isinstance(value, str) and not _WORD.fullmatch(value)):
            refused += 1  # a mistake in the code, and no reason to fail a command
            return
        self._otel.set_attribute(f"weir.{name}", value)

    def end(self, error: str | None = None) -> None:
        """`error` is an error's tag (AUTH, QUOTA, …)."""
        if error is not None:
            self.set("result", error)
            self._otel.set_status(Status(StatusCode.ERROR))
        self._otel.end()


class Tracer:
    """Starts spans; whoever starts a root asks `sampled` first, so that what is not traced costs a random number."""

    def __init__(self, exporter: SpanExporter, *, ratio: float, instance: str, batch: bool = True) -> None:
        self._ratio = ratio
        self._random = random.Random().random
        self._provider = TracerProvider(
            ALWAYS_ON,
            Resource({"service.name": "weir-edge", "service.instance.id": instance}),
            shutdown_on_exit=False,
        )
        processor = BatchSpanProcessor(exporter) if batch else SimpleSpanProcessor(exporter)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("weir")

    def sampled(self) -> bool:
        return self._random() < self._ratio

    def start(self, name: str, parent: bytes | Span | None = None, links: Sequence[bytes] = ()) -> Span:
        """A root without `parent`, else a child of a span here (Span) or on another edge (a context).

        `links` are contexts of other traces this one continues; an empty one (not traced) is passed over.
        """
        if isinstance(parent, Span):
            context = in_context(parent._otel)
        elif parent and (remote := _read(parent)) is not None:
            context = in_context(NonRecordingSpan(remote))
        else:
            context = _NO_PARENT
        targets = [Link(target) for link in links if (target := _read(link)) is not None]
        kind = SpanKind.INTERNAL if context else SpanKind.SERVER
        return Span(self._tracer.start_span(name, context=context, kind=kind, links=targets))

    def flush(self) -> None:
        self._provider.force_flush()

    def close(self) -> None:
        """Exports what is waiting and stops."""
        self._provider.shutdown()


def _read(context: bytes) -> SpanContext | None:
    if len(context) != CONTEXT_LENGTH:
        return None
    trace_id, span_id = int.from_bytes(context[:16], "big"), int.from_bytes(context[16:24], "big")
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=_SAMPLED) if trace_id and span_id else None
