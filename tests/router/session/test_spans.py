"""Spans of a two-edge run, read back from a collector in memory."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.router.fleet import Fleet, sok
from tests.router.notifier import nkey, nmsg
from tests.router.service import credentials, subs, until_alls
from weir.router.config import RouterConfig
from weir.telemetry.otel import OtelTracer
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import NSUB
from weir.wire.smp.replies import OK, SOKS


class Traced:
    """A fleet whose edges trace into one place."""

    def __init__(self, fleet: Fleet, spans: InMemorySpanExporter) -> None:
        self.fleet = fleet
        self._spans = spans

    def take(self) -> list[ReadableSpan]:
        for edge in self.fleet.edges:
            assert edge.router.tracer is not None
            edge.router.tracer.flush()
        spans = list(self._spans.get_finished_spans())
        self._spans.clear()
        return spans


def tree(spans: list[ReadableSpan], root: ReadableSpan) -> dict[str, object]:
    """name → children, sorted; several of one name are counted."""
    children = [s for s in spans if s.parent is not None and s.parent.span_id == root.context.span_id]  # type: ignore[union-attr]
    found: dict[str, object] = {}
    for child in sorted(children, key=lambda s: s.name):
        found[child.name] = tree(spans, child)
    return found


def links(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


@pytest.fixture
async def traced(fleet: Fleet, config: RouterConfig) -> AsyncIterator[Traced]:
    spans = InMemorySpanExporter()
    for edge in fleet.edges:
        edge.router.tracer = edge._tracer = OtelTracer(spans, ratio=1.0, instance=edge.edge_id, batch=False)
    yield Traced(fleet, spans)


async def test_a_message_across_edges(traced: Traced) -> None:
    fleet = traced.fleet
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"1") == OK()
    assert await r.text(queue) == b"1"
    spans = traced.take()
    (send,) = [span for span in spans if span.name == "SEND"]
    (msg,) = [span for span in spans if span.name == "MSG"]
    (ack,) = [span for span in spans if span.name == "ACK"]
    assert tree(spans, send) == {"store.send": {}}
    assert send.context is not None
    assert links(msg) == links(ack) == [send.context.span_id], "linked to the SEND on the other edge"
    assert msg.resource.attributes["service.instance.id"] != send.resource.attributes["service.instance.id"]
    assert msg.parent is None and ack.parent is None


async def test_a_notification_across_edges(traced: Traced) -> None:
    fleet = traced.fleet
    r, s, n = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    await n.do(NSUB(), notifier.ntf_id, notifier.key)
    assert await s.send(queue, b"1", True) == OK()
    await nmsg(n, notifier)
    spans = traced.take()
    [send] = [span for span in spans if span.name == "SEND"]
    [begun] = [span for span in spans if span.name == "notification"]
    [sent] = [span for span in spans if span.name == "NMSG"]
    assert send.context is not None and begun.context is not None and sent.parent is not None
    assert links(begun) == [send.context.span_id]
    assert sent.parent.span_id == begun.context.span_id, "on the edge that has the notifier"


async def test_a_fold(traced: Traced) -> None:
    fleet = traced.fleet
    service = credentials()
    one, s = await fleet.client(0, service=service), await fleet.client(1)
    queues = [await one.new() for _ in range(5)]
    await one.close()
    for queue in queues:
        assert await s.send(queue, b"1") == OK()
    sends = [span for span in traced.take() if span.name == "SEND"]
    two = await fleet.client(1, service=service)
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await subs(two, 5, hash_) == SOKS(5, hash_)
    await until_alls(two, queues)
    await two.smp.ping()
    spans = traced.take()
    (root,) = [span for span in spans if span.name == "SUBS"]
    assert set(tree(spans, root)) == {"takeover", "SOKS", "fold.page", "ALLS"}
    assert len([span for span in spans if span.name == "fold.page"]) == 1, "all partitions are asked together"
    pages = {span.context.span_id for span in spans if span.name == "fold.page" and span.context}
    messages = [span for span in spans if span.name == "MSG"]
    assert len(messages) == 5
    assert all(span.parent is not None and span.parent.span_id in pages for span in messages)
    assert root.context is not None
    assert {span.context.trace_id for span in spans if span.context} == {root.context.trace_id}, "one trace"
    assert sorted(link for span in messages for link in links(span)) == sorted(
        span.context.span_id for span in sends if span.context
    )
    assert root.attributes is not None
    assert root.attributes["weir.count"] == 5 and root.attributes["weir.drift"] == "ok"


async def test_a_session_that_is_traced_whole(fleet: Fleet, config: RouterConfig) -> None:
    spans = InMemorySpanExporter()
    await fleet.add(telemetry=replace(config.telemetry, trace_sessions="all"))
    edge = fleet[2]
    edge.router.tracer = edge._tracer = OtelTracer(spans, ratio=0.0, instance=edge.edge_id, batch=False)
    c = await fleet.client(2)
    queue = await c.new()
    assert await c.sub(queue) == sok(c)
    assert [span.name for span in spans.get_finished_spans()] == ["NEW", "SUB"]
    spans.clear()
    (client,) = edge.router.clients
    assert edge.trace_session(client, False)
    assert await c.sub(queue) == sok(c)
    assert not edge.trace_session(client + 1, True), "no such client"
    assert spans.get_finished_spans() == ()


async def test_nothing_of_a_queue_is_in_a_span(traced: Traced) -> None:
    fleet = traced.fleet
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"the body of a message") == OK()
    assert await r.text(queue) == b"the body of a message"
    text = "".join(span.to_json() for span in traced.take())
    for secret in (queue.rcv_id, queue.snd_id, queue.rcv_key.public):
        assert secret.hex() not in text
    assert "127.0.0.1" not in text and "body" not in text
