"""The fold when its edge dies, when its client leaves, and how far it is."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.processes import Deployment, EdgeProcess
from tests.router.fleet import Fleet, Peer, Queue
from tests.services.service import (
    Service,
    Session,
    assert_exact,
    make_queues,
    messages,
    narrow_edge,
    read_again,
    stop_reading,
    text,
    until,
)
from weir.client.smp import Request, SmpClient
from weir.redis.embedded import Embedded
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import ALLS, MSG, OK, SOKS


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edges")


@pytest.fixture
async def edges(redis: Embedded, directory: Path) -> AsyncIterator[list[EdgeProcess]]:
    """Two processes."""
    deployment = Deployment(directory, f"{redis.url}?db=2", {"WEIR_QUEUES_FOLD_PAGE": "8"})
    started = [EdgeProcess(deployment) for _ in range(2)]
    await asyncio.gather(*(edge.start() for edge in started))
    yield started
    for edge in started:
        edge.kill()


async def connect(edge: EdgeProcess, service: Service | None = None) -> Session:
    smp = await SmpClient.connect(edge.address, service=None if service is None else service.credentials)
    return Session(smp, service or Service())


async def fill(sender: Peer, queues: list[Queue], rounds: int) -> None:
    for n in range(rounds):
        requests = [Request(cmd.SEND(False, b"%d" % n), queue.snd_id) for queue in queues]
        assert await sender.smp.send_many(requests) == [OK()] * len(queues)


@pytest.mark.parametrize("taken", [1, 40, 110])
async def test_an_edge_that_dies_in_the_middle_of_a_fold(edges: list[EdgeProcess], taken: int) -> None:
    """The next SUBS delivers everything that was not acknowledged, once and in order."""
    rng = random.Random(taken)
    service = Service()
    maker, sender = await connect(edges[1], service), await connect(edges[1])
    queues = {queue.rcv_id: queue for queue in await make_queues(maker, 120)}
    await maker.close()
    await fill(sender, list(queues.values()), 3)

    first = await connect(edges[0], service)
    done: dict[bytes, list[bytes]] = {rcv_id: [] for rcv_id in queues}
    unsure: dict[bytes, bytes] = {}  # acknowledged, and the edge died before it answered
    assert await first.subs() == SOKS(*service.totals)
    for _ in range(taken):
        event = await first.event()
        assert isinstance(event.reply, MSG)
        queue = queues[event.entity_id]
        if rng.random() < 0.6:
            reply = await first.ack(queue, event.reply.msg_id)
            done[queue.rcv_id].append(text(queue, event.reply))
            assert isinstance(reply, MSG), "the next one came with the answer"
    event = await first.event()
    assert isinstance(event.reply, MSG)
    queue = queues[event.entity_id]
    first.smp.submit(cmd.ACK(event.reply.msg_id), queue.rcv_id, queue.rcv_key, lambda answer: None)
    unsure[queue.rcv_id] = text(queue, event.reply)
    edges[0].kill()
    await first.smp.closed.wait()

    second = await connect(edges[1], service)
    assert await second.subs() == SOKS(*service.totals)
    left = {rcv_id: [b"%d" % n for n in range(len(done[rcv_id]), 3)] for rcv_id in queues}
    alls = 0
    while left or not alls:
        event = await second.event()
        if event.reply == ALLS():
            alls += 1
            continue
        assert isinstance(event.reply, MSG)
        expected = left.pop(event.entity_id)
        bodies = await second.ack_all(queues[event.entity_id], event.reply)
        if event.entity_id in unsure and bodies == expected[1:]:
            continue  # the ACK was executed before
        assert bodies == expected
    assert alls == 1
    await second.silence()
    assert await second.subs() == SOKS(*service.totals)


async def test_a_client_that_leaves_in_the_middle_of_a_fold(fleet: Fleet) -> None:
    service = Service()
    session = await service.connect(fleet)
    queues = {queue.rcv_id: queue for queue in await make_queues(session, 100)}
    await session.close()
    sender = await fleet.client(1)
    await fill(sender, list(queues.values()), 1)
    for edge in (0, 1, 0):
        leaver = await service.connect(fleet, edge)
        assert await leaver.subs() == SOKS(*service.totals)
        await leaver.event()
        leaver.smp.connection.abort()
    session = await service.connect(fleet, 1)
    given = messages(await session.resume())
    assert set(given) == set(queues)
    for rcv_id, message in given.items():
        assert await session.ack(queues[rcv_id], message.msg_id) == OK()
    await session.silence()
    await assert_exact(fleet[0], session.service_id, service.ids)
    await until(lambda: not fleet[0].router.folds and not fleet[1].router.folds)


async def test_progress(fleet: Fleet) -> None:
    """Ready at SOKS, delivered, left: in the gauges and in what `weir service show` reads."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 80)
    await session.close()
    sender = await fleet.client(1)
    await fill(sender, queues, 1)
    narrow = await narrow_edge(fleet, queues=replace(fleet.config.queues, fold_page=8))
    session = await service.connect(fleet, narrow)
    subscribed = asyncio.create_task(session.subs())
    first = await session.event()
    stop_reading(session)
    assert await subscribed == SOKS(*service.totals)
    client = next(iter(fleet[narrow].router.clients.values()))
    await until(lambda: client.outgoing.full)
    gauges = fleet[narrow].gauges()
    assert (gauges["folds"], gauges["fold_ready"]) == (1, 80)
    assert 0 < gauges["fold_delivered"] < 80
    info = await fleet[0].store.registry.get_service(session.service_id)
    assert info is not None and info.fold is not None
    assert info.fold.ready == 80 and not info.fold.done
    assert info.fold.delivered + info.fold.left == 80
    assert info.fold.edge == fleet[narrow].edge_id
    assert info.totals.owner is not None and info.totals.owner.startswith(fleet[narrow].edge_id)

    read_again(session)
    events = await session.fold()
    assert {event.entity_id for event in [first, *events]} == service.ids
    info = await fleet[0].store.registry.get_service(session.service_id)
    assert info is not None and info.fold is not None
    assert info.fold.done and (info.fold.ready, info.fold.delivered, info.fold.left) == (80, 80, 0)
    assert fleet[narrow].gauges()["folds"] == 0
