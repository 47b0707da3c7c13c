"""Fail-over with real processes: Sentinel and Cluster. What was acknowledged and replicated is there afterwards, calls
go on, subscriptions and pokes too."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import redis

from tests.redis.test_durability import port_of, running, stored
from tests.router.store.default_keys import keys
from tests.router.store.harness import TestEdge, open_edge
from tests.support.ports import free_port
from tests.support.redis import DEBIAN, SERVERS, client_of, kinds, start_cluster, start_server, until
from weir.redis.durability import Mode
from weir.redis.embedded import Embedded
from weir.redis.errors import UNAVAILABLE
from weir.redis.partitions import Partitions
from weir.router.store.records import MsgEvent, Owner, QueueRecord, Status

_SERVER = DEBIAN or SERVERS["valkey"]


@contextmanager
def sentinel(master_port: int, master_host: str = "127.0.0.1", host: str = "127.0.0.1") -> Iterator[str]:
    """Start one Sentinel on `host` that decides alone and soon. Yield its URL for the store."""
    port = free_port()
    directory = Path(tempfile.mkdtemp(prefix="weir-sentinel-"))
    config = directory / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind {host}\ndir {directory}\nsentinel monitor weir {master_host} {master_port} 1\n"
        "sentinel down-after-milliseconds weir 800\nsentinel failover-timeout weir 5000\n"
    )
    assert _SERVER is not None
    process = subprocess.Popen(
        [_SERVER, config, "--sentinel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory
    )
    try:
        yield f"redis+sentinel://{host}:{port}/weir"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(directory, ignore_errors=True)


async def send_until_ok(edge: TestEdge, rec: QueueRecord) -> bytes:
    """Repeat the SEND, as a sender does that gets an error."""
    while True:
        msg = os.urandom(24)
        result = await edge.send(rec, msg)
        if result is not UNAVAILABLE and result.status is Status.OK:
            return msg


@asynccontextmanager
async def two_edges(url: str, **settings: object) -> AsyncIterator[tuple[TestEdge, TestEdge]]:
    a, b = await open_edge(url, **settings), await open_edge(url, **settings)
    try:
        yield a, b
    finally:
        await a.close()
        await b.close()


async def crosses(a: TestEdge, b: TestEdge, rec: QueueRecord) -> None:
    """A message from b comes to a, which owns the queue, and is acknowledged."""
    a.events.clear()
    while True:
        msg = await send_until_ok(b, rec)
        await a.until(lambda: any(isinstance(e, MsgEvent) for e in a.events))
        event = next(e for e in a.events if isinstance(e, MsgEvent))
        acked = await a.ack(rec, event.conn, event.gen, event.entry.msg_id)
        if acked is not UNAVAILABLE and event.entry.msg_id == msg:
            return
        a.events.clear()


@pytest.mark.timeout(180)
async def test_sentinel() -> None:
    nodes = [start_server(_SERVER, port=0) for _ in range(3)]
    with running(*nodes), sentinel(port_of(nodes[0])) as url:
        followers = [client_of(node) for node in nodes[1:]]
        for follower in followers:
            follower.replicaof("127.0.0.1", port_of(nodes[0]))
        for follower in followers:
            await asyncio.to_thread(until, lambda f=follower: f.info("replication")["master_link_status"] == "up")
        with client_of_sentinel(url) as watcher:
            await asyncio.to_thread(until, lambda: len(watcher.sentinel_slaves("weir")) == 2)
        # A busy machine may make this Sentinel fail over twice; the calls wait for that as well.
        settings = {
            "durability": Mode.REPLICATED,
            "replicas": 1,
            "replication_limit": 2.0,
            "lease": 60.0,
            "deadline": 20.0,
        }
        async with two_edges(url, **settings) as (a, b):
            rec = await a.new(owner=Owner(1, 1))
            kept = await a.new()
            sent = {await send_until_ok(a, kept) for _ in range(50)}
            await crosses(a, b, rec)
            nodes[0].kill()
            sent |= {await send_until_ok(b, kept) for _ in range(50)}
            assert sent <= await stored(a, kept)
            await crosses(a, b, rec)
            await a.until(lambda: a.restored > 0)
            assert a.lost == 0
        for follower in followers:
            follower.close()


@pytest.mark.timeout(120)
async def test_a_master_that_does_not_hear_of_its_successor() -> None:
    """As after a cut between the master and all others: Sentinel has promoted the replica and cannot tell the old
    master, which goes on answering. Edges leave it, with their calls and with their subscriptions to pokes."""
    master, replica = (start_server(_SERVER, port=0) for _ in range(2))
    with (
        running(master, replica),
        sentinel(port_of(master)) as url,
        client_of(master) as old,
        client_of(replica) as new,
    ):
        new.replicaof("127.0.0.1", port_of(master))
        await asyncio.to_thread(until, lambda: new.info("replication")["master_link_status"] == "up")
        with client_of_sentinel(url) as watcher:
            await asyncio.to_thread(until, lambda: len(watcher.sentinel_slaves("weir")) == 1)
            async with two_edges(url) as (a, b):
                rec = await a.new(owner=Owner(1, 1))
                await asyncio.to_thread(until, lambda: new.exists(keys.queue(rec.partition, rec.rcv_id)) == 1)
                # Sentinel makes a master a replica in a transaction.
                old.execute_command("ACL SETUSER default -multi -replicaof -slaveof -client|kill")
                await asyncio.to_thread(fail_over, url)
                await asyncio.to_thread(until, lambda: new.info("replication")["role"] == "master")
                await asyncio.to_thread(until, lambda: not _edges_of(old))
                assert old.info("replication")["role"] == "master"
                await crosses(a, b, rec)
                await asyncio.to_thread(until, lambda: len(_edges_of(new)) == 4)


def fail_over(url: str) -> None:
    """Let Sentinel promote the replica, as soon as Sentinel takes it for a good one."""

    def begun() -> bool:
        try:
            return bool(watcher.execute_command("SENTINEL FAILOVER weir"))
        except redis.ResponseError as error:
            assert "NOGOODSLAVE" in str(error), error
            return False

    with client_of_sentinel(url) as watcher:
        until(begun)


def _edges_of(client: "redis.Redis") -> list[dict[str, str]]:
    """The connections of edges: to call, and to hear pokes."""
    return [one for one in client.client_list() if one["name"] == "weir" or (int(one["sub"]) and not one["name"])]


def client_of_sentinel(url: str) -> "redis.Redis":
    host, _, port = url.removeprefix("redis+sentinel://").partition("/")[0].partition(":")
    return redis.Redis(host=host, port=int(port))


def master_of(nodes: list[Embedded], p: int) -> Embedded:
    """The node that has a partition's slot."""
    for node in nodes:
        with client_of(node) as client:
            for first, last, (_host, port, *_), *_rest in _ranges(client):
                if first <= Partitions().slots[p] <= last and port == port_of(node):
                    return node
    raise AssertionError("nobody has the slot")


def _ranges(client: "redis.Redis") -> list[tuple[int, int, tuple[object, int], object]]:
    answer = client.execute_command("CLUSTER SLOTS")
    if isinstance(answer, dict):
        return [(first, last, value["primary"], None) for (first, last), value in answer.items()]
    return answer  # type: ignore[no-any-return]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", kinds(["valkey", "redis6", "redis8"], {"valkey"}))
async def test_cluster(kind: str) -> None:
    server = SERVERS[kind]
    if server is None:
        pytest.skip(f"{kind} is not installed")
    cluster = start_cluster(server, replicas=1)
    with running(*cluster.nodes):
        async with two_edges(cluster.url, lease=60.0, deadline=10.0) as (a, b):
            rec = await a.new(owner=Owner(1, 1))
            kept = await a.new()
            while kept.partition != rec.partition:
                kept = await a.new()
            sent = {await send_until_ok(a, kept) for _ in range(50)}
            await crosses(a, b, rec)
            doomed = master_of(cluster.nodes, kept.partition)
            with client_of(doomed) as client:
                await asyncio.to_thread(until, lambda: client.wait(1, 1000) >= 1)
            # WAIT counts the writes of its own connection; the replica's offset tells of all of them.
            with client_of(doomed) as client:

                def caught_up() -> bool:
                    info = client.info("replication")
                    return bool(info["slave0"]["offset"] >= info["master_repl_offset"] - 1)

                await asyncio.to_thread(until, caught_up)
            doomed.kill()
            sent |= {await send_until_ok(b, kept) for _ in range(20)}
            assert sent <= await stored(a, kept)
            await crosses(a, b, rec)
            assert a.lost == 0
            assert a.store.connected
