"""The risks R-SVC-02, 03 and 05 … 09, each by its name (01 is in test_large.py, 04 in test_rotation.py)."""

import asyncio
import itertools
import os
import random
from dataclasses import replace

import pytest

from tests.router.fleet import Fleet, err, sok
from tests.services.service import (
    Service,
    assert_exact,
    make_queues,
    messages,
    narrow_edge,
    read_again,
    ready_ids,
    stop_reading,
    stored_ids,
    until,
)
from weir.client.agent import AgentConfig, SmpAgent
from weir.client.events import (
    AgentEvent,
    Message,
    ServiceAll,
    ServiceDisconnected,
    ServiceSubscribed,
    ServiceUnavailable,
    Subscribed,
)
from weir.client.smp import Request, ServiceSub
from weir.wire.address import SmpAddress
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, ENDS, MSG, OK, SOKS


async def test_r_svc_02_totals_do_not_drift(fleet: Fleet) -> None:
    """Clients that leave while their SUBs are on the way: the totals follow what was done, never what was asked."""
    rng = random.Random(2)
    plain = await fleet.client(1)
    queues = [await plain.new() for _ in range(60)]
    service = Service()
    for n in range(30):
        session = await service.connect(fleet, n % 2)
        chosen = rng.sample(queues, 20)
        answers = [
            asyncio.ensure_future(session.sub(queue)) for queue in chosen
        ]  # in one block, and the client is gone before most of them are answered
        await asyncio.sleep(rng.uniform(0, 0.004))
        session.smp.connection.abort()
        await asyncio.gather(*answers, return_exceptions=True)
        if rng.random() < 0.5:
            assert await plain.sub(rng.choice(queues)) == sok(plain)
    service_id = session.service_id
    await asyncio.sleep(0.1)
    found = await stored_ids(fleet[0], service_id)
    assert found <= {queue.rcv_id for queue in queues}
    await assert_exact(fleet[0], service_id, found)
    belongs = set()
    for queue in queues:
        record = await fleet[0].store.lookups.get_rcv(queue.rcv_id)
        assert record is not None
        if record.rcv_service == service_id:
            belongs.add(queue.rcv_id)
    assert belongs == found, "the set is what the queues' records say"
    service.ids = found
    session = await service.connect(fleet)
    assert await session.resume() == []


async def test_r_svc_03_a_displaced_fold_stops(fleet: Fleet) -> None:
    """At its next page; ACKs of the displaced client get NO_MSG; the new one gets everything, once."""
    service = Service()
    session = await service.connect(fleet)
    queues = {queue.rcv_id: queue for queue in await make_queues(session, 150)}
    await session.close()
    sender = await fleet.client(1)
    replies = await sender.smp.send_many([Request(cmd.SEND(False, b"m"), q.snd_id) for q in queues.values()])
    assert replies == [OK()] * len(queues)
    narrow = await narrow_edge(fleet, queues=replace(fleet.config.queues, fold_page=8))
    old = await service.connect(fleet, narrow)
    subscribed = asyncio.create_task(old.subs())
    events = [await old.event()]
    stop_reading(old)
    assert await subscribed == SOKS(*service.totals)
    client = next(iter(fleet[narrow].router.clients.values()))
    await until(lambda: client.outgoing.full)

    new = await service.connect(fleet, 1)
    given = messages(await new.resume())
    assert set(given) == set(queues)
    await until(lambda: not fleet[narrow].router.folds)
    read_again(old)
    while not isinstance(events[-1].reply, ENDS):
        events.append(await old.event())
    assert events[-1].reply == ENDS(*service.totals)
    assert ALLS() not in [event.reply for event in events], "its fold never ended"
    late = messages(events[:-1])
    assert len(late) < len(queues) / 2
    for rcv_id, message in late.items():
        assert await old.ack(queues[rcv_id], message.msg_id) == err(Simple.NO_MSG)
    for rcv_id, message in given.items():
        assert await new.ack(queues[rcv_id], message.msg_id) == OK()
    await old.silence()
    await new.silence()
    assert await ready_ids(fleet[0], old.service_id) == set()


async def test_r_svc_05_the_fold_blocks_nobody(fleet: Fleet) -> None:
    """While a fold waits for its client, that client's commands and everybody else's are answered."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 120)
    await session.close()
    sender = await fleet.client(1)
    replies = await sender.smp.send_many([Request(cmd.SEND(False, b"m"), q.snd_id) for q in queues])
    assert replies == [OK()] * len(queues)
    narrow = await narrow_edge(fleet, queues=replace(fleet.config.queues, fold_page=8))
    session = await service.connect(fleet, narrow)
    subscribed = asyncio.create_task(session.subs())
    first = await session.event()
    stop_reading(session)
    assert await subscribed == SOKS(*service.totals)
    client = next(iter(fleet[narrow].router.clients.values()))
    await until(lambda: client.outgoing.full)
    plain = await fleet.client(narrow)
    queue = await plain.new(secure=True)
    for n in range(20):
        assert await sender.send(queue, b"%d" % n) == OK()
        assert await plain.text(queue) == b"%d" % n
    assert fleet[narrow].gauges()["folds"] == 1
    assert client.outgoing.pending_bytes < 256 << 10
    read_again(session)
    # Commands of the service itself, between the messages of its fold.
    events, pings = [first], 0
    while not events or events[-1].reply != ALLS():
        events.append(await session.event())
        if len(events) % 10 == 0:
            await session.smp.ping()
            pings += 1
    assert pings > 5
    assert set(messages(events[:-1])) == service.ids


async def test_r_svc_06_nothing_is_decided_by_the_hash(fleet: Fleet) -> None:
    """Two sets of the same hash would look alike to a client; the router delivers what there is all the same."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 8)
    sender = await fleet.client(1)
    right = service.totals
    # The order does not matter, the members do: no other choice of 8 out of 12 ids has this hash.
    others = [os.urandom(24) for _ in range(4)]
    ids = [queue.rcv_id for queue in queues] + others
    alike = [chosen for chosen in itertools.combinations(ids, 8) if ids_hash.of_ids(chosen) == right[1]]
    assert alike == [tuple(queue.rcv_id for queue in queues)]
    shuffled = list(service.ids)
    random.Random(6).shuffle(shuffled)
    assert ids_hash.of_ids(shuffled) == right[1]
    for belief in (right, (8, ids_hash.of_ids(others)), (8, ids_hash.EMPTY)):
        await session.close()
        for queue in queues:
            assert await sender.send(queue, b"m") == OK()
        session = await service.connect(fleet, 1)
        assert await session.subs(belief) == SOKS(*right)
        given = messages(await session.fold())
        assert set(given) == service.ids
        for queue in queues:
            assert await session.ack(queue, given[queue.rcv_id].msg_id) == OK()


async def test_r_svc_07_counts_do_not_underflow(fleet: Fleet) -> None:
    """Leaving is counted when the set had the queue: repeated and concurrent leaves count once, in every partition."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 40)
    plain, other = await fleet.client(0), await fleet.client(1)
    for _ in range(3):
        answers = await asyncio.gather(
            plain.smp.send_many([Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues[:20]]),
            other.smp.send_many([Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues[10:30]]),
            other.smp.send_many([Request(cmd.DEL(), q.rcv_id, q.rcv_key) for q in queues[30:35]]),
            plain.smp.send_many([Request(cmd.DEL(), q.rcv_id, q.rcv_key) for q in queues[30:35]]),
        )
        assert answers[0] == [sok(plain)] * 20
    service.ids = {queue.rcv_id for queue in queues[35:]}
    await assert_exact(fleet[1], session.service_id, service.ids)
    for queue in queues[35:]:
        assert await plain.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    await assert_exact(fleet[1], session.service_id, [])
    await session.close()
    session = await service.connect(fleet, 1)
    assert await session.subs((40, ids_hash.EMPTY)) == SOKS(0, ids_hash.EMPTY)
    assert await session.fold() == []


class Watched:
    """An agent on real edges, and what it tells."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[AgentEvent] = asyncio.Queue()

    async def until(self, kind: type[AgentEvent]) -> AgentEvent:
        async with asyncio.timeout(15):
            while True:
                event = await self.events.get()
                if isinstance(event, kind):
                    return event


@pytest.mark.parametrize("why", ["forgotten", "another certificate", "queues lost"])
async def test_r_svc_08_an_unavailable_service_is_subscribed_queue_by_queue(fleet: Fleet, why: str) -> None:
    """For any reason, the agent subscribes to the service's queues one by one, and none stays pending."""
    service = Service()
    session = await service.connect(fleet)
    queues = {queue.rcv_id: queue for queue in await make_queues(session, 5)}
    expected = ServiceSub(session.service_id, *service.totals)
    await session.close()
    credentials = service.credentials
    store = fleet[0].store
    if why == "forgotten":
        assert await store.registry.forget(expected.service_id) == 5
    elif why == "another certificate":
        credentials = Service().credentials
    else:
        plain = await fleet.client(1)
        for queue in queues.values():
            assert await plain.sub(queue) == sok(plain)
        await plain.close()
    watched = Watched()
    address = SmpAddress.parse(fleet.address(0))
    assert address is not None

    async def service_queues() -> list[tuple[bytes, object]]:
        return [(queue.rcv_id, queue.rcv_key) for queue in queues.values()]

    agent = SmpAgent(
        address,
        watched.events.put_nowait,
        service=credentials,
        service_queues=service_queues,  # type: ignore[arg-type]
        config=AgentConfig(first_retry=0.05, max_retry=0.1),
    )
    async with agent:
        agent.subscribe_service(expected)
        event = await watched.until(ServiceUnavailable)
        assert event == ServiceUnavailable(expected)
        subscribed = await watched.until(Subscribed)
        assert isinstance(subscribed, Subscribed)
        assert set(subscribed.queue_ids) == set(queues)
        assert subscribed.service_id is not None, "associated anew on the way"
        assert agent.pending_service is None and not agent.pending
        await assert_exact(fleet[0], subscribed.service_id, queues)
        sender = await fleet.client(1)
        for queue in queues.values():
            assert await sender.send(queue, b"m") == OK()
            message = await watched.until(Message)
            assert isinstance(message, Message) and message.transmission.entity_id == queue.rcv_id
        # From now on the service is whole again, and comes back with one SUBS.
        assert agent.client is not None
        agent.client.connection.abort()
        await watched.until(ServiceDisconnected)
        back = await watched.until(ServiceSubscribed)
        assert isinstance(back, ServiceSubscribed) and back.mismatch is None
        for _ in queues:
            await watched.until(Message)
        await watched.until(ServiceAll)


async def test_r_svc_09_deferred_delivery_finds_the_service(fleet: Fleet) -> None:
    """A message for which there was no room is delivered to the service when there is, without any other trigger."""
    narrow = await narrow_edge(fleet)
    service = Service()
    session = await service.connect(fleet, narrow)
    queues = await make_queues(session, 60)
    last = queues[-1]
    assert await session.resume() == []
    sender = await fleet.client(1)
    stop_reading(session)
    client = next(client for client in fleet[narrow].router.clients.values() if client.service is not None)
    for queue in queues[:-1]:
        assert await sender.send(queue, b"fills") == OK()
    await until(lambda: client.outgoing.full)
    assert await sender.send(last, b"deferred") == OK()
    await until(lambda: last.rcv_id in client.outgoing.waiting)
    read_again(session)
    given: dict[bytes, MSG] = {}
    while last.rcv_id not in given:
        given |= messages([await session.event()])
    assert getattr(last.open(given[last.rcv_id]), "body", None) == b"deferred"
    assert await session.ack(last, given[last.rcv_id].msg_id) == OK()
