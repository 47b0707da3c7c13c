"""The four cases of SUB, those of NSUB and NEW; upgrades, downgrades and moves keep both services' totals exact."""

import asyncio
import random

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err, sok
from tests.services.service import (
    Notifier,
    Service,
    Session,
    add_notifier,
    assert_exact,
    fleet_stats,
    make_queues,
    messages,
    text,
)
from weir.client.smp import Request
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, END, ENDS, MSG, NMSG, OK, SOK, SOKS

EDGES = pytest.mark.parametrize("edge", [0, 1], ids=["same edge", "across edges"])


class Counted:
    """The fleet's counts between two moments."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.before: dict[str, int] = {}

    async def start(self) -> None:
        self.before = await fleet_stats(self.fleet)

    async def since(self, *names: str) -> tuple[int, ...]:
        after = await fleet_stats(self.fleet)
        return tuple(after.get(name, 0) - self.before.get(name, 0) for name in names)


ASSOC = ["srvAssocNew", "srvAssocDuplicate", "srvAssocUpdated", "srvAssocRemoved"]
RCV = [f"rcvServices_{name}" for name in ASSOC]
NTF = [f"ntfServices_{name}" for name in ASSOC]


@EDGES
async def test_case_1_queue_of_this_service(fleet: Fleet, edge: int) -> None:
    """A retry: nothing changes."""
    service, counted = Service(), Counted(fleet)
    session = await service.connect(fleet)
    queue = await session.create()
    await counted.start()
    assert await session.join(queue) == SOK(session.service_id)
    later = await service.connect(fleet, edge)
    assert await later.join(queue) == SOK(session.service_id)
    assert (await session.event()).reply == ENDS(*service.totals), "the SUB made its connection the service's owner"
    await assert_exact(fleet[0], session.service_id, [queue.rcv_id])
    assert await counted.since(*RCV) == (0, 2, 0, 0)
    sender = await fleet.client(0)
    assert await sender.send(queue, b"m") == OK()
    assert await later.text(queue) == b"m"


@EDGES
async def test_case_2_queue_of_nobody(fleet: Fleet, edge: int) -> None:
    """An upgrade: the plain subscriber gets END, the service the messages."""
    service, counted = Service(), Counted(fleet)
    plain, sender = await fleet.client(edge), await fleet.client(1)
    queue = await plain.new(secure=True)
    assert await sender.send(queue, b"1") == OK()
    await plain.msg(queue)
    await counted.start()
    session = await service.connect(fleet)
    assert await session.join(queue) == SOK(session.service_id)
    assert await session.text(queue) == b"1"
    assert (await plain.event()).reply == END()
    await assert_exact(fleet[0], session.service_id, [queue.rcv_id])
    assert await counted.since(*RCV) == (1, 0, 0, 0)
    assert await sender.send(queue, b"2") == OK()
    assert await session.text(queue) == b"2"
    await plain.silence()


@EDGES
async def test_case_2_queue_of_another_service(fleet: Fleet, edge: int) -> None:
    """A move: the other service loses the queue in the same step, and hears END for it."""
    service, other, counted = Service(), Service(), Counted(fleet)
    session, rival = await service.connect(fleet), await other.connect(fleet, edge)
    queues = await make_queues(session, 3)
    await make_queues(rival, 2)
    await counted.start()
    moved = queues[1]
    assert await rival.join(moved) == SOK(rival.service_id)
    service.ids.discard(moved.rcv_id)
    event = await session.event()
    assert (event.entity_id, event.reply) == (moved.rcv_id, END())
    await assert_exact(fleet[0], session.service_id, service.ids)
    await assert_exact(fleet[1], rival.service_id, other.ids)
    assert await counted.since(*RCV) == (0, 0, 1, 0)
    sender = await fleet.client(1 - edge)
    assert await sender.send(moved, b"m") == OK()
    assert await rival.text(moved) == b"m"
    assert await session.resume() == []
    assert await rival.resume() == []


@EDGES
async def test_case_3_downgrade(fleet: Fleet, edge: int) -> None:
    """A client without a service takes a queue out of it."""
    service, counted = Service(), Counted(fleet)
    session, plain, sender = await service.connect(fleet), await fleet.client(edge), await fleet.client(1)
    queues = await make_queues(session, 2)
    assert await sender.send(queues[0], b"1") == OK()
    msg_id, _ = await session.msg(queues[0])
    await counted.start()
    assert await plain.sub(queues[0]) == SOK()
    assert await plain.text(queues[0]) == b"1"
    service.ids.discard(queues[0].rcv_id)
    event = await session.event()
    assert (event.entity_id, event.reply) == (queues[0].rcv_id, END())
    assert await session.ack(queues[0], msg_id) == err(Simple.NO_MSG)
    await assert_exact(fleet[0], session.service_id, service.ids)
    assert await counted.since(*RCV) == (0, 0, 0, 1)
    assert await sender.send(queues[0], b"2") == OK()
    assert await plain.text(queues[0]) == b"2"
    assert await session.resume() == []


async def test_case_4_plain(fleet: Fleet) -> None:
    counted = Counted(fleet)
    plain, other = await fleet.client(0), await fleet.client(1)
    queue = await plain.new()
    await counted.start()
    assert await other.sub(queue) == SOK()
    assert (await plain.event()).reply == END()
    assert await counted.since(*RCV) == (0, 0, 0, 0)


async def test_new_associates(fleet: Fleet) -> None:
    """IDS names the service; NEW without a subscription makes no sense in a service's session."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    assert queue.ids.service_id == session.service_id
    await assert_exact(fleet[1], session.service_id, [queue.rcv_id])
    key = queue.rcv_key
    command = cmd.NEW(key.spki, key.public, subscribe=False, queue_req=cmd.MessagingReq())
    assert await session.do(command, b"", key) == err(CommandError.PROHIBITED)
    plain = await fleet.client(0)
    assert (await plain.new()).ids.service_id is None
    await assert_exact(fleet[1], session.service_id, [queue.rcv_id])


async def test_the_reference_s_upgrade_and_downgrade(fleet: Fleet) -> None:
    """Created by a client, upgraded to a service one by one, resumed with SUBS, taken back by a client."""
    sender = await fleet.client(1)
    owner = await fleet.client(0)
    first, second, third = [await owner.new(secure=True) for _ in range(3)]
    assert await sender.send(first, b"hello") == OK()
    assert await owner.text(first) == b"hello"
    await owner.close()
    assert await sender.send(first, b"hello 2") == OK()

    service = Service()
    session = await service.connect(fleet, 1)
    assert await session.join(first) == SOK(session.service_id)
    msg_id, _ = await session.msg(first)
    assert await session.join(second) == SOK(session.service_id)
    assert await session.ack(first, msg_id) == OK()
    assert await session.join(third) == SOK(session.service_id)
    await session.close()
    assert await sender.send(first, b"hello 3.1") == OK()
    assert await sender.send(second, b"hello 3.2") == OK()

    session = await service.connect(fleet, 0)
    given = messages(await session.resume())
    assert {text(q, given[q.rcv_id]) for q in (first, second)} == {b"hello 3.1", b"hello 3.2"}
    for queue in (first, second):
        assert await session.ack(queue, given[queue.rcv_id].msg_id) == OK()
    await session.close()
    assert await sender.send(first, b"hello 4") == OK()

    plain = await fleet.client(1)
    assert await plain.do(cmd.SUBS(*service.totals), session.service_id, session.key) == err(Simple.SERVICE)
    assert await plain.sub(first) == SOK()
    assert await plain.text(first) == b"hello 4"
    assert await sender.send(first, b"hello 5") == OK()
    assert await plain.text(first) == b"hello 5"
    assert await plain.sub(second) == SOK()
    await assert_exact(fleet[0], session.service_id, [third.rcv_id])


async def test_a_batch_of_service_subs(fleet: Fleet) -> None:
    """135 associations in one block, with the messages that waited."""
    owner, sender = await fleet.client(0), await fleet.client(1)
    queues = [await owner.new() for _ in range(135)]
    for queue in queues[::3]:
        assert await sender.send(queue, b"m") == OK()
    await owner.close()
    service = Service()
    session = await service.connect(fleet)
    replies = await session.smp.send_many([Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues])
    assert replies == [SOK(session.service_id)] * 135
    service.ids = {queue.rcv_id for queue in queues}
    await assert_exact(fleet[0], session.service_id, service.ids)
    given = messages([await session.event() for _ in queues[::3]])
    assert set(given) == {queue.rcv_id for queue in queues[::3]}
    assert await session.subs() == SOKS(*service.totals)
    assert await session.fold() == [], "what was delivered with SUB is not delivered by the fold"


# Notifiers


async def watched(recipient: Peer, count: int = 1) -> list[tuple[Queue, Notifier]]:
    found = []
    for _ in range(count):
        queue = await recipient.new(secure=True)
        found.append((queue, await add_notifier(recipient, queue)))
    return found


async def notified(recipient: Peer, sender: Peer, session: Peer, queue: Queue, notifier: Notifier) -> None:
    assert await sender.send(queue, b"ring", notification=True) == OK()
    assert await recipient.text(queue) == b"ring"
    event = await session.event()
    assert event.entity_id == notifier.ntf_id and isinstance(event.reply, NMSG), event


@EDGES
async def test_nsub_cases(fleet: Fleet, edge: int) -> None:
    """New, again, moved to another service, and out of it."""
    service, other, counted = Service.notifier(), Service.notifier(), Counted(fleet)
    recipient, sender, plain = await fleet.client(1), await fleet.client(0), await fleet.client(edge)
    pairs = await watched(recipient, 3)
    queue, notifier = pairs[0]
    assert await plain.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK()
    await counted.start()
    session = await service.connect(fleet)
    for _, each in pairs:
        assert await session.nsub(each) == SOK(session.service_id)
    assert (await plain.event()).reply == END()
    assert await session.nsub(notifier) == SOK(session.service_id)
    await assert_exact(fleet[0], session.service_id, service.ids)
    assert await counted.since(*NTF) == (3, 1, 0, 0)
    await notified(recipient, sender, session, queue, notifier)

    rival = await other.connect(fleet, edge)
    assert await rival.nsub(notifier) == SOK(rival.service_id)
    event = await session.event()
    assert (event.entity_id, event.reply) == (notifier.ntf_id, END())
    service.ids.discard(notifier.ntf_id)
    await assert_exact(fleet[0], session.service_id, service.ids)
    await assert_exact(fleet[0], rival.service_id, other.ids)
    assert await counted.since(*NTF) == (3, 1, 1, 0)
    await notified(recipient, sender, rival, queue, notifier)

    assert await plain.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK()
    assert (await rival.event()).reply == END()
    await assert_exact(fleet[0], rival.service_id, [])
    assert await counted.since(*NTF) == (3, 1, 1, 1)
    await notified(recipient, sender, plain, queue, notifier)
    assert await session.subs() == SOKS(*service.totals)
    assert await rival.subs() == SOKS(0, ids_hash.EMPTY)


@EDGES
async def test_the_reference_s_notifier_service(fleet: Fleet, edge: int) -> None:
    """A second connection takes over with NSUB; NDEL reaches it; nothing reaches the first."""
    service = Service.notifier()
    recipient, sender = await fleet.client(0), await fleet.client(1)
    (queue, notifier), (other_queue, other) = await watched(recipient, 2)
    first = await service.connect(fleet)
    assert await first.nsub(notifier) == SOK(first.service_id)
    await notified(recipient, sender, first, queue, notifier)
    second = await service.connect(fleet, edge)
    assert await second.nsub(notifier) == SOK(first.service_id)
    event = await first.event()
    assert (event.entity_id, event.reply) == (first.service_id, ENDS(*service.totals))
    await notified(recipient, sender, second, queue, notifier)
    assert await recipient.do(cmd.NDEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await second.event()
    assert event.entity_id == notifier.ntf_id and type(event.reply).__name__ == "DELD"
    service.ids.discard(notifier.ntf_id)
    await assert_exact(fleet[0], first.service_id, [])
    assert await sender.send(queue, b"quiet", notification=True) == OK()
    assert await recipient.text(queue) == b"quiet"
    assert await second.nsub(other) == SOK(first.service_id)
    await notified(recipient, sender, second, other_queue, other)
    await second.silence()
    await first.silence()


async def test_notifications_that_waited_come_after_nsubs(fleet: Fleet) -> None:
    service = Service.notifier()
    recipient, sender = await fleet.client(0), await fleet.client(1)
    pairs = await watched(recipient, 20)
    session = await service.connect(fleet)
    for _, notifier in pairs:
        await session.nsub(notifier)
    await session.close()
    for queue, _ in pairs:
        assert await sender.send(queue, b"m", notification=True) == OK()
    session = await service.connect(fleet, 1)
    assert await session.subs() == SOKS(*service.totals)
    events = [await session.event() for _ in pairs]
    assert {event.entity_id for event in events} == service.ids
    assert all(isinstance(event.reply, NMSG) for event in events)
    await session.silence()


async def test_random_moves_keep_every_total_exact(fleet: Fleet) -> None:
    """Hundreds of random associations, downgrades, moves and deletions by three services and a client at once."""
    rng = random.Random(5)
    services = [Service() for _ in range(3)]
    sessions: list[Session] = [await s.connect(fleet, n % 2) for n, s in enumerate(services)]
    plain = await fleet.client(1)
    queues = [await plain.new() for _ in range(30)]
    belongs: dict[bytes, Service | None] = {queue.rcv_id: None for queue in queues}

    async def step(queue: Queue) -> None:
        choice = rng.choice([0, 1, 2, 0, 1, 2, 3, 4])
        if queue.rcv_id not in belongs:
            return
        if choice < 3:
            assert await sessions[choice].sub(queue) == SOK(sessions[choice].service_id)
            belongs[queue.rcv_id] = services[choice]
        elif choice == 3 or rng.random() < 0.8:
            assert await plain.sub(queue) == sok(plain)
            belongs[queue.rcv_id] = None
        else:
            assert await plain.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
            del belongs[queue.rcv_id]

    for _ in range(25):
        # One step at a time for each queue, all queues at once.
        await asyncio.gather(*(step(queue) for queue in rng.sample(queues, 12)))
        for n, (service, session) in enumerate(zip(services, sessions, strict=True)):
            service.ids = {rcv_id for rcv_id, owner in belongs.items() if owner is service}
            await assert_exact(fleet[n % 2], session.service_id, service.ids)
    for service, session in zip(services, sessions, strict=True):
        successor = await service.connect(fleet, 0)
        assert await successor.subs() == SOKS(*service.totals)
        replies = [event.reply for event in await successor.fold()]
        assert not [reply for reply in replies if isinstance(reply, MSG)]
        await session.close()


@pytest.mark.parametrize("kind", ["SUBS", "SUB"])
async def test_ends_carries_the_displaced_client_s_own_totals(fleet: Fleet, kind: str) -> None:
    """The totals are those that the client knows: all queues after SUBS, else the queues that it subscribed itself."""
    service = Service()
    maker = await service.connect(fleet, 1)
    queues = await make_queues(maker, 5)
    await maker.close()
    first = await service.connect(fleet)
    if kind == "SUBS":
        assert await first.resume() == []
        expected = service.totals
    else:
        assert await first.join(queues[0]) == SOK(first.service_id)
        expected = (1, ids_hash.of_ids([queues[0].rcv_id]))
    extra = await first.create()
    expected = (expected[0] + 1, ids_hash.add(expected[1], ids_hash.of_id(extra.rcv_id)))
    second = await service.connect(fleet, 1)
    assert await second.subs() == SOKS(*service.totals)
    assert (await first.event()).reply == ENDS(*expected)
    assert (await second.event()).reply == ALLS()
