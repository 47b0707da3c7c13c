"""Recording spans, on the OpenTelemetry SDK. `weir.telemetry.tracing` has the interface and the null objects.

A span's context is 25 bytes: trace id, span id and flags. Inbox events and stored messages carry the context, so the
spans of another edge that delivers the message belong to the same trace.

Nothing of a trace goes from an SMP router to a notification router. Both know the nonce of a notification, which is
random and belongs to nothing else. The ids of the notification's trace are a hash of the nonce. So both routers put
their spans into the same trace, and both sample the same notifications.

Attributes come from a closed vocabulary of numbers and protocol words. An id, a key, an address or a message body
cannot get into a span.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from hashlib import sha256

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
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
WORD = re.compile(r"[A-Za-z_][A-Za-z_ ]{0,31}")
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
        if name not in ATTRIBUTES or (isinstance(value, str) and not WORD.fullmatch(value)):
            refused += 1  # a bug in the caller, but no reason to fail a command
            return
        self._span.set_attribute(f"weir.{name}", value)

    def end(self, error: str | None = None) -> None:
        if error is not None:
            self.set("result", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class _Ids(RandomIdGenerator):
    """Random ids, unless `given` has the context that the next root span shall have."""

    given: SpanContext | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.given is None else self.given.trace_id

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.given is None else self.given.span_id


class OtelTracer(Tracer):
    """Starts recorded spans and exports them. `instance` tells the edges of a fleet apart."""

    recording = True

    def __init__(self, exporter: SpanExporter, *, ratio: float, instance: str, batch: bool = True) -> None:
        self._ratio = ratio
        self._random = random.Random().random
        self._ids = _Ids()
        self._provider = TracerProvider(
            ALWAYS_ON,  # `sample` decides before a span is made: a span that the SDK drops costs 13 µs
            Resource({"service.name": "weir-edge", "service.instance.id": instance}),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        processor = BatchSpanProcessor(exporter) if batch else SimpleSpanProcessor(exporter)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("weir")

    def sample(self, name: str, *, always: bool = False, nonce: bytes = b"") -> Span:
        return self.start(name) if always or self._draw(nonce) < self._ratio else NULL_SPAN

    def _draw(self, nonce: bytes) -> float:
        return int.from_bytes(nonce[:6], "big") / 2**48 if nonce else self._random()

    def begin_notification(self, nonce: bytes, send: Span) -> None:
        self._ids.given = _read(_notification_context(nonce))
        try:
            self.start("notification", links=[send.context()]).end()
        finally:
            self._ids.given = None

    def sample_notification(self, name: str, nonce: bytes) -> Span:
        return self.start(name, _notification_context(nonce)) if self._draw(nonce) < self._ratio else NULL_SPAN

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


def _notification_context(nonce: bytes) -> bytes:
    return sha256(b"weir notification trace" + nonce).digest()[: CONTEXT_LENGTH - 1] + b"\1"


def _read(context: bytes) -> SpanContext | None:
    """Decode a context; None if the bytes are not one (an untraced message has an empty context)."""
    if len(context) != CONTEXT_LENGTH:
        return None
    trace_id, span_id = int.from_bytes(context[:16], "big"), int.from_bytes(context[16:24], "big")
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=_SAMPLED) if trace_id and span_id else None
