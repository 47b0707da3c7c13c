"""The spans of two edges for one message and for one SUBS, read back from a collector."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, Peer, Queue
from tests.support.collector import Collector, SpanSeen, collector
from weir.crypto.certificates import make_self_signed
from weir.router.config import RouterConfig
from weir.telemetry import otel
from weir.telemetry.settings import Telemetry
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.ids_hash import EMPTY
from weir.wire.smp.replies import ALLS, MSG, OK

QUEUES = 12


@pytest.fixture
async def collected() -> AsyncIterator[Collector]:
    async with collector() as running:
        yield running


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(trace_sessions="all")


@pytest.fixture
def config(config: RouterConfig, collected: Collector, telemetry: Telemetry) -> RouterConfig:
    return replace(config, telemetry=replace(telemetry, traces=collected.url))


async def flush(fleet: Fleet) -> None:
    for edge in fleet.edges:
        assert edge._tracer is not None
        await asyncio.to_thread(edge._tracer.flush)


def only(spans: list[SpanSeen]) -> SpanSeen:
    (span,) = spans
    return span


async def test_a_message_across_edges_is_three_linked_traces(fleet: Fleet, collected: Collector) -> None:
    recipient, sender = await fleet.client(0), await fleet.client(1)
    queue = await recipient.new()
    assert await sender.send(queue, b"hello") == OK()
    assert await recipient.text(queue) == b"hello"
    await flush(fleet)
    send, store = only(collected.named("SEND")), only(collected.named("store.send"))
    msg, ack = only(collected.named("MSG")), only(collected.named("ACK"))
    assert send.parent == b"" and store.parent == send.id and store.trace == send.trace
    assert msg.links == ack.links == (send.trace,)
    assert len({send.trace, msg.trace, ack.trace}) == 3
    assert send.edge == store.edge == fleet[1].edge_id
    assert msg.edge == ack.edge == fleet[0].edge_id


async def test_a_message_that_waited_still_points_to_its_send(fleet: Fleet, collected: Collector) -> None:
    recipient, sender = await fleet.client(0), await fleet.client(1)
    queue = await recipient.new(subscribe=False)
    assert await sender.send(queue, b"hello") == OK()
    await recipient.sub(queue)
    await recipient.msg(queue)
    await flush(fleet)
    assert only(collected.named("MSG")).links == (only(collected.named("SEND")).trace,)


async def service_with_messages(fleet: Fleet, service: ServiceCredentials) -> list[Queue]:
    owner = await fleet.client(0, service=service)
    queues = [await owner.new() for _ in range(QUEUES)]
    await owner.close()
    sender = await fleet.client(1)
    for queue in queues:
        assert await sender.send(queue, b"hello") == OK()
    return queues


async def all_messages(client: Peer) -> int:
    await client.smp.subscribe_service(ServiceRole.MESSAGING, QUEUES, EMPTY)
    messages = 0
    while (event := await client.event()).reply != ALLS():
        assert isinstance(event.reply, MSG)
        messages += 1
    return messages


async def test_subs_to_alls_is_one_trace(fleet: Fleet, collected: Collector) -> None:
    service = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    await service_with_messages(fleet, service)
    client = await fleet.client(1, service=service)
    assert await all_messages(client) == QUEUES
    await flush(fleet)
    subs = only(collected.named("SUBS"))
    trace = [span for span in collected.spans if span.trace == subs.trace]
    by_id = {span.id: span for span in trace}
    assert {span.edge for span in trace} == {fleet[1].edge_id}

    def parent(span: SpanSeen) -> str:
        return by_id[span.parent].name

    for name in ("takeover", "SOKS", "ALLS"):
        assert parent(only([span for span in trace if span.name == name])) == "SUBS"
    pages = [span for span in trace if span.name == "fold.page"]
    assert pages and all(parent(page) == "SUBS" for page in pages)
    messages = [span for span in trace if span.name == "MSG"]
    assert len(messages) == QUEUES
    assert {parent(message) for message in messages} <= {"fold.page", "SUBS"}
    sends = {span.trace for span in collected.named("SEND")}
    assert {link for message in messages for link in message.links} == sends
    assert subs.attributes["weir.count"] == QUEUES
    assert subs.attributes["weir.ready"] == QUEUES
    assert subs.attributes["weir.drift"] == "diff"
    assert sum(int(str(page.attributes["weir.delivered"])) for page in pages) == QUEUES


@pytest.mark.parametrize("telemetry", [Telemetry(sample_ratio=0.0, trace_sessions="services")])
async def test_services_alone_are_traced_when_asked(fleet: Fleet, collected: Collector) -> None:
    service = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    await service_with_messages(fleet, service)
    assert await all_messages(await fleet.client(1, service=service)) == QUEUES
    await flush(fleet)
    assert collected.named("SUBS") and not collected.named("SEND")


@pytest.mark.parametrize("telemetry", [Telemetry(sample_ratio=0.0, trace_sessions="off")])
async def test_one_client_can_be_traced_while_it_runs(fleet: Fleet, collected: Collector) -> None:
    recipient, sender, other = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await recipient.new()
    await sender.smp.ping()
    first = min(client.id for client in fleet[1].clients())
    assert fleet[1].trace_session(first, True)
    for peer in (sender, other):
        assert await peer.send(queue, b"hello") == OK()
        await recipient.text(queue)
    await flush(fleet)
    only(collected.named("SEND"))
    assert len(collected.named("MSG")) == 1  # the MSG of that SEND


async def test_nothing_was_refused_by_the_vocabulary(fleet: Fleet, collected: Collector) -> None:
    before = otel.refused
    service = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    await service_with_messages(fleet, service)
    await all_messages(await fleet.client(1, service=service))
    assert otel.refused == before


def test_off_is_a_comparison(config: RouterConfig, tmp_path: Path) -> None:
    """Without [telemetry] traces the router has no tracer at all, and the SDK is not even imported."""
    import subprocess
    import sys

    code = "import sys, weir.router.edge; print('opentelemetry.sdk.trace' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "False\n"
