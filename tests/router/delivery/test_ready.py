"""The walk through what is ready for a service: which partitions are asked, and how often Redis is written to."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.router.fleet import Fleet, Queue
from tests.router.notifier import nkey
from tests.router.service import credentials, subs, until_alls
from weir.redis.errors import UNAVAILABLE
from weir.redis.mux import Mux
from weir.redis.partitions import PARTITIONS
from weir.router.delivery.ready import ReadyWalk
from weir.router.edge import Edge
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import OK, SOK, SOKS


@dataclass
class Page:
    partition: int
    items: range
    cursor: int | None


class Partitions:
    """The ready ids of each partition. Answers pages and remembers how many were asked for at the same time."""

    def __init__(self, ready_in: Mapping[int, int]) -> None:
        self.ready_in = ready_in
        self.steps: list[Counter[int]] = []  # by step: partition → size
        self.refused: set[int] = set()

    async def fetch(self, partition: int, cursor: int, size: int) -> Page:
        self.steps[-1][partition] = size
        await asyncio.sleep(0)
        if partition in self.refused:
            raise UNAVAILABLE
        end = min(cursor + size, self.ready_in[partition])
        return Page(partition, range(cursor, end), end if end < self.ready_in[partition] else None)

    async def walk(self, page: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {partition: [] for partition in self.ready_in}
        walk = ReadyWalk(self.ready_in, page)
        while not walk.ended:
            self.steps.append(Counter())
            pages, complete = await walk.step(self.fetch)
            assert complete is not bool(self.refused & self.steps[-1].keys())
            self.refused.clear()
            for got in pages:
                found[got.partition] += got.items
        return found


@pytest.mark.parametrize(
    ("ready_in", "steps"),
    [
        ({}, 0),
        ({17: 1}, 1),
        ({17: 128}, 1),
        ({17: 129}, 2),
        (dict.fromkeys(range(PARTITIONS), 1), 1),
        (dict.fromkeys(range(PARTITIONS), 2), 1),
        (dict.fromkeys(range(PARTITIONS), 3), 2),
        (dict.fromkeys(range(8), 160), 10),
    ],
)
async def test_everything_is_found_in_few_steps(ready_in: dict[int, int], steps: int) -> None:
    partitions = Partitions(ready_in)
    assert await partitions.walk(128) == {partition: list(range(count)) for partition, count in ready_in.items()}
    assert len(partitions.steps) == steps


@pytest.mark.parametrize("page", [1, 7, 128])
async def test_a_step_brings_about_one_page(page: int) -> None:
    partitions = Partitions({partition: 5 * partition + 1 for partition in range(PARTITIONS)})
    found = await partitions.walk(page)
    assert {partition: len(items) for partition, items in found.items()} == partitions.ready_in
    assert all(step and step.total() <= 2 * max(page, 8) for step in partitions.steps)


async def test_a_page_without_an_answer_is_fetched_again() -> None:
    partitions = Partitions({1: 1, 2: 1, 3: 1})
    partitions.refused = {2}
    assert await partitions.walk(128) == {1: [0], 2: [0], 3: [0]}
    assert [list(step) for step in partitions.steps] == [[1, 2, 3], [2]]


def writes_with(monkeypatch: pytest.MonkeyPatch, edge: Edge, script: str) -> list[int]:
    """The numbers of calls of a script in each write to Redis that has one."""
    sha = edge.store.topology.scripts.shas[script]
    writes: list[int] = []
    flush = Mux._flush

    def counted(mux: Mux) -> None:
        calls = b"".join(mux._out).count(sha)
        if calls:
            writes.append(calls)
        flush(mux)

    monkeypatch.setattr(Mux, "_flush", counted)
    return writes


@pytest.mark.parametrize("waiting", [0, 1, 20])
async def test_from_subs_to_alls_redis_is_asked_once_for_pages(
    fleet: Fleet, service: ServiceCredentials, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    one, s = await fleet.client(0, service=service), await fleet.client(1)
    queues: list[Queue] = list(await asyncio.gather(*(one.new() for _ in range(40))))
    await one.close()
    for queue in queues[:waiting]:
        assert await s.send(queue, b"waits") == OK()
    partitions = {fleet[0].store.partition(queue.rcv_id) for queue in queues[:waiting]}
    two = await fleet.client(1, service=service)
    writes = writes_with(monkeypatch, fleet[1], "fold_page")
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await subs(two, 40, hash_) == SOKS(40, hash_)
    assert len(await until_alls(two, queues)) == waiting
    assert writes == ([len(partitions)] if waiting else [])


async def test_from_nsubs_to_notifications_redis_is_asked_once_for_pages(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = credentials(ServiceRole.NOTIFIER)
    r, s, n = await fleet.client(0), await fleet.client(1), await fleet.client(1, service=service)
    queues = [await r.new(secure=True) for _ in range(6)]
    notifiers = [await nkey(r, queue) for queue in queues]
    for notifier in notifiers:
        assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK(n.smp.service_id)
    await n.close()
    for queue in queues[:4]:
        assert await s.send(queue, b"1", notification=True) == OK()
    n = await fleet.client(0, service=service)
    writes = writes_with(monkeypatch, fleet[0], "ntf_page")
    ids = ids_hash.of_ids(notifier.ntf_id for notifier in notifiers)
    assert await subs(n, 6, ids) == SOKS(6, ids)
    events = {(await n.event()).entity_id for _ in range(4)}
    assert events == {notifier.ntf_id for notifier in notifiers[:4]}
    assert writes == [len({fleet[0].store.partition(queue.rcv_id) for queue in queues[:4]})]


async def test_after_an_outage_only_partitions_with_messages_are_asked(
    fleet: Fleet, service: ServiceCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fold that follows an outage brings what came meanwhile.

    While the lease is renamed, the edge seems dead, so the message leaves no event. The edge itself must not notice:
    a renewal that finds its lease gone would disconnect the service.
    """
    one, s = await fleet.client(0, service=service), await fleet.client(1)
    queues = list(await asyncio.gather(*(one.new() for _ in range(10))))
    edge = fleet[0]
    p = edge.store.partition(queues[0].rcv_id)
    lease = b"{%d}:e:%b" % (p, edge.store.edge)
    await edge.store.core.ask(p, b"RENAME", lease, lease + b":away")
    assert await s.send(queues[0], b"missed") == OK()
    writes = writes_with(monkeypatch, edge, "fold_page")
    await edge.store.core.ask(p, b"RENAME", lease + b":away", lease)
    edge.store.on_restored()
    assert await one.text(queues[0]) == b"missed"
    assert writes == [1]
