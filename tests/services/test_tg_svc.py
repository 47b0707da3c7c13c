"""Cases that the reference has no tests for: TG-SVC-01 … 08 and 16, each by its name."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.router.fleet import Fleet, err, sok
from tests.services.service import (
    Service,
    Session,
    add_notifier,
    assert_exact,
    drift_of,
    fleet_stats,
    make_queues,
    messages,
    narrow_edge,
    read_again,
    ready_ids,
    stop_reading,
    text,
    until,
)
from weir.client.smp import Request
from weir.router.delivery.ownership import reassert_service
from weir.router.edge import Edge
from weir.router.store.records import ServiceTotals
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, DELD, END, ENDS, MSG, NMSG, OK, SOKS
from weir.wire.smp.transmission import ServerTransmission


def after_takeover(monkeypatch: pytest.MonkeyPatch, edge: Edge, action: Callable[[], Awaitable[object]]) -> None:
    """Runs something when all of Redis has a new owner for a service and the edge does not know it yet."""
    take = edge.store.services.takeover

    async def takeover(service_id: bytes, conn: int, day: int) -> ServiceTotals:
        result = await take(service_id, conn, day)
        await action()
        return result

    monkeypatch.setattr(edge.store.services, "takeover", takeover)


async def later(delay: float, action: Awaitable[object]) -> object:
    await asyncio.sleep(delay)
    return await action


async def drain(session: Session) -> list[ServerTransmission]:
    """All events that have come, after a round trip."""
    await session.smp.ping()
    await asyncio.sleep(0.05)
    events = []
    while not session.smp.events.empty():
        events.append(session.smp.events.get_nowait())
    return events


async def test_tg_svc_01_subs_against_sub_of_the_same_queue(fleet: Fleet) -> None:
    """Whichever comes first, the queue ends up with the plain client, which gets its message; the service knows."""
    rng = random.Random(1)
    plain, sender = await fleet.client(1), await fleet.client(0)
    outcomes = set()
    for _ in range(40):
        service = Service()
        session = await service.connect(fleet)
        queue = await session.create()
        belief = service.totals
        await session.close()
        assert await sender.send(queue, b"contested") == OK()
        session = await service.connect(fleet)

        soks, sub_answer = await asyncio.gather(
            later(rng.uniform(0, 0.004), session.subs(belief)), later(rng.uniform(0, 0.004), plain.sub(queue))
        )
        assert sub_answer == sok(plain)
        assert soks in (SOKS(*belief), SOKS(0, ids_hash.EMPTY))
        assert await plain.text(queue) == b"contested"
        await assert_exact(fleet[0], session.service_id, [])
        events = await drain(session)
        assert [event.reply for event in events].count(ALLS()) == 1
        ends = [event for event in events if event.reply == END()]
        given = [event.reply for event in events if isinstance(event.reply, MSG)]
        assert len(given) <= 1
        if soks == SOKS(*belief):
            assert [event.entity_id for event in ends] == [queue.rcv_id], "told of the queue, so told of its end"
        else:
            assert not given
        for message in given:
            assert await session.ack(queue, message.msg_id) == err(Simple.NO_MSG)
        outcomes.add((soks == SOKS(*belief), len(given)))
        assert await sender.send(queue, b"after") == OK()
        assert await plain.text(queue) == b"after"
        assert await session.subs() == SOKS(0, ids_hash.EMPTY)
        await session.close()
    assert len(outcomes) > 1, "the race was no race"


async def test_tg_svc_01_sub_between_takeover_and_soks(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    session = await service.connect(fleet)
    queue, other = await session.create(), await session.create()
    belief = service.totals
    await session.close()
    plain = await fleet.client(1)

    async def sub() -> None:
        assert await plain.sub(queue) == sok(plain)

    after_takeover(monkeypatch, fleet[0], sub)
    session = await service.connect(fleet)
    assert await session.subs(belief) == SOKS(*belief), "the totals of the moment of the takeover"
    events = {event.entity_id: event.reply for event in (await session.event(), await session.event())}
    assert events == {queue.rcv_id: END(), b"": ALLS()}
    service.ids = {other.rcv_id}
    await assert_exact(fleet[0], session.service_id, service.ids)
    monkeypatch.undo()
    successor = await service.connect(fleet, 1)
    assert await successor.resume() == []
    assert (await session.event()).reply == ENDS(*service.totals)


async def test_tg_svc_02_queues_deleted_during_the_fold(fleet: Fleet) -> None:
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 120)
    await session.close()
    plain, sender = await fleet.client(1), await fleet.client(0)
    for queue in queues:
        assert await sender.send(queue, b"m") == OK()

    narrow = await narrow_edge(fleet, queues=replace(fleet.config.queues, fold_page=8))
    session = await service.connect(fleet, narrow)
    subscribed = asyncio.create_task(session.subs())
    await session.event()  # the fold has begun; from here on the client takes nothing
    stop_reading(session)
    assert await subscribed == SOKS(*service.totals)
    client = next(iter(fleet[narrow].router.clients.values()))
    await until(lambda: client.outgoing.full)
    deleted = random.Random(2).sample(queues, 60)
    replies = await plain.smp.send_many([Request(cmd.DEL(), q.rcv_id, q.rcv_key) for q in deleted])
    assert replies == [OK()] * 60
    read_again(session)

    events = await session.fold()
    events += await drain(session)
    gone = {queue.rcv_id for queue in deleted}
    assert {event.entity_id for event in events if event.reply == DELD()} == gone
    given = [event.entity_id for event in events if isinstance(event.reply, MSG)]
    assert len(given) == len(set(given))
    alive = {queue.rcv_id for queue in queues} - gone
    assert len(alive - set(given)) <= 1, "the one that came first was taken from the events"
    assert len(set(given) & gone) < 60, "a deleted queue's message was still delivered"
    service.ids -= gone
    await assert_exact(fleet[0], session.service_id, service.ids)
    assert await session.subs() == SOKS(*service.totals)


async def test_tg_svc_02_every_queue_deleted_during_the_fold(fleet: Fleet) -> None:
    """The fold ends all the same, with ALLS."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 60)
    await session.close()
    plain, sender = await fleet.client(1), await fleet.client(0)
    for queue in queues:
        assert await sender.send(queue, b"m") == OK()
    session = await service.connect(fleet)
    soks, *replies = await asyncio.gather(
        session.subs(), plain.smp.send_many([Request(cmd.DEL(), q.rcv_id, q.rcv_key) for q in queues])
    )
    assert isinstance(soks, SOKS)
    assert replies == [[OK()] * 60]
    events = await session.fold()
    given = [event.entity_id for event in events if isinstance(event.reply, MSG)]
    assert len(given) == len(set(given))
    await assert_exact(fleet[0], session.service_id, [])
    assert await ready_ids(fleet[0], session.service_id) == set()


async def test_tg_svc_03_subs_twice(fleet: Fleet) -> None:
    """The second answers from the session, and brings no second ALLS."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    before = await fleet_stats(fleet)
    assert await session.resume() == []
    assert await session.subs() == SOKS(*service.totals)
    await session.silence()
    await session.create()
    assert await session.subs((0, ids_hash.EMPTY)) == SOKS(*service.totals), "with what was associated since"
    sender = await fleet.client(1)
    assert await sender.send(queue, b"once") == OK()
    assert await session.text(queue) == b"once"
    await session.silence()
    after = await fleet_stats(fleet)
    assert after["rcvServices_srvSubDuplicate"] - before.get("rcvServices_srvSubDuplicate", 0) == 2
    assert after["rcvServices_srvSubOk"] - before.get("rcvServices_srvSubOk", 0) == 1


async def test_tg_svc_03_subs_twice_in_one_block(fleet: Fleet) -> None:
    """The second must not begin a second fold: the first one's page under way would be lost with its messages."""
    service, waiting = await waiting_in_the_first_partitions(fleet)
    session = await service.connect(fleet)
    before = await fleet_stats(fleet)
    subs = cmd.SUBS(*service.totals)
    replies = await session.smp.send_many([Request(subs, session.service_id, session.key)] * 2)
    assert replies == [SOKS(*service.totals)] * 2
    assert set(messages(await session.fold())) == waiting
    await session.silence()
    after = await fleet_stats(fleet)
    assert after["rcvServices_srvSubDuplicate"] - before.get("rcvServices_srvSubDuplicate", 0) == 1


async def test_subs_during_the_fold_that_follows_an_outage(fleet: Fleet) -> None:
    """A fold that only catches up gives way to that of SUBS, which brings what the first had under way."""
    service, waiting = await waiting_in_the_first_partitions(fleet)
    session = await service.connect(fleet)
    await session.create()  # owns the service, has not asked for its messages
    client = next(client for client in fleet[0].router.clients.values() if client.subscriptions.epoch is not None)
    catching_up = asyncio.create_task(reassert_service(client))
    assert await session.subs() == SOKS(*service.totals)
    await catching_up
    assert set(messages(await session.fold())) == waiting
    await session.silence()


async def waiting_in_the_first_partitions(fleet: Fleet) -> tuple[Service, set[bytes]]:
    """A service that nobody is connected as, with queues everywhere; those that the fold comes to first have a
    message."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 200)
    client = next(client for client in fleet[0].router.clients.values() if client.subscriptions.epoch is not None)
    await session.close()
    await until(lambda: client.id not in fleet[0].router.clients)
    sender = await fleet.client(1)
    waiting = [queue for queue in queues if fleet[0].store.partition(queue.rcv_id) < 8]
    assert waiting
    for queue in waiting:
        assert await sender.send(queue, b"m") == OK()
    return service, {queue.rcv_id for queue in waiting}


@pytest.mark.parametrize("role", ["rcv", "ntf"])
async def test_tg_svc_04_drift_is_counted(fleet: Fleet, role: str) -> None:
    service = Service() if role == "rcv" else Service.notifier()
    plain = await fleet.client(1)
    session = await service.connect(fleet)
    for _ in range(3):
        if role == "rcv":
            await session.create()
        else:
            await session.nsub(await add_notifier(plain, await plain.new()))
    count, total = service.totals
    kinds = ["srvSubOk", "srvSubMore", "srvSubFewer", "srvSubDiff", "srvSubMoreTotal", "srvSubFewerTotal"]
    cases = {
        (count, total): (1, 0, 0, 0, 0, 0),
        (-1, ids_hash.EMPTY): (1, 0, 0, 0, 0, 0),
        (1, total): (0, 1, 0, 0, 2, 0),
        (0, ids_hash.EMPTY): (0, 1, 0, 0, 3, 0),
        (count + 5, total): (0, 0, 1, 0, 0, 5),
        (count, bytes(16)): (0, 0, 0, 1, 0, 0),
    }
    for expected, counted in cases.items():
        before = await fleet_stats(fleet)
        await session.close()
        session = await service.connect(fleet, 1)
        assert await session.subs(expected) == SOKS(count, total)
        after = await fleet_stats(fleet)
        names = [f"{role}Services_{kind}" for kind in kinds]
        assert tuple(after.get(name, 0) - before.get(name, 0) for name in names) == counted, expected
    assert await drift_of(fleet, session.service_id) == {"ok": 2, "more": 2, "fewer": 1, "diff": 1}


async def test_tg_svc_05_no_queues(fleet: Fleet) -> None:
    service = Service()
    session = await service.connect(fleet)
    assert await session.resume() == []
    await session.silence()
    assert await session.subs() == SOKS(0, ids_hash.EMPTY)
    queue = await session.create()
    sender = await fleet.client(1)
    assert await sender.send(queue, b"first") == OK()
    assert await session.text(queue) == b"first"
    notifier = await Service.notifier().connect(fleet)
    assert await notifier.subs() == SOKS(0, ids_hash.EMPTY)
    await notifier.silence()
    successor = await service.connect(fleet, 1)
    assert await successor.resume() == []
    assert (await session.event()).reply == ENDS(*service.totals)


async def test_tg_svc_05_all_queues_gone(fleet: Fleet) -> None:
    """A service that had queues and has none: zero and the empty hash, not what is left of a subtraction."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 20)
    for queue in queues:
        assert await session.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    service.ids.clear()
    successor = await service.connect(fleet, 1)
    assert await successor.resume() == []
    assert (await session.event()).reply == ENDS(0, ids_hash.EMPTY)


@pytest.mark.parametrize("waiting", [0, 1, 3])
async def test_tg_svc_06_messages_sent_during_the_fold(fleet: Fleet, waiting: int) -> None:
    """All that waited and all that comes meanwhile: once, in order."""
    service = Service()
    session = await service.connect(fleet)
    queues = {queue.rcv_id: queue for queue in await make_queues(session, 100)}
    await session.close()
    senders = [await fleet.client(0), await fleet.client(1)]
    for n in range(waiting):
        for queue in queues.values():
            assert await senders[0].send(queue, b"%d" % n) == OK()
    session = await service.connect(fleet)
    order = list(queues.values())
    random.Random(waiting).shuffle(order)

    async def send(index: int) -> None:
        for queue in order[index::2]:
            assert await senders[index].send(queue, b"%d" % waiting) == OK()

    got: dict[bytes, list[bytes]] = {rcv_id: [] for rcv_id in queues}
    done = asyncio.Event()

    async def receive() -> None:
        alls = 0
        while not alls or sum(map(len, got.values())) < (waiting + 1) * len(queues):
            event = await session.event()
            if event.reply == ALLS():
                alls += 1
            else:
                assert isinstance(event.reply, MSG)
                queue = queues[event.entity_id]
                got[queue.rcv_id] += await session.ack_all(queue, event.reply)
        assert alls == 1
        done.set()

    soks, *_ = await asyncio.gather(session.subs(), receive(), send(0), send(1))
    assert soks == SOKS(*service.totals)
    expected = [b"%d" % n for n in range(waiting + 1)]
    assert {rcv_id: bodies for rcv_id, bodies in got.items() if bodies != expected} == {}
    await session.silence()
    assert await ready_ids(fleet[0], session.service_id) == set()


@pytest.mark.parametrize("edge", [0, 1], ids=["same edge", "across edges"])
@pytest.mark.parametrize("waiting", [0, 1])
async def test_tg_svc_06_message_between_takeover_and_soks(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, edge: int, waiting: int
) -> None:
    """Redis has the new owner, its edge has not heard yet, and a message comes: it must not fall between."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    await session.close()
    sender = await fleet.client(edge)
    for n in range(waiting):
        assert await sender.send(queue, b"%d" % n) == OK()

    async def send() -> None:
        assert await sender.send(queue, b"%d" % waiting) == OK()
        await asyncio.sleep(0.05)  # the inbox has been read

    after_takeover(monkeypatch, fleet[0], send)
    session = await service.connect(fleet)
    assert await session.subs() == SOKS(*service.totals)
    bodies: list[bytes] = []
    alls = 0
    while not alls or not bodies:
        event = await session.event()
        if event.reply == ALLS():
            alls += 1
        else:
            assert isinstance(event.reply, MSG)
            bodies += await session.ack_all(queue, event.reply)
    assert bodies == [b"%d" % n for n in range(waiting + 1)]
    await session.silence()


@pytest.mark.parametrize("edge", [0, 1], ids=["same edge", "across edges"])
async def test_tg_svc_06_message_while_a_sub_takes_the_service_over(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, edge: int
) -> None:
    """As above, without a fold that could find it: a service-signed SUB of another queue took the service over."""
    service = Service()
    session = await service.connect(fleet)
    queue, other = await session.create(), await session.create()
    await session.close()
    sender = await fleet.client(edge)

    async def send() -> None:
        assert await sender.send(queue, b"m") == OK()
        await asyncio.sleep(0.05)

    after_takeover(monkeypatch, fleet[0], send)
    session = await service.connect(fleet)
    await session.join(other)
    assert await session.text(queue) == b"m"
    await session.silence()


async def test_tg_svc_06_notification_between_takeover_and_soks(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service.notifier()
    plain = await fleet.client(1)
    queue = await plain.new(secure=True)
    session = await service.connect(fleet)
    notifier = await add_notifier(plain, queue)
    await session.nsub(notifier)
    await session.close()

    async def send() -> None:
        assert await plain.send(queue, b"m", notification=True) == OK()
        await asyncio.sleep(0.05)

    after_takeover(monkeypatch, fleet[0], send)
    session = await service.connect(fleet)
    assert await session.subs() == SOKS(*service.totals)
    event = await session.event()
    assert event.entity_id == notifier.ntf_id and isinstance(event.reply, NMSG)
    await session.silence()


async def test_tg_svc_08_counts_cannot_go_below_zero(fleet: Fleet) -> None:
    """Every way a queue can leave a service, and each twice: the count follows the set, not the number of tries."""
    service, other = Service(), Service()
    session, rival = await service.connect(fleet), await other.connect(fleet, 1)
    plain = await fleet.client(1)
    queues = await make_queues(session, 6)
    for queue in queues[:2]:
        assert await plain.sub(queue) == sok(plain)
        assert await plain.sub(queue) == sok(plain)
    for queue in queues[2:4]:
        await rival.join(queue)
        await rival.join(queue)
    for queue in queues[4:]:
        first, second = await asyncio.gather(
            plain.do(cmd.DEL(), queue.rcv_id, queue.rcv_key), rival.do(cmd.DEL(), queue.rcv_id, queue.rcv_key)
        )
        assert {first, second} <= {OK(), err(Simple.AUTH)} and OK() in (first, second)
    service.ids.clear()
    await assert_exact(fleet[0], session.service_id, [])
    await assert_exact(fleet[0], rival.service_id, other.ids)
    ended = [await session.event() for _ in range(6)]
    assert {event.entity_id for event in ended} == {queue.rcv_id for queue in queues}
    assert await session.resume() == []
    successor = await service.connect(fleet, 1)
    assert await successor.resume() == []
    assert (await session.event()).reply == ENDS(0, ids_hash.EMPTY)


async def test_tg_svc_08_leaving_a_session_that_was_not_told(fleet: Fleet) -> None:
    """A session that took the service over with one SUB was told of one queue; all of them leaving makes no minus."""
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, 4)
    await session.close()
    session = await service.connect(fleet)
    await session.join(queues[0])
    plain = await fleet.client(1)
    for queue in queues[1:]:
        assert await plain.sub(queue) == sok(plain)
    ended = {(await session.event()).entity_id for _ in queues[1:]}
    assert ended == {queue.rcv_id for queue in queues[1:]}
    service.ids = {queues[0].rcv_id}
    await assert_exact(fleet[0], session.service_id, service.ids)
    successor = await service.connect(fleet, 1)
    assert await successor.resume() == []
    reply = (await session.event()).reply
    assert isinstance(reply, ENDS) and reply.count in (0, 1)


@pytest.mark.parametrize("edge", [0, 1], ids=["same edge", "across edges"])
async def test_tg_svc_16_deferred_delivery_to_a_service(fleet: Fleet, edge: int) -> None:
    """A service that does not read: its messages wait as ids, and all of them come, once, when it reads again."""
    narrow = await narrow_edge(fleet)
    service = Service()
    session = await service.connect(fleet, narrow)
    queues = {queue.rcv_id: queue for queue in await make_queues(session, 150)}
    assert await session.resume() == []
    sender = await fleet.client(narrow if edge == 0 else 1)
    stop_reading(session)
    client = next(client for client in fleet[narrow].router.clients.values() if client.service is not None)
    for n in range(2):
        replies = await sender.smp.send_many([Request(cmd.SEND(False, b"%d" % n), q.snd_id) for q in queues.values()])
        assert replies == [OK()] * len(queues)
    await until(lambda: client.outgoing.full and bool(client.outgoing.waiting))
    assert client.outgoing.pending_bytes < 256 << 10, "bodies wait in Redis, not in the edge"
    read_again(session)
    got: dict[bytes, list[bytes]] = {}
    for _ in queues:
        event = await session.event()
        assert isinstance(event.reply, MSG)
        queue = queues[event.entity_id]
        assert queue.rcv_id not in got
        got[queue.rcv_id] = await session.ack_all(queue, event.reply)
    assert set(map(tuple, got.values())) == {(b"0", b"1")}
    await session.silence()


async def test_tg_svc_16_deferred_message_of_a_service_that_was_taken_over(fleet: Fleet) -> None:
    """A message that waited for room at the displaced client goes to the new one. The old edge does not send it."""
    narrow = await narrow_edge(fleet)
    service = Service()
    first = await service.connect(fleet, narrow)
    queues = {queue.rcv_id: queue for queue in await make_queues(first, 80)}
    assert await first.resume() == []
    sender = await fleet.client(1)
    stop_reading(first)
    client = next(client for client in fleet[narrow].router.clients.values() if client.service is not None)
    replies = await sender.smp.send_many([Request(cmd.SEND(False, b"m"), q.snd_id) for q in queues.values()])
    assert replies == [OK()] * len(queues)
    await until(lambda: bool(client.outgoing.waiting))
    second = await service.connect(fleet, 1)
    given = messages(await second.resume())
    assert set(given) == set(queues)
    await until(lambda: client.subscriptions.epoch is None)
    assert not client.outgoing.waiting
    read_again(first)
    events = []
    while not events or not isinstance(events[-1].reply, ENDS):
        events.append(await first.event())
    assert len(events) < len(queues), "only what had left before"
    for rcv_id, message in messages(events[:-1]).items():
        assert message == given[rcv_id], "the same message of the same queue"
        assert await first.ack(queues[rcv_id], message.msg_id) == err(Simple.NO_MSG)
    for rcv_id, message in given.items():
        assert text(queues[rcv_id], message) == b"m"
        assert await second.ack(queues[rcv_id], message.msg_id) == OK()
    await first.silence()
    await second.silence()


async def test_subs_that_loses_the_service_meanwhile_takes_it_back(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SUB made this session the owner; while its SUBS reads the totals, another client takes the service over."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    rival = await service.connect(fleet, 1)
    store = fleet[0].store
    totals = store.services.service_totals

    async def overtaken(service_id: bytes) -> object:
        monkeypatch.undo()
        result = await totals(service_id)
        assert await rival.resume() == []
        await until(lambda: not session.smp.events.empty())
        return result

    monkeypatch.setattr(store.services, "service_totals", overtaken)
    assert await session.subs() == SOKS(*service.totals)
    assert (await session.event()).reply == ENDS(*service.totals)
    assert (await session.event()).reply == ALLS()
    assert (await rival.event()).reply == ENDS(*service.totals)
    sender = await fleet.client(1)
    assert await sender.send(queue, b"to the one who asked last") == OK()
    assert await session.text(queue) == b"to the one who asked last"
    await rival.silence()
