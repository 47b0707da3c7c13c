"""Takeovers: one owner in all 64 partitions and one ENDS for everybody else, however the scripts interleave."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from tests.router.fleet import Fleet, err
from tests.router.store.default_keys import keys
from tests.services.service import Service, make_queues, messages, owners
from weir.redis.embedded import Embedded
from weir.redis.partitions import PARTITIONS
from weir.router.store.records import EndsEvent, ServiceTotals
from weir.router.store.store import Store, StoreConfig
from weir.wire.errors import Simple
from weir.wire.smp.replies import ALLS, ENDS, MSG, OK, SOKS

INTERLEAVINGS = (250, pytest.param(1000, marks=pytest.mark.all("more of the same")))


class Shuffle:
    """Holds back the script calls of some stores and runs them on one connection in a random order."""

    def __init__(self, stores: Iterable[Store], rng: random.Random) -> None:
        self.rng = rng
        self.held: list[tuple[int, bytes, asyncio.Future[Any]]] = []
        self.stores = list(stores)
        for store in self.stores:
            store.core.call = self._held_call(store)  # type: ignore[method-assign]

    def _held_call(self, store: Store) -> Any:
        def call(p: int, name: str, script_keys: list[bytes], args: list[bytes | int]) -> "asyncio.Future[Any]":
            future = asyncio.get_running_loop().create_future()
            self.held.append((p, store.core.script_wire(name, script_keys, args), future))
            return future

        return call

    async def run(self, work: Iterable[Any]) -> list[Any]:
        """Does the work, letting some of what it wants from Redis through at a time."""
        tasks = [asyncio.ensure_future(w) for w in work]
        lane = self.stores[0]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.rng.shuffle(self.held)
            count = self.rng.choice((1, 1, 3, 20, len(self.held)))
            through, self.held = self.held[:count], self.held[count:]
            answers = await asyncio.gather(*(lane.core.muxes[p].ask(wire, script=True) for p, wire, _ in through))
            for (_, _, future), answer in zip(through, answers, strict=True):
                future.set_result(answer)
        return [await task for task in tasks]


@pytest.fixture
async def stores(redis: Embedded) -> AsyncIterator[list[Store]]:
    """Two edges' stores."""
    key = bytes(32)
    # A database of its own: the placement key is another.
    opened = [await Store.open(StoreConfig(f"{redis.url}?db=1", key)) for _ in range(2)]
    yield opened
    for store in opened:
        await store.close()


async def owner_in(store: Store, service_id: bytes) -> set[bytes | None]:
    asked = (store.core.ask(p, b"HGET", keys.service(p, service_id), b"o") for p in range(PARTITIONS))
    return set(await asyncio.gather(*asked))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("interleavings", INTERLEAVINGS)
async def test_interleavings(stores: list[Store], interleavings: int) -> None:
    """Two connections (of two edges, or of one), with or without an owner before them, take a service over at once."""
    rng = random.Random(64)
    ended: dict[tuple[bytes, int, int], int] = {}
    heard = asyncio.Event()

    def hears(edge: int) -> Any:
        def on_event(event: Any) -> None:
            assert isinstance(event, EndsEvent)
            at = (event.service_id, edge, event.conn)
            ended[at] = ended.get(at, 0) + 1
            heard.set()

        return on_event

    for edge, store in enumerate(stores):
        store.on_event = hears(edge)
    plain = [store.core.call for store in stores]
    shuffle = Shuffle(stores, rng)
    winners = []
    for n in range(interleavings):
        service_id = os.urandom(24)
        contenders = rng.choice(([(0, 1), (1, 1)], [(0, 1), (0, 2)], [(0, 1), (1, 1), (1, 2)]))
        if rng.random() < 0.3:
            before = (rng.randrange(2), 3)
            held_call, stores[before[0]].core.call = stores[before[0]].core.call, plain[before[0]]  # type: ignore[method-assign]
            await stores[before[0]].services.takeover(service_id, before[1], n)
            stores[before[0]].core.call = held_call  # type: ignore[method-assign]
            everybody = [before, *contenders]
        else:
            everybody = contenders
        results: list[ServiceTotals] = await shuffle.run(
            [stores[edge].services.takeover(service_id, conn, n) for edge, conn in contenders]
        )
        (token,) = await owner_in(stores[0], service_id)
        epoch, winner = max((result.epoch, at) for result, at in zip(results, contenders, strict=True))
        assert token == stores[winner[0]].core.token(winner[1], epoch), "the last to claim has all of it"
        losers = [(service_id, *at) for at in everybody if at != winner]
        async with asyncio.timeout(5):
            while not all(loser in ended for loser in losers):
                heard.clear()
                await heard.wait()
        assert (service_id, *winner) not in ended
        winners.append(winner)
    await asyncio.sleep(0.1)
    for store, call in zip(stores, plain, strict=True):
        store.core.call = call  # type: ignore[method-assign]
    assert set(ended.values()) == {1}, "exactly one ENDS each"
    assert len({winner[0] for winner in winners}) == 2 and len({winner[1] for winner in winners}) == 2


async def test_two_edges_at_once(fleet: Fleet) -> None:
    """The same through real edges, with messages waiting: each is delivered once by whoever has the service."""
    rng = random.Random(3)
    sender = await fleet.client(1)
    maker = Service()
    session = await maker.connect(fleet)
    queues = {queue.rcv_id: queue for queue in await make_queues(session, 10)}
    await session.close()
    wins = [0, 0]
    for n in range(25):
        for queue in queues.values():
            assert await sender.send(queue, b"%d" % n) == OK()
        sessions = [await maker.connect(fleet, edge) for edge in (0, 1)]
        delays = [rng.uniform(0, 0.003), rng.uniform(0, 0.003)]

        async def subs(edge: int, delay: float, sessions: list[Any] = sessions) -> object:
            await asyncio.sleep(delay)
            return await sessions[edge].subs()

        replies = await asyncio.gather(subs(0, delays[0]), subs(1, delays[1]))
        assert replies == [SOKS(*maker.totals)] * 2
        (token,) = await owners(fleet[0], sessions[0].service_id)
        assert token is not None
        winner = [edge.store.edge for edge in fleet.edges].index(token.split(b":")[0])
        wins[winner] += 1
        lost: list[Any] = []
        while not lost or not isinstance(lost[-1].reply, ENDS):
            lost.append(await sessions[1 - winner].event())
        assert lost[-1].reply == ENDS(*maker.totals)
        assert [event.reply for event in lost[:-1]].count(ALLS()) <= 1
        given = messages(await sessions[winner].fold())
        assert set(given) == set(queues)
        for event in lost[:-1]:
            if isinstance(event.reply, MSG):
                reply = await sessions[1 - winner].ack(queues[event.entity_id], event.reply.msg_id)
                assert reply == err(Simple.NO_MSG)
        for rcv_id, message in given.items():
            assert await sessions[winner].ack(queues[rcv_id], message.msg_id) == OK()
        await sessions[1 - winner].silence()
        await sessions[winner].silence()
        for each in sessions:
            await each.close()
    assert all(wins), "the race was no race"


async def test_ownership_goes_back_and_forth(fleet: Fleet) -> None:
    """Each SUBS takes the service from the other, who is told once each time."""
    service = Service()
    sessions = [await service.connect(fleet, edge) for edge in (0, 1)]
    queue = await sessions[0].create()
    sender = await fleet.client(1)
    assert await sessions[0].resume() == []
    for n in range(20):
        taker, other = sessions[(n + 1) % 2], sessions[n % 2]
        assert await taker.resume() == []
        assert (await other.event()).reply == ENDS(*service.totals)
        assert await sender.send(queue, b"%d" % n) == OK()
        assert await taker.text(queue) == b"%d" % n
    for session in sessions:
        await session.silence()


async def test_a_client_that_leaves_while_it_takes_over(fleet: Fleet) -> None:
    """The service has no owner then, and the next client gets all its messages."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    await session.close()
    sender = await fleet.client(1)
    for n in range(10):
        leaver = await service.connect(fleet)
        task = asyncio.create_task(leaver.subs())
        await asyncio.sleep(n * 0.0005)
        leaver.smp.connection.abort()
        await asyncio.gather(task, return_exceptions=True)
    assert await sender.send(queue, b"m") == OK()
    session = await service.connect(fleet, 1)
    given = messages(await session.resume())
    assert set(given) == {queue.rcv_id}
    assert await session.ack(queue, given[queue.rcv_id].msg_id) == OK()
    await session.close()
    async with asyncio.timeout(5):
        while await owners(fleet[0], session.service_id) != {None}:
            await asyncio.sleep(0.01)
