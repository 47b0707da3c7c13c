"""Slots that move between the masters of a cluster while edges use them: scripts wait, and nothing is half done."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.redis.test_durability import port_of, running
from tests.router.store.default_keys import keys
from tests.router.store.harness import TestEdge, open_edge
from tests.support.redis import SERVERS, RedisServer, join_cluster, kinds, start_cluster, until
from tests.support.reshard import Reshard
from weir.redis.errors import UNAVAILABLE
from weir.redis.moving import Moving
from weir.router.store.records import Entry, MsgEvent, Owner, QueueRecord, SendResult, Status

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module", params=kinds(["valkey", "redis6", "redis8"]))
def cluster(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    server = SERVERS[request.param]
    if server is None:
        pytest.skip(f"{request.param}: its server is not installed")
    cluster = start_cluster(server)
    cluster.kind = request.param
    yield cluster
    cluster.stop()


@asynccontextmanager
async def opened(cluster: RedisServer, count: int, **settings: Any) -> AsyncIterator[list[TestEdge]]:
    """Edges that wait for a slot as long as a busy machine takes to move it."""
    cluster.flush()
    edges = [await open_edge(cluster.url, **{"deadline": 30.0, "lease": 60.0, **settings}) for _ in range(count)]
    try:
        yield edges
    finally:
        for edge in edges:
            await edge.close()


async def queues_of(edge: TestEdge, p: int, count: int, **given: Any) -> list[QueueRecord]:
    """Queues of one partition."""
    return [await edge.new(snd_id=edge.store.placement.draw(p), **given) for _ in range(count)]


def body_of(msg_id: bytes) -> bytes:
    return msg_id * 100


class Flow:
    """One sender and one recipient of a queue, on two edges; each message carries its number."""

    def __init__(self, sender: TestEdge, recipient: TestEdge, rec: QueueRecord, owner: Owner) -> None:
        self._sender, self._recipient, self._rec, self._owner = sender, recipient, rec, owner
        self.sent: list[bytes] = []
        self.got: list[bytes] = []
        self.enough = False
        self._name = os.urandom(16)
        self._last = self._name + b"the last"
        self._came = asyncio.Event()

    async def run(self) -> None:
        await asyncio.gather(self._send(), self._receive())

    async def more(self) -> None:
        wanted = len(self.got) + 10
        while len(self.got) < wanted:
            self._came.clear()
            await self._came.wait()

    async def _send(self) -> None:
        """A few at a time, as a block brings them."""
        numbers = itertools.count()
        while not self.enough:
            ids = [self._name + next(numbers).to_bytes(8, "big") for _ in range(5)]
            self.sent += ids
            results = await asyncio.gather(*(self._sender.send(self._rec, i, body=body_of(i)) for i in ids))
            assert results == [SendResult(Status.OK)] * 5
            if len(self.sent) - len(self.got) > 50:
                await self.more()
        self.sent.append(self._last)
        assert await self._sender.send(self._rec, self._last, body=body_of(self._last)) == SendResult(Status.OK)

    async def _receive(self) -> None:
        """Receive as a client does: a MSG, its ACK, the message in the answer; then the next event."""
        events, rcv_id = self._recipient.events, self._rec.rcv_id
        seen = 0

        def mine() -> list[MsgEvent]:
            return [event for event in events if isinstance(event, MsgEvent) and event.rcv_id == rcv_id]

        while self.got[-1:] != [self._last]:
            await self._recipient.until(lambda n=seen: len(mine()) > n, 60.0)
            entry: Entry | None = mine()[seen].entry
            seen += 1
            while entry is not None:
                assert await self._recipient.body(rcv_id, entry.msg_id) == body_of(entry.msg_id)
                self.got.append(entry.msg_id)
                self._came.set()
                acked = await self._recipient.ack(self._rec, *self._owner, entry.msg_id)
                assert acked is not UNAVAILABLE
                assert acked.status is Status.OK
                entry = acked.next


@pytest.mark.parametrize("how", ["whole", "at_once"])
async def test_messages_flow_while_a_slot_moves(cluster: RedisServer, how: str) -> None:
    """No command fails, no message is lost, doubled or out of order, and keys of other slots are served meanwhile."""
    if how == "at_once" and cluster.kind != "valkey":
        pytest.skip(f"{cluster.kind} cannot move a slot at once")
    async with opened(cluster, 2, quota=100_000) as (a, b):
        p = 7
        flows = [
            Flow(b, a, (await queues_of(a, q, 1, owner=Owner(conn, 1)))[0], Owner(conn, 1))
            for conn, q in enumerate((p, p, p, p, p + 1, p + 2), 1)
        ]
        idle = await queues_of(a, p, 200)
        kept = [os.urandom(24) for _ in idle]
        for rec, msg_id in zip(idle, kept, strict=True):
            await a.send(rec, msg_id)
        async with asyncio.TaskGroup() as group:
            for flow in flows:
                group.create_task(flow.run())
            for _ in range(4):
                await asyncio.gather(*(flow.more() for flow in flows))
                await asyncio.to_thread(getattr(Reshard(cluster.nodes, p), how))
            await asyncio.gather(*(flow.more() for flow in flows))
            for flow in flows:
                flow.enough = True
        for flow in flows:
            assert flow.got == flow.sent
        for rec, msg_id in zip(idle, kept, strict=True):
            head = (await b.sub(rec, 100, 1)).head
            assert head is not None
            assert head.msg_id == msg_id
            assert (await b.ack(rec, 100, 1, msg_id)).next is None
        assert a.lost == b.lost == 0


async def test_half_of_a_slot(cluster: RedisServer) -> None:
    """Scripts wait, in order; commands with one key find theirs on either node; other slots do not wait."""
    async with opened(cluster, 1) as (edge,):
        rec, other = (await queues_of(edge, 7, 1))[0], (await queues_of(edge, 8, 1))[0]
        first = os.urandom(24)
        await edge.send(rec, first, body=b"first")
        move = Reshard(cluster.nodes, 7)
        move.begin()
        assert await edge.body(rec.rcv_id, first) == b"first"
        move.move(keys.body(7, first), keys.lease(7, edge.store.edge))
        assert await edge.body(rec.rcv_id, first) == b"first"
        assert await edge.rcv(rec.rcv_id) == rec
        sent = [os.urandom(24) for _ in range(20)]
        sending = [asyncio.ensure_future(edge.send(rec, msg_id)) for msg_id in sent]
        acking = asyncio.ensure_future(edge.sub(rec, 1, 1))
        assert (await edge.send(other)).status is Status.OK
        # The lease is renewed where it is by now.
        move.there(b"DEL", keys.lease(7, edge.store.edge))
        edge.store.leases.renew()
        await asyncio.to_thread(until, lambda: move.there(b"EXISTS", keys.lease(7, edge.store.edge)) == 1)
        assert isinstance(edge.store.core.muxes[7], Moving)
        assert not any(future.done() for future in (*sending, acking))
        while move.move_some():
            pass
        move.end()
        assert {result.status for result in await asyncio.gather(*sending)} == {Status.OK}
        head = (await acking).head
        got = []
        while head is not None:
            got.append(head.msg_id)
            head = (await edge.ack(rec, 1, 1, head.msg_id)).next
        assert got == [first, *sent]
        assert not any(isinstance(mux, Moving) for mux in edge.store.core.muxes)


async def test_nothing_is_half_done(cluster: RedisServer) -> None:
    """ACK takes the message from its list, then writes to its body's key: which has moved already."""
    async with opened(cluster, 1, deadline=0.5) as (edge,):
        (rec,) = await queues_of(edge, 7, 1, owner=Owner(1, 1))
        msg_id = os.urandom(24)
        await edge.send(rec, msg_id)
        await edge.send(rec)
        move = Reshard(cluster.nodes, 7)
        move.begin()
        move.move(keys.body(7, msg_id))
        assert await edge.ack(rec, 1, 1, msg_id) is UNAVAILABLE
        while move.move_some():
            pass
        move.end()
        assert (await edge.store.messages.info(rec, 0)).size == 2  # type: ignore[union-attr]
        assert (await edge.ack(rec, 1, 1, msg_id)).next is not None


async def test_a_move_that_is_given_up(cluster: RedisServer) -> None:
    async with opened(cluster, 1) as (edge,):
        (rec,) = await queues_of(edge, 7, 1)
        move = Reshard(cluster.nodes, 7)
        move.begin()
        sending = [asyncio.ensure_future(edge.send(rec)) for _ in range(5)]
        await edge.settled()
        assert isinstance(edge.store.core.muxes[7], Moving)
        move.cancel()
        assert {result.status for result in await asyncio.gather(*sending)} == {Status.OK}
        assert edge.store.core.muxes[7] in edge.store.topology.nodes


async def test_a_connection_that_closes_while_its_slot_moves(cluster: RedisServer) -> None:
    """The closed connection must not own the queue afterwards."""
    async with opened(cluster, 1) as (edge,):
        (rec,) = await queues_of(edge, 7, 1)
        move = Reshard(cluster.nodes, 7)
        move.begin()
        subscribing = asyncio.ensure_future(edge.sub(rec, 1, 1))
        await edge.settled()
        edge.store.withdraw(1)
        assert await subscribing is UNAVAILABLE
        move.cancel()
        assert await edge.send(rec) == SendResult(Status.OK)


async def test_a_master_that_comes_and_goes() -> None:
    """Edges hear of it when its first slot comes to it, listen to it for their pokes, and leave it after its last."""
    server = SERVERS["valkey"]
    assert server is not None
    cluster = start_cluster(server)
    with running(*cluster.nodes), running(fresh := join_cluster(cluster, server)):
        async with opened(cluster, 2, quota=100_000, poll=1000.0) as (a, b):
            (rec,) = await queues_of(a, 7, 1, owner=Owner(1, 1))
            flow = Flow(b, a, rec, Owner(1, 1))
            async with asyncio.TaskGroup() as group:
                group.create_task(flow.run())
                for to in (3, 0, 3, 1):
                    await flow.more()
                    await asyncio.to_thread(Reshard(cluster.nodes, 7, to=to).whole)
                    await flow.more()
                    assert (await a.store.topology.master(7)).port == port_of(cluster.nodes[to])
                flow.enough = True
            assert flow.got == flow.sent
            fresh.stop()
            assert (await a.send(rec)).status is Status.OK
