"""Slices of verification: others have their turn."""

import asyncio
from collections import deque
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from weir.router import scheduler as scheduling
from weir.router.scheduler import Charged, Scheduler


class FakeConnection:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


class FakeClient:
    """As much of a client as the scheduler sees."""

    def __init__(self) -> None:
        self.backlog: deque[Any] = deque()
        self.in_ring = False
        self.closed = False
        self.rested_at = 0.0
        self.conn = FakeConnection()


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


async def done(*clients: FakeClient) -> None:
    async with asyncio.timeout(5):
        while any(client.backlog for client in clients):
            await asyncio.sleep(0)


async def test_order_within_a_connection() -> None:
    scheduler = Scheduler(asyncio.get_running_loop())
    client, log = FakeClient(), list[str]()
    for n in range(50):
        scheduler.add(client, Work(str(n), log))  # type: ignore[arg-type]
    assert log == [], "nothing runs where it was added"
    await done(client)
    assert log == [str(n) for n in range(50)]
    scheduler.add(client, Work("again", log))  # type: ignore[arg-type]
    await done(client)
    assert log[-1] == "again"


async def test_connections_take_turns() -> None:
    scheduler = Scheduler(asyncio.get_running_loop())
    busy, other, log = FakeClient(), FakeClient(), list[str]()
    for _ in range(100):
        scheduler.add(busy, Work("busy", log))  # type: ignore[arg-type]
    scheduler.add(other, Work("other", log))  # type: ignore[arg-type]
    await done(busy, other)
    assert log.index("other") <= 8


async def test_the_loop_turns_between_slices() -> None:
    scheduler = Scheduler(asyncio.get_running_loop())
    client, log = FakeClient(), list[str]()
    for _ in range(40):
        scheduler.add(client, Work("work", log, cost=0.0005))  # type: ignore[arg-type]
    turns = 0
    while client.backlog:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 10


async def test_a_mistake_ends_one_connection_only() -> None:
    scheduler = Scheduler(asyncio.get_running_loop())
    bad, good, log = FakeClient(), FakeClient(), list[str]()
    scheduler.add(bad, Work("bad", log, fails=True))  # type: ignore[arg-type]
    scheduler.add(good, Work("good", log))  # type: ignore[arg-type]
    await done(bad, good)
    assert log == ["bad", "good"]
    assert bad.conn.aborted and not good.conn.aborted


async def test_who_is_alone() -> None:
    """Until a block of another connection comes, and again when none has come for a while."""
    scheduler = Scheduler(asyncio.get_running_loop())
    assert scheduler.alone
    scheduler.heard(1)
    assert not scheduler.alone
    scheduler._shared_until = asyncio.get_running_loop().time()
    assert scheduler.alone and scheduler.last == 1


async def test_rest_is_as_long_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little debts are let go, and time without work is no credit."""
    now = 100.0
    monkeypatch.setattr(scheduling, "perf_counter", lambda: now)
    scheduler, client = Scheduler(asyncio.get_running_loop()), FakeClient()
    scheduler.heard(1)

    def works(seconds: float) -> float:
        nonlocal now
        began, now = now, now + seconds
        scheduler.worked(client, began, now)  # type: ignore[arg-type]
        return scheduler.rest(client)  # type: ignore[arg-type]

    assert works(0.0004) == 0.0
    assert works(0.0004) == 0.0
    assert works(0.0004) == pytest.approx(0.0012)
    assert works(0.0028) == pytest.approx(0.004), "what it was given before it rested counts, too"
    now += 0.004
    assert scheduler.rest(client) == 0.0  # type: ignore[arg-type]
    now += 60
    assert works(0.0050) == pytest.approx(0.005)


async def test_whoever_is_alone_need_not_rest() -> None:
    scheduler, client = Scheduler(asyncio.get_running_loop()), FakeClient()
    began = perf_counter()
    scheduler.worked(client, began, began + 3600)  # type: ignore[arg-type]
    assert scheduler.rest(client) == 0.0  # type: ignore[arg-type]
    scheduler.heard(1)
    assert scheduler.rest(client) > 3500  # type: ignore[arg-type]


async def test_operations_are_work() -> None:
    scheduler = Scheduler(asyncio.get_running_loop())
    client, idle, log = FakeClient(), FakeClient(), list[str]()
    for _ in range(20):
        scheduler.add(client, Work("work", log, cost=0.0005))  # type: ignore[arg-type]
    began = perf_counter()
    await done(client)
    assert client.rested_at - began >= 20 * 0.0005 * 2
    assert idle.rested_at == 0.0


async def test_tasks_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while they run: not while they wait, and an error or a cancellation passes through."""
    now = 100.0
    monkeypatch.setattr(scheduling, "perf_counter", lambda: now)
    loop = asyncio.get_running_loop()
    client: Any = FakeClient()
    client.router = SimpleNamespace(scheduler=Scheduler(loop))
    awaited = loop.create_future()

    async def work() -> None:
        nonlocal now
        now += 1
        await awaited
        now += 1
        raise RuntimeError("a mistake")

    task = loop.create_task(Charged(client, work()))
    await asyncio.sleep(0)
    assert client.rested_at == 102.0
    now += 60
    awaited.set_result(None)
    with pytest.raises(RuntimeError):
        await task
    assert client.rested_at == 163.0
    cancelled = loop.create_task(Charged(client, asyncio.sleep(3600)))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
