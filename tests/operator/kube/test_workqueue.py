"""The work queue: one worker per key, no request lost, longer and longer pauses after failures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from weir_operator.kube.workqueue import WorkQueue


@contextlib.asynccontextmanager
async def running(queue: WorkQueue[str]) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def recording(
    work: Callable[[str, int], Awaitable[float | None]],
) -> tuple[list[str], Callable[[str], Awaitable[float | None]]]:
    seen: list[str] = []

    async def wrapped(key: str) -> float | None:
        seen.append(key)
        return await work(key, seen.count(key))

    return seen, wrapped


async def until(check: Callable[[], bool]) -> None:
    while not check():
        await asyncio.sleep(0.005)


async def test_requests_before_the_work_are_one() -> None:
    async def work(_key: str, _n: int) -> None:
        return None

    seen, wrapped = recording(work)
    queue = WorkQueue(wrapped, workers=2)
    for _ in range(5):
        queue.add("a")
    queue.add("b")
    async with running(queue):
        await until(lambda: len(seen) == 2)
        await asyncio.sleep(0.02)
    assert sorted(seen) == ["a", "b"]


async def test_a_request_during_the_work_is_worked_on_afterwards_and_never_beside_it() -> None:
    at_work: set[str] = set()
    go = asyncio.Event()

    async def work(key: str, n: int) -> None:
        assert key not in at_work
        at_work.add(key)
        if n == 1:
            await go.wait()
        at_work.discard(key)

    seen, wrapped = recording(work)
    queue = WorkQueue(wrapped, workers=4)
    queue.add("a")
    async with running(queue):
        await until(lambda: seen == ["a"])
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(0.02)
        assert seen == ["a"]
        go.set()
        await until(lambda: seen == ["a", "a"])


async def test_the_earliest_of_several_times_counts() -> None:
    async def work(_key: str, _n: int) -> None:
        return None

    seen, wrapped = recording(work)
    queue = WorkQueue(wrapped, workers=1)
    async with running(queue):
        queue.add("a", 60)
        queue.add("a", 0.01)
        queue.add("a", 30)
        await until(lambda: seen == ["a"])


async def test_work_can_ask_for_its_next_time() -> None:
    async def work(_key: str, n: int) -> float | None:
        return 0.01 if n < 3 else None

    seen, wrapped = recording(work)
    queue = WorkQueue(wrapped, workers=1)
    queue.add("a")
    async with running(queue):
        await until(lambda: len(seen) == 3)
        await asyncio.sleep(0.05)
    assert len(seen) == 3


async def test_a_failure_is_tried_again_and_stops_nobody_else() -> None:
    async def work(key: str, n: int) -> None:
        if key == "bad" and n < 4:
            raise RuntimeError("no")

    seen, wrapped = recording(work)
    queue = WorkQueue(wrapped, workers=1, first_retry=0.01, last_retry=0.02)
    queue.add("bad")
    queue.add("good")
    async with running(queue):
        await until(lambda: seen.count("bad") == 4)
    assert seen.count("good") == 1
