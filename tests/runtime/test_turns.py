"""Slices of verification: others have their turn."""

import asyncio
from time import perf_counter
from typing import Any

import pytest

from weir.runtime import turns as turning
from weir.runtime.turns import Charged, Share, Turns


class Client:
    """A connection with a share of the loop."""

    def __init__(self, turns: Turns) -> None:
        self.aborted = False
        self.share: Share[Any] = Share(turns, self.abort)

    def abort(self) -> None:
        self.aborted = True


class Work:
    def __init__(self, name: str, log: list[str], cost: float = 0.0, fails: bool = False) -> None:
        self.name = name
        self.log = log
        self.cost = cost
        self.fails = fails

    def step(self) -> None:
        end = perf_counter() + self.cost
        while perf_counter() < end:
            pass
        self.log.append(self.name)
        if self.fails:
            raise RuntimeError("a mistake")


async def done(*clients: Client) -> None:
    async with asyncio.timeout(5):
        while any(client.share.waiting for client in clients):
            await asyncio.sleep(0)


async def test_order_within_a_connection() -> None:
    turns = Turns(asyncio.get_running_loop())
    client, log = Client(turns), list[str]()
    for n in range(50):
        client.share.add(Work(str(n), log))
    assert log == [], "nothing runs where it was added"
    await done(client)
    assert log == [str(n) for n in range(50)]
    client.share.add(Work("again", log))
    await done(client)
    assert log[-1] == "again"


async def test_connections_take_turns() -> None:
    turns = Turns(asyncio.get_running_loop())
    busy, other, log = Client(turns), Client(turns), list[str]()
    for _ in range(100):
        busy.share.add(Work("busy", log))
    other.share.add(Work("other", log))
    await done(busy, other)
    assert log.index("other") <= 8


async def test_the_loop_turns_between_slices() -> None:
    turns = Turns(asyncio.get_running_loop())
    client, log = Client(turns), list[str]()
    for _ in range(40):
        client.share.add(Work("work", log, cost=0.0005))
    count = 0
    while client.share.waiting:
        await asyncio.sleep(0)
        count += 1
    assert count >= 10


async def test_a_mistake_ends_one_connection_only() -> None:
    turns = Turns(asyncio.get_running_loop())
    bad, good, log = Client(turns), Client(turns), list[str]()
    bad.share.add(Work("bad", log, fails=True))
    good.share.add(Work("good", log))
    await done(bad, good)
    assert log == ["bad", "good"]
    assert bad.aborted and not good.aborted


async def test_who_is_alone() -> None:
    """Until a block of another connection comes, and again when none has come for a while."""
    turns = Turns(asyncio.get_running_loop())
    assert turns.alone
    turns.heard(1)
    assert not turns.alone
    turns._shared_until = asyncio.get_running_loop().time()
    assert turns.alone and turns.last == 1


async def test_rest_is_as_long_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little debts are let go, and time without work is no credit."""
    now = 100.0
    monkeypatch.setattr(turning, "perf_counter", lambda: now)
    turns = Turns(asyncio.get_running_loop())
    client = Client(turns)
    turns.heard(1)

    def works(seconds: float) -> float:
        nonlocal now
        began, now = now, now + seconds
        client.share.charge(began, now)
        return client.share.throttle()

    assert works(0.0004) == 0.0
    assert works(0.0004) == 0.0
    assert works(0.0004) == pytest.approx(0.0012)
    assert works(0.0028) == pytest.approx(0.004), "what it was given before it rested counts, too"
    now += 0.004
    assert client.share.throttle() == 0.0
    now += 60
    assert works(0.0050) == pytest.approx(0.005)


async def test_whoever_is_alone_need_not_rest() -> None:
    turns = Turns(asyncio.get_running_loop())
    client = Client(turns)
    began = perf_counter()
    client.share.charge(began, began + 3600)
    assert client.share.throttle() == 0.0
    turns.heard(1)
    assert client.share.throttle() > 3500


async def test_operations_are_work() -> None:
    turns = Turns(asyncio.get_running_loop())
    client, idle, log = Client(turns), Client(turns), list[str]()
    for _ in range(20):
        client.share.add(Work("work", log, cost=0.0005))
    began = perf_counter()
    await done(client)
    assert client.share.throttled_until - began >= 20 * 0.0005 * 2
    assert idle.share.throttled_until == 0.0


async def test_tasks_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while they run: not while they wait, and an error or a cancellation passes through."""
    now = 100.0
    monkeypatch.setattr(turning, "perf_counter", lambda: now)
    loop = asyncio.get_running_loop()
    client = Client(Turns(loop))
    awaited = loop.create_future()

    async def work() -> None:
        nonlocal now
        now += 1
        await awaited
        now += 1
        raise RuntimeError("a mistake")

    task = loop.create_task(Charged(client.share, work()))
    await asyncio.sleep(0)
    assert client.share.throttled_until == 102.0
    now += 60
    awaited.set_result(None)
    with pytest.raises(RuntimeError):
        await task
    assert client.share.throttled_until == 163.0
    cancelled = loop.create_task(Charged(client.share, asyncio.sleep(3600)))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
