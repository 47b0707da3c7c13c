"""The meaning of an OK: with fsync a killed Redis has it, with replicated a replica has it."""

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from tests.router.store.harness import NOW, TODAY, TestEdge, awaited, open_edge
from tests.support.redis import SERVERS, client_of, discard, start_server, until
from weir.redis.durability import Mode
from weir.redis.embedded import Embedded, start_embedded
from weir.redis.errors import UNAVAILABLE, StoreError, Unavailable
from weir.router.store.records import QueueRecord, Status


def port_of(node: Embedded) -> int:
    return int(node.url.rpartition(":")[2])


@contextlib.contextmanager
def running(*nodes: Embedded) -> Iterator[None]:
    try:
        yield
    finally:
        for node in nodes:
            discard(node)


async def stored(edge: TestEdge, rec: QueueRecord) -> set[bytes]:
    entries = await edge.store.core.read(rec.partition, b"LRANGE", b"{%d}:m:%b" % (rec.partition, rec.rcv_id), 0, -1)
    return {entry[:24] for entry in entries}


@pytest.mark.timeout(120)
async def test_kill_9_loses_nothing_acknowledged_with_fsync() -> None:
    node = start_server(port=0, appendfsync="always")
    with running(node):
        edge = await open_edge(node.url, durability=Mode.FSYNC, lease=60.0, quota=100_000)
        rec = await edge.new()
        answered: set[bytes] = set()

        async def send_for_ever() -> None:
            while True:
                msg = os.urandom(24)
                result = await awaited(
                    lambda done, m=msg: edge.store.messages.send(rec, m, NOW, False, m, TODAY, 0, None, b"", done)
                )
                if result is not UNAVAILABLE and result.status is Status.OK:
                    answered.add(msg)

        senders = [asyncio.create_task(send_for_ever()) for _ in range(20)]
        for round_ in range(1, 4):
            wanted = 200 * round_
            while len(answered) < wanted:
                await asyncio.sleep(0.01)
            node.kill()
            node = start_embedded(node.directory, port=port_of(node), appendfsync="always")
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        have = await stored(edge, rec)
        assert answered <= have
        await edge.close()
        discard(node)


async def test_fsync_with_everysec_waits_for_the_disk_where_redis_can() -> None:
    node = start_server(SERVERS["valkey"], port=0)
    with running(node):
        edge = await open_edge(node.url, durability=Mode.FSYNC)
        rec = await edge.new()
        assert (await edge.send(rec)).status is Status.OK
        with client_of(node) as client:
            assert client.info("commandstats")["cmdstat_waitaof"]["calls"] > 0
        await edge.close()


async def test_fsync_is_refused_where_it_cannot_be_kept() -> None:
    if SERVERS["redis6"] is None:
        pytest.skip("redis6 is not installed")
    node = start_server(SERVERS["redis6"], port=0)
    with running(node), pytest.raises(StoreError, match="appendfsync always"):
        await open_edge(node.url, durability=Mode.FSYNC)
    node = start_server(port=0, options={"appendonly": "no"})
    with running(node), pytest.raises(StoreError, match="appendonly yes"):
        await open_edge(node.url, durability=Mode.FSYNC)


@pytest.mark.timeout(120)
async def test_replicated_fails_without_a_replica_and_goes_on_with_one() -> None:
    master, replica = start_server(port=0), start_server(port=0)
    with running(master, replica), client_of(replica) as follower:
        follower.replicaof("127.0.0.1", port_of(master))
        await asyncio.to_thread(until, lambda: follower.info("replication")["master_link_status"] == "up")
        edge = await open_edge(master.url, durability=Mode.REPLICATED, replicas=1, replication_limit=1.0)
        rec = await edge.new()
        msg = os.urandom(24)
        assert (await edge.send(rec, msg)).status is Status.OK
        assert follower.exists(b"{%d}:b:%b" % (rec.partition, msg)) == 1  # the replica has the body already
        follower.replicaof("NO", "ONE")
        assert await edge.send(rec) is UNAVAILABLE
        # Reading needs no replica.
        assert await edge.rcv(rec.rcv_id) == rec
        assert msg in await stored(edge, rec)
        assert await edge.store.links.get_link_data(rec) is None
        assert (await edge.store.stats.counts())["queues"] == 1
        assert await edge.store.registry.list_services() == []
        assert (await edge.store.stats.redis_info())["keys"] > 0
        follower.replicaof("127.0.0.1", port_of(master))
        await asyncio.to_thread(until, lambda: follower.info("replication")["master_link_status"] == "up")
        while await edge.send(rec) is UNAVAILABLE:
            await asyncio.sleep(0.05)
        await edge.close()


async def test_nothing_that_waits_for_a_replica_outlives_its_deadline() -> None:
    """The command was executed and waits for its replica when the connection breaks.

    Sent again much later, a SEND would bring back a message that has been delivered and acknowledged.
    """
    master, replica = start_server(port=0), start_server(port=0)
    with running(master, replica), client_of(replica) as follower, client_of(master) as leader:
        follower.replicaof("127.0.0.1", port_of(master))
        await asyncio.to_thread(until, lambda: follower.info("replication")["master_link_status"] == "up")
        edge = await open_edge(master.url, durability=Mode.REPLICATED, replicas=1, replication_limit=60.0, deadline=0.5)
        follower.replicaof("NO", "ONE")
        async with asyncio.timeout(10):
            with pytest.raises(Unavailable):
                await edge.store.core.ask(0, b"INCR", b"{0}:counter")
        assert edge.restored == 0
        edge.store.core.muxes[0].drop()
        follower.replicaof("127.0.0.1", port_of(master))
        async with asyncio.timeout(30):
            await edge.until(lambda: edge.restored > 0)
        assert leader.get("{0}:counter") == b"1"
        await edge.close()


async def test_leases_outlive_a_lost_replica() -> None:
    """Writes are refused, but the edge keeps its clients: a lease needs no replica."""
    master, replica = start_server(port=0), start_server(port=0)
    with running(master, replica), client_of(replica) as follower:
        follower.replicaof("127.0.0.1", port_of(master))
        await asyncio.to_thread(until, lambda: follower.info("replication")["master_link_status"] == "up")
        edge = await open_edge(
            master.url,
            durability=Mode.REPLICATED,
            replicas=1,
            replication_limit=0.1,
            lease=1.0,
            lease_refresh=0.2,
        )
        rec = await edge.new()
        follower.replicaof("NO", "ONE")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20):
            end = loop.time() + 2.0  # two leases
            while min(edge.store.leases._renewed_at) < end:
                assert await edge.send(rec) is UNAVAILABLE
        assert edge.store.leases.held and edge.lost == 0
        assert edge.store.failures.counts["not_durable"] > 0
        await edge.close()
