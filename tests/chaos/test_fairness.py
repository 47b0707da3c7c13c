"""One client that floods, or does not read, or asks for more than it sends: what others notice, as a ratio."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.chaos.hostile import KINDS
from tests.chaos.processes import Deployment, EdgeProcess
from tests.router.fleet import Peer
from tests.support.redis import discard, start_server
from weir.client.smp import SmpClient
from weir.wire.replies import MSG, OK

CYCLES = 120
ROUNDS = int(os.environ.get("FAIRNESS_ROUNDS", "1"))
BAR = 2.0  # what the router is held to on a quiet machine; printed (-s), since no test asserts a time


@pytest.fixture
async def edges(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[EdgeProcess]]:
    """Two routers that share nothing but the machine, each with a Redis of its own."""
    servers = [start_server(), start_server()]
    settings = {"WEIR_PROXY_ALLOW_LOCAL_RELAYS": "on"}
    started = [EdgeProcess(Deployment(tmp_path_factory.mktemp("edge"), server.url, settings)) for server in servers]
    for process in started:
        await process.start()
    yield started
    for process, server in zip(started, servers, strict=True):
        process.kill()
        discard(server)


@contextmanager
def hostile(kind: str, edge: EdgeProcess) -> Iterator[None]:
    with Popen(
        [sys.executable, "-m", "tests.chaos.hostile", kind, str(edge.address)],
        stdin=PIPE,
        stdout=PIPE,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
            assert process.poll() is None, "it gave up"
        finally:
            process.kill()


async def cycles(edge: EdgeProcess, count: int) -> list[float]:
    """SEND → MSG → ACK of a well-behaved pair, one at a time: seconds of each."""
    times = []
    async with await SmpClient.connect(edge.address) as smp:
        peer = Peer(smp)
        queue = await peer.new(secure=True)
        for _ in range(count):
            began = time.perf_counter()
            assert await peer.send(queue, bytes(16000)) == OK()
            event = await peer.event()
            assert isinstance(event.reply, MSG)
            assert await peer.ack(queue, event.reply.msg_id) == OK()
            times.append(time.perf_counter() - began)
    return times


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def compare(name: str, without: list[float], beside: list[float]) -> None:
    """Prints how the two differ."""
    ratios = [percentile(beside, share) / percentile(without, share) for share in (0.5, 0.99)]
    print(
        f"  against {name:23}: p50 {percentile(without, 0.5) * 1e3:.1f} → {percentile(beside, 0.5) * 1e3:.1f} ms "
        f"(× {ratios[0]:.2f}), p99 {percentile(without, 0.99) * 1e3:.1f} → {percentile(beside, 0.99) * 1e3:.1f} ms "
        f"(× {ratios[1]:.2f})"
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", KINDS)
async def test_others_hardly_notice(edges: list[EdgeProcess], kind: str) -> None:
    """In turns, so that a busy machine is busy for all: nobody else, the hostile client at another router on this
    machine (which takes the processor, and nothing else), and the hostile client at the same edge. The ratio of the
    last two is the router's doing; that to an idle machine is also the scheduler's, with as many cores as there are."""
    times: dict[str, list[float]] = {"another router's edge": [], "an idle machine": [], "the same edge": []}
    await cycles(edges[0], 20)
    for _ in range(ROUNDS):
        times["an idle machine"] += await cycles(edges[0], CYCLES)
        for where, at in (("another router's edge", edges[1]), ("the same edge", edges[0])):
            with hostile(kind, at):
                await asyncio.sleep(0.3)
                times[where] += await cycles(edges[0], CYCLES)
    print(f"\na client that {kind}; the bar for p99 is × {BAR}:")
    beside = times.pop("the same edge")
    for name, without in times.items():
        compare(name, without, beside)
    assert len(beside) == ROUNDS * CYCLES, "all of them were served"
