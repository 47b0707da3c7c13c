"""Spans: trees, links, contexts that travel, and a vocabulary that cannot leak."""

import os
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from weir.telemetry import otel
from weir.telemetry.otel import ATTRIBUTES, CONTEXT_LENGTH, OtelTracer
from weir.telemetry.setup import open_tracing
from weir.telemetry.tracing import NULL_SPAN


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> Iterator[OtelTracer]:
    tracer = OtelTracer(exporter, ratio=1, instance="edge-one", batch=False)
    yield tracer
    tracer.close()


def spans(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def trace_id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id


def test_children_belong_to_their_parents_trace(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    root = tracer.start("SUBS")
    page = tracer.start("fold.page", root)
    tracer.start("MSG", page).end()
    page.end()
    root.end()
    found = spans(exporter)
    assert len({trace_id(span) for span in found.values()}) == 1
    assert found["SUBS"].parent is None
    assert found["SUBS"].kind is SpanKind.SERVER
    parent, page_context = found["MSG"].parent, found["fold.page"].get_span_context()
    assert parent is not None and page_context is not None
    assert parent.span_id == page_context.span_id


def test_a_context_crosses_edges(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    """Stored with a message by one edge, it makes another edge's span a child, or a linked trace of its own."""
    send = tracer.start("SEND")
    context = send.context()
    send.end()
    other_exporter = InMemorySpanExporter()
    other = OtelTracer(other_exporter, ratio=0, instance="edge-two", batch=False)
    other.start("store.send", context).end()
    other.start("MSG", links=[context, b""]).end()
    other.close()
    there, here = spans(other_exporter), spans(exporter)["SEND"]
    assert len(context) == CONTEXT_LENGTH
    assert trace_id(there["store.send"]) == trace_id(here)
    assert trace_id(there["MSG"]) != trace_id(here)
    (link,) = there["MSG"].links
    assert link.context.trace_id == trace_id(here)
    assert there["MSG"].resource.attributes["service.instance.id"] == "edge-two"


@pytest.mark.parametrize("context", [b"", b"short", bytes(25), bytes(26)])
def test_what_is_no_context_is_passed_over(tracer: OtelTracer, exporter: InMemorySpanExporter, context: bytes) -> None:
    tracer.start("MSG", context, links=[context]).end()
    span = spans(exporter)["MSG"]
    assert span.parent is None and not span.links


def test_an_error_is_its_tag(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    tracer.start("SEND").end("QUOTA")
    span = spans(exporter)["SEND"]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes == {"weir.result": "QUOTA"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queue", 1),
        ("address", "OK"),
        ("result", "3f9c0a"),
        ("result", "smp://x@y"),
        ("result", ""),
        ("result", "A" * 33),
        ("result", "YWJjZGVmZ2hpamts="),
    ],
)
def test_nothing_outside_of_the_vocabulary_gets_into_a_span(
    tracer: OtelTracer, exporter: InMemorySpanExporter, name: str, value: int | str
) -> None:
    before = otel.refused
    span = tracer.start("SEND")
    span.set(name, value)
    span.end()
    assert spans(exporter)["SEND"].attributes == {}
    assert otel.refused == before + 1


def test_the_vocabulary_names_no_ids() -> None:
    assert not {name for name in ATTRIBUTES if name.endswith("id") or "key" in name or "address" in name}


def test_sampling_is_by_ratio() -> None:
    for ratio, low, high in ((0.0, 0, 0), (1.0, 1000, 1000), (0.5, 400, 600)):
        tracer = OtelTracer(InMemorySpanExporter(), ratio=ratio, instance="", batch=False)
        assert low <= sum(tracer.sample("SEND").recording for _ in range(1000)) <= high
        tracer.close()


def test_a_notification_has_one_trace_on_both_routers(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    nonce, other = bytes(range(24)), InMemorySpanExporter()
    send = tracer.sample("SEND", nonce=nonce)
    tracer.begin_notification(nonce, send)
    tracer.sample("NEW").end()
    send.end()
    second = OtelTracer(other, ratio=1, instance="edge-two", batch=False)
    second.sample_notification("NMSG", nonce).end()
    second.sample_notification("NMSG of another", bytes(24)).end()
    second.close()
    sender, notified = spans(exporter), spans(other)
    root, nmsg = sender["notification"], notified["NMSG"]
    assert trace_id(root) == trace_id(nmsg)
    assert root.context is not None and nmsg.parent is not None and nmsg.parent.span_id == root.context.span_id
    assert [link.context.trace_id for link in root.links] == [trace_id(sender["SEND"])]
    traces = {trace_id(one) for one in (*sender.values(), *notified.values())}
    assert len(traces) == 4, "ids of other traces are random"
    assert nonce.hex() not in root.to_json() + nmsg.to_json()


def test_routers_sample_the_same_notifications() -> None:
    tracers = [OtelTracer(InMemorySpanExporter(), ratio=0.5, instance="", batch=False) for _ in range(2)]
    nonces = [os.urandom(24) for _ in range(1000)]
    sends = [tracers[0].sample("SEND", nonce=nonce).recording for nonce in nonces]
    assert sends == [tracers[1].sample_notification("NMSG", nonce).recording for nonce in nonces]
    assert 400 <= sum(sends) <= 600
    for tracer in tracers:
        tracer.close()


def test_a_span_starts_its_own_children(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    root = tracer.sample("SEND")
    root.child("store.send").end()
    root.end()
    found = spans(exporter)
    assert trace_id(found["store.send"]) == trace_id(found["SEND"])
    assert found["store.send"].kind is SpanKind.INTERNAL


def test_what_is_not_sampled_is_the_null_span() -> None:
    tracer = OtelTracer(InMemorySpanExporter(), ratio=0, instance="", batch=False)
    assert tracer.sample("SEND") is NULL_SPAN
    assert tracer.sample("SEND", always=True).recording
    tracer.close()


def test_a_parent_that_records_nothing_makes_a_root(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    tracer.start("MSG", NULL_SPAN).end()
    assert spans(exporter)["MSG"].parent is None


def test_exporters_by_scheme() -> None:
    for url in ("http://127.0.0.1:1", "zipkin+http://127.0.0.1:1"):
        tracer = open_tracing(url, ratio=1, instance="x")
        assert tracer.recording
        tracer.close()
