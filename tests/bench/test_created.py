"""A bench deletes what it created, also when it fails. test_own_router.py checks that for each bench."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.bench.left import left
from tests.router.service import credentials
from weir.bench import workers
from weir.bench.clients import open_client
from weir.bench.created import Created
from weir.bench.own_router import own_router
from weir.bench.service import ServiceOptions, run_service
from weir.bench.store import store_fill
from weir.bench.target import BenchError, Target
from weir.bench.workers import Worker
from weir.wire.smp.commands import SEND
from weir.wire.smp.replies import OK


@pytest.fixture(scope="module")
def live() -> Iterator[Target]:
    """A router as an operator runs it: the bench must not rely on the end of it."""
    with own_router(2) as target:
        yield replace(target, own=False)


def test_without_the_store_only_the_service_stays(live: Target) -> None:
    from_afar = replace(live, redis_url=None, placement_key=None, pids=())
    run_service(ServiceOptions(from_afar, queues=20, waiting=5, rounds=1))
    assert not [name for name in left(live) if any(kind in name for kind in (b":q:", b":s:", b":m:", b":b:"))]


async def test_a_router_of_the_bench_is_not_cleaned_up(live: Target) -> None:
    """The bench removes that router as a whole."""
    before = left(live)
    async with Created(replace(live, own=True)) as created, await open_client(live) as client:
        queue = await created.queue(client, "x25519")
    assert any(queue.rcv_id in name for name in set(left(live)) - set(before))
    async with Created(live) as again:
        again._queues.append(queue)
    assert left(live) == before


async def _create_many(worker: Worker, target: Target) -> None:
    async with await open_client(target) as client:
        await worker.creates(target).queues(client, 5000, "x25519")


def test_a_bench_that_is_interrupted_while_it_creates_queues_deletes_them(live: Target) -> None:
    """Also those whose answers had not arrived yet."""
    before = left(live)
    with pytest.raises(KeyboardInterrupt), workers.pool(_create_many, [live, live]):
        while len(left(live)) < len(before) + 10:
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert left(live) == before


async def _create_some(worker: Worker, target: Target) -> None:
    async with await open_client(target) as client:
        await worker.creates(target).queues(client, 1000, "x25519")


def test_a_bench_that_is_interrupted_while_it_deletes_goes_on(live: Target) -> None:
    before = left(live)

    def interrupt() -> None:
        while len(left(live)) > len(before) + 1500:  # a queue has two keys
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), workers.pool(_create_some, [live]) as pool:
        pool.gather()
        threading.Thread(target=interrupt).start()
    assert left(live) == before


async def test_a_fill_of_the_store_that_is_interrupted_is_deleted(live: Target) -> None:
    before = left(live)
    filled = asyncio.Event()

    async def fill() -> None:
        async with Created(live) as created, await open_client(live, credentials()) as client:
            created.add_service(client)
            assert client.service_id is not None
            filled.set()
            await store_fill(live)(client.service_id, 100_000, created.filled)

    filling = asyncio.create_task(fill())
    await filled.wait()
    while len(left(live)) < len(before) + 100:
        await asyncio.sleep(0.01)
    filling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await filling
    assert left(live) == before


async def _create_and(worker: Worker, share: tuple[Target, str]) -> None:
    target, what = share
    async with await open_client(target) as client:
        queue = await worker.creates(target).queue(client, "x25519")
        assert await client.send(SEND(False, b"hello"), queue.snd_id, queue.snd_key) == OK()
    await worker.report()
    if what == "fail":
        raise BenchError("no luck")
    await asyncio.Event().wait()


@pytest.mark.parametrize("what", ["fail", "hang"])
def test_a_bench_that_fails_deletes_its_queues(live: Target, what: str) -> None:
    before = left(live)
    with pytest.raises(BenchError, match="no luck"), workers.pool(_create_and, [(live, what)]) as pool:
        pool.gather()
        assert len(left(live)) > len(before)
        if what == "fail":
            pool.start_all("go")
            pool.gather()
        raise BenchError("no luck")
    assert left(live) == before


def test_a_bench_that_is_interrupted_deletes_its_queues(live: Target) -> None:
    before = left(live)
    with pytest.raises(KeyboardInterrupt), workers.pool(_create_and, [(live, "hang"), (live, "hang")]) as pool:
        pool.gather()
        raise KeyboardInterrupt
    assert left(live) == before


def test_a_router_that_is_gone_is_one_line(live: Target, capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        async with await open_client(live) as client:
            created = Created(replace(live, address=replace(live.address, port=1)))
            queue = await created.queue(client, "x25519")
            await created.__aexit__()
            async with Created(live) as again:
                again._queues.append(queue)

    asyncio.run(run())
    assert capsys.readouterr().err == (
        "weir bench: some queues of the bench are not deleted: cannot connect: NETWORK: connection refused\n"
    )
