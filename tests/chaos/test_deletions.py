"""Deletions around an edge that stops (SIGSTOP) and continues: who stays subscribed hears DELD if the queue is gone."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.chaos.processes import Deployment, EdgeProcess
from tests.router.fleet import Peer, Queue, err
from tests.support.redis import discard, start_server
from weir.client.errors import ClientError
from weir.client.smp import SmpClient
from weir.redis.embedded import Embedded
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import DELD, OK
from weir.wire.smp.transmission import ServerTransmission

_SUBSCRIBERS, _QUEUES = 4, 20
_AROUND = 0.1  # seconds: deletions begin this long before the stop, and end this long after the edge continues
_LIMIT = 10.0  # seconds for DELD: as long as commands and events may wait for Redis


@pytest.fixture(scope="module")
def redis() -> Iterator[Embedded]:
    server = start_server()
    yield server
    discard(server)


class Subscriber(Peer):
    def __init__(self, smp: SmpClient) -> None:
        super().__init__(smp)
        self.deleted: set[bytes] = set()
        self._came = asyncio.Event()
        smp.on_event = self._on_event

    def _on_event(self, event: ServerTransmission) -> None:
        if event.reply == DELD():
            self.deleted.add(event.entity_id)
            self._came.set()

    async def hears_of(self, rcv_ids: set[bytes]) -> bool:
        """Whether exactly these queues are reported."""
        try:
            async with asyncio.timeout(_LIMIT):
                while not rcv_ids <= self.deleted:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            return False
        return self.deleted == rcv_ids


@dataclass
class Deletion:
    queue: Queue
    subscriber: Subscriber
    deleter: Peer
    at: float  # seconds after the stop
    answer: object = None

    async def run(self, stopped_at: float) -> None:
        await asyncio.sleep(stopped_at + self.at - asyncio.get_running_loop().time())
        try:
            self.answer = await self.deleter.do(cmd.DEL(), self.queue.rcv_id, self.queue.rcv_key)
        except ClientError as error:
            self.answer = error

    @property
    def reports(self) -> bool:
        """Whether DELD reports the deletion. OK does so for the client that deletes its own subscription."""
        return self.deleter.smp is not self.subscriber.smp or self.answer != OK()


async def connect(edge: EdgeProcess) -> SmpClient:
    return await SmpClient.connect(edge.address, reply_timeout=4.0)


@pytest.mark.all(reason="edges are stopped for seconds")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("lease", "pause"), [(3, 5.0), (20, 3.0)], ids=["the lease lapses", "the lease holds"])
async def test_deletions_around_a_stopped_edge(
    redis: Embedded, tmp_path_factory: pytest.TempPathFactory, lease: int, pause: float, seed: int
) -> None:
    directory = tmp_path_factory.getbasetemp() / "deletions"
    directory.mkdir(exist_ok=True)
    settings = {"WEIR_REDIS_LEASE": f"{lease}s", "WEIR_REDIS_COMMAND_TIMEOUT": "2s"}
    deployment = Deployment(directory, redis.url, settings)
    edges = [EdgeProcess(deployment) for _ in range(2)]
    await asyncio.gather(*(edge.start() for edge in edges))
    try:
        await run(edges, pause, random.Random(seed))
    finally:
        for edge in edges:
            edge.kill()


async def run(edges: list[EdgeProcess], pause: float, rng: random.Random) -> None:
    subscribers = [Subscriber(await connect(edges[n % 2])) for n in range(_SUBSCRIBERS)]
    others = [Peer(await connect(edge)) for edge in edges]
    deletions: list[Deletion] = []
    for subscriber in subscribers:
        for _ in range(_QUEUES):
            at = rng.choice((rng.uniform(-_AROUND, _AROUND), rng.uniform(0, pause + _AROUND)))
            deletions.append(Deletion(await subscriber.new(), subscriber, rng.choice((subscriber, *others)), at))
    stopped_at = asyncio.get_running_loop().time() + 2 * _AROUND
    running = [asyncio.create_task(deletion.run(stopped_at)) for deletion in deletions]
    await asyncio.sleep(2 * _AROUND)
    os.kill(edges[0].pid, signal.SIGSTOP)
    await asyncio.sleep(pause)
    os.kill(edges[0].pid, signal.SIGCONT)
    await asyncio.gather(*running)
    probe = Peer(await connect(edges[1]))
    gone = [deletion for deletion in deletions if await is_gone(probe, deletion.queue)]
    for subscriber in subscribers:
        expected = {d.queue.rcv_id for d in gone if d.subscriber is subscriber and d.reports}
        assert await subscriber.hears_of(expected) or subscriber.smp.closed.is_set()
    assert len(gone) > len(deletions) / 4
    for peer in (*subscribers, *others, probe):
        peer.smp.connection.abort()


async def is_gone(probe: Peer, queue: Queue) -> bool:
    return await probe.do(cmd.QUE(), queue.rcv_id, queue.rcv_key) == err(Simple.AUTH)
