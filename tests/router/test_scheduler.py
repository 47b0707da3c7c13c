"""Slices of verification: others have their turn."""

import asyncio
from collections import deque
from time import perf_counter
from typing import Any

from weir.router.scheduler import Scheduler


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
