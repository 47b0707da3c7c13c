"""`weir bench stall`: how long other clients wait while one client sends full blocks of SUBs."""

import asyncio
import time
from array import array
from dataclasses import dataclass

from weir.bench.clients import open_client
from weir.bench.cycle import percentile
from weir.bench.subscribe import BlockSender, subscriptions
from weir.bench.target import Target
from weir.bench.workers import Worker, pool
from weir.client.smp import SmpClient
from weir.crypto.keys import KeyType

_PAUSE = 0.002  # seconds between two PINGs
_QUIET = 2.0  # seconds of PINGs without SUBs


@dataclass(frozen=True)
class StallOptions:
    target: Target
    queues: int = 20000
    keys: KeyType = "x25519"


@dataclass(frozen=True)
class StallResult:
    """Round-trip times of PING on another connection: quiet, without SUBs; busy, while the SUBs are sent."""

    subs_per_block: int
    quiet_p50_ms: float
    quiet_p99_ms: float
    busy_p50_ms: float
    busy_p99_ms: float
    busy_max_ms: float
    stall_p50_ms: float  # busy_p50_ms − quiet_p50_ms


def run_stall(options: StallOptions) -> StallResult:
    with pool(_work, [(options, True), (options, False)]) as workers:
        per_block = workers.gather()[0]
        workers.start_all("quiet")
        _, quiet = workers.gather()
        workers.start_all("busy")
        _, busy = workers.gather()
    quiet, busy = sorted(quiet), sorted(busy)
    return StallResult(
        per_block,
        percentile(quiet, 0.5) * 1000,
        percentile(quiet, 0.99) * 1000,
        percentile(busy, 0.5) * 1000,
        percentile(busy, 0.99) * 1000,
        busy[-1] * 1000 if busy else 0.0,
        (percentile(busy, 0.5) - percentile(quiet, 0.5)) * 1000,
    )


async def _work(worker: Worker, share: tuple[StallOptions, bool]) -> "array[float]":
    options, subscriber = share
    return await (_subscribe(worker, options) if subscriber else _ping(worker, options))


async def _subscribe(worker: Worker, options: StallOptions) -> "array[float]":
    target = options.target
    async with await open_client(target) as client:
        queues = await worker.creates(target).queues(client, options.queues, options.keys)
    connection = (await open_client(target)).connection
    contents = subscriptions(connection, queues)
    sender = BlockSender(connection, contents, len(queues))
    await worker.report(contents[0][0])
    await worker.report()
    sender.start()
    await sender.done.wait()
    return array("d")


async def _ping(worker: Worker, options: StallOptions) -> "array[float]":
    client = await open_client(options.target)
    await worker.report()
    quiet = await _round_trips(client, _QUIET)
    await worker.report(quiet)
    # At 20,000 SUBs per second, the PINGs end with the SUBs. At a lower rate, they end earlier.
    return await _round_trips(client, max(1.0, options.queues / 20000))


async def _round_trips(client: SmpClient, seconds: float) -> "array[float]":
    times = array("d")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        times.append(await client.ping())
        await asyncio.sleep(_PAUSE)
    return times
