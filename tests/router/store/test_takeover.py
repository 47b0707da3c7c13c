"""Two connections take a service over at the same moment: one owner in all partitions, one is told."""

import asyncio
import os
import random

import pytest

from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import TestEdge
from weir.router.store.records import EndsEvent

ROUNDS = (250, pytest.param(1000, marks=pytest.mark.all("more of the same")))


class Shuffled:
    """Stands between an edge and Redis: lets its calls through one at a time, in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._queues: list[list[asyncio.Future[None]]] = []

    def lane(self) -> "list[asyncio.Future[None]]":
        self._queues.append([])
        return self._queues[-1]

    async def run(self, *work: "asyncio.Task[object]") -> None:
        while not all(task.done() for task in work):
            ready = [lane for lane in self._queues if lane]
            if ready:
                # Within a lane calls keep their order, as on a connection.
                lane = self._random.choice(ready)
                lane.pop(0).set_result(None)
            await asyncio.sleep(0)


def slow(edge: TestEdge, lane: "list[asyncio.Future[None]]") -> None:
    """Every script call of the edge waits for its turn."""
    call = edge.store.core.__class__.call

    async def waiting(p: int, name: str, script_keys: list[bytes], args: list[bytes | int]) -> object:
        turn = asyncio.get_running_loop().create_future()
        lane.append(turn)
        await turn
        return await call(edge.store.core, p, name, script_keys, args)

    edge.store.core.call = waiting  # type: ignore[method-assign,assignment]


async def owners(edge: TestEdge, service: bytes) -> set[tuple[bytes, bytes]]:
    asked = (edge.store.core.ask(p, b"HMGET", keys.service(p, service), b"o", b"e") for p in range(64))
    return {tuple(pair) for pair in await asyncio.gather(*asked)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("rounds", ROUNDS)
async def test_one_owner_and_exactly_one_is_told(open_one: OpenEdge, rounds: int) -> None:
    a, b = await open_one(), await open_one()
    firsts = {True: 0, False: 0}
    for seed in range(rounds):
        service = os.urandom(24)
        if seed % 3 == 0:  # somebody had it before
            await a.store.services.takeover(service, 77, 1)
            await a.store.services.release_service(service, 77, 1)
        shuffled = Shuffled(seed)
        for edge in (a, b):
            edge.events.clear()
            slow(edge, shuffled.lane())
        one = asyncio.create_task(a.store.services.takeover(service, 1, 1))
        two = asyncio.create_task(b.store.services.takeover(service, 2, 1))
        await shuffled.run(one, two)
        for edge in (a, b):
            del edge.store.core.call
        first, second = one.result(), two.result()
        assert first.epoch != second.epoch
        loser, winner = (
            ((a, 1, first), (b, 2, second)) if first.epoch < second.epoch else ((b, 2, second), (a, 1, first))
        )
        firsts[loser[0] is a] += 1
        assert await owners(a, service) == {
            (winner[0].store.core.token(winner[1], winner[2].epoch), b"%d" % winner[2].epoch)
        }
        assert await loser[0].settled() == [EndsEvent(service, loser[1], loser[2].epoch)]
        assert await winner[0].settled() == []
    assert min(firsts.values()) > rounds / 10


async def test_on_every_kind(open_any: OpenEdge) -> None:
    """A takeover through the Store, as an edge calls it."""
    a, b = await open_any(), await open_any()
    for _ in range(20):
        service = os.urandom(24)
        first, second = await asyncio.gather(
            a.store.services.takeover(service, 1, 1), b.store.services.takeover(service, 2, 1)
        )
        assert len(await owners(a, service)) == 1
        events = [*await a.settled(), *await b.settled()]
        assert [type(event) for event in events] == [EndsEvent]
        assert events[0].gen == min(first.epoch, second.epoch)  # type: ignore[union-attr]
        a.events.clear()
        b.events.clear()


async def test_ends_never_comes_before_the_takeover_returned(open_one: OpenEdge) -> None:
    a, b = await open_one(), await open_one()
    service = os.urandom(24)
    lane: list[asyncio.Future[None]] = []
    slow(a, lane)
    losing = asyncio.create_task(a.store.services.takeover(service, 1, 1))
    while not lane:
        await asyncio.sleep(0)
    lane.pop().set_result(None)  # the claim
    while not lane:
        await asyncio.sleep(0)
    await b.store.services.takeover(service, 2, 1)
    assert await a.settled() == []
    while not losing.done():
        while lane:
            lane.pop(0).set_result(None)
        await asyncio.sleep(0)
    del a.store.core.call  # type: ignore[method-assign]
    assert await a.settled() == [EndsEvent(service, 1, losing.result().epoch)]
