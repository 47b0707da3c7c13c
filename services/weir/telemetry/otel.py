"""Recording spans, on the OpenTelemetry SDK. `weir.telemetry.tracing` has the interface and the null objects.

A span's context is 25 bytes: trace id, span id and flags. Inbox events and stored messages carry the context, so the
spans of another edge that delivers the message belong to the same trace.

Attributes come from a closed vocabulary of numbers and protocol words. An id, a key, an address or a message body
cannot get into a span.
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
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace import Tracer as SdkTracer
from opentelemetry.trace import set_span_in_context as in_context

from weir.telemetry.tracing import NULL_SPAN, Span, Tracer

CONTEXT_LENGTH = 25
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NO_PARENT = Context()

# The attributes a span may have. `OtelSpan.set` drops every other attribute, and text that is not a protocol word.
ATTRIBUTES = frozenset(
    {
        "version",  # of the session
        "result",  # tag of a reply or an error
        "role",  # messaging, notifier
        "batch",  # transmissions in the block
        "edge_local",  # whether the queue's owner is a client of the edge that handles the command
        "count",  # queues of the service
        "ready",  # queues of the service that had a message at SOKS
        "delivered",
        "left",
        "drift",  # ok, more, fewer, diff
        "expired",
        "quota",
        "deferred",  # the message waited for room in the outgoing queue
        "notification",
        "waited_ms",
        "fenced",
    }
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_ ]{0,31}")
refused = 0  # attributes that `OtelSpan.set` dropped, since the process started


class OtelSpan(Span):
    """One recorded span."""

    __slots__ = ("_span", "_tracer")

    recording = True

    def __init__(self, tracer: SdkTracer, span: SdkSpan) -> None:
        self._tracer = tracer
        self._span = span

    @property
    def sdk_span(self) -> SdkSpan:
        return self._span

    def context(self) -> bytes:
        ctx = self._span.get_span_context()
        return ctx.trace_id.to_bytes(16, "big") + ctx.span_id.to_bytes(8, "big") + bytes([ctx.trace_flags])

    def child(self, name: str) -> Span:
        span = self._tracer.start_span(name, context=in_context(self._span), kind=SpanKind.INTERNAL)
        return OtelSpan(self._tracer, span)

    def set(self, name: str, value: int | bool | str) -> None:
        global refused
        if name not in ATTRIBUTES or (isinstance(value, str) and not _WORD.fullmatch(value)):
            refused += 1  # a bug in the caller, but no reason to fail a command
            return
        self._span.set_attribute(f"weir.{name}", value)

    def end(self, error: str | None = None) -> None:
        if error is not None:
            self.set("result", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class OtelTracer(Tracer):
    """Starts recorded spans and exports them. `instance` tells the edges of a fleet apart."""

    recording = True

    def __init__(self, exporter: SpanExporter, *, ratio: float, instance: str, batch: bool = True) -> None:
        self._ratio = ratio
        self._random = random.Random().random
        self._provider = TracerProvider(
            ALWAYS_ON,  # `sample` decides before a span is made: a span that the SDK drops costs 13 µs
            Resource({"service.name": "weir-edge", "service.instance.id": instance}),
            shutdown_on_exit=False,
        )
        processor = BatchSpanProcessor(exporter) if batch else SimpleSpanProcessor(exporter)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("weir")

    def sample(self, name: str, *, always: bool = False) -> Span:
        return self.start(name) if always or self._random() < self._ratio else NULL_SPAN

    def start(self, name: str, parent: bytes | Span | None = None, links: Sequence[bytes] = ()) -> Span:
        if isinstance(parent, OtelSpan):
            context = in_context(parent.sdk_span)
        elif isinstance(parent, bytes) and (remote := _read(parent)) is not None:
            context = in_context(NonRecordingSpan(remote))
        else:
            context = _NO_PARENT
        targets = [Link(target) for link in links if (target := _read(link)) is not None]
        kind = SpanKind.INTERNAL if context else SpanKind.SERVER
        return OtelSpan(self._tracer, self._tracer.start_span(name, context=context, kind=kind, links=targets))

    def flush(self) -> None:
        self._provider.force_flush()

    def close(self) -> None:
        self._provider.shutdown()


def _read(context: bytes) -> SpanContext | None:
    """Decode a context; None if the bytes are not one (an untraced message has an empty context)."""
    if len(context) != CONTEXT_LENGTH:
        return None
    trace_id, span_id = int.from_bytes(context[:16], "big"), int.from_bytes(context[16:24], "big")
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=_SAMPLED) if trace_id and span_id else None
