"""The Redis under a run of messages: one Redis that comes back, replicas that take over, or slots that move."""

from __future__ import annotations

import asyncio
import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, Protocol

import redis

from tests.redis.test_failover import client_of_sentinel, sentinel
from tests.support.redis import (
    CLUSTER_OPTIONS,
    DEBIAN,
    SERVERS,
    client_of,
    discard,
    start_cluster,
    start_server,
    until,
)
from tests.support.reshard import Reshard
from weir.redis.embedded import Embedded, start_embedded
from weir.redis.partitions import Partitions


class Backend(Protocol):
    url: str
    settings: ClassVar[dict[str, str]]  # of the edges

    def start(self) -> None: ...

    async def hit(self, rng: random.Random) -> None:
        """Kills a Redis. Returns when whoever takes its place does."""

    def stop(self) -> None: ...


def _port(node: Embedded) -> int:
    return int(node.url.rpartition(":")[2])


class Fsync:
    """One Redis that writes before it answers; it is away for one of these times."""

    settings: ClassVar = {"WEIR_REDIS_DURABILITY": "fsync"}

    def __init__(self, downtimes: tuple[float, ...]) -> None:
        self.downtimes = downtimes
        self.directory = Path(tempfile.mkdtemp(prefix="weir-chaos-"))

    def start(self) -> None:
        self.node = start_embedded(self.directory, appendfsync="always")
        self.url = self.node.url

    async def hit(self, rng: random.Random) -> None:
        self.node.kill()
        await asyncio.sleep(rng.choice(self.downtimes))
        self.start()

    def stop(self) -> None:
        discard(self.node)


class SentinelGroup:
    """A master and two replicas; a write must be on one replica. A master that was killed comes back as a replica."""

    settings: ClassVar = {
        "WEIR_REDIS_DURABILITY": "replicated",
        "WEIR_REDIS_REPLICAS": "1",
        "WEIR_REDIS_REPLICA_TIMEOUT": "2s",
    }

    def start(self) -> None:
        self.server = DEBIAN or SERVERS["valkey"]
        self.nodes = [start_server(self.server, port=0) for _ in range(3)]
        self.master = self.nodes[0]
        for node in self.nodes[1:]:
            self._follow(node)
        self._stack = ExitStack()
        self.url = self._stack.enter_context(sentinel(_port(self.master)))
        with client_of_sentinel(self.url) as watcher:
            until(lambda: len(watcher.sentinel_slaves("weir")) == 2)

    def _follow(self, node: Embedded) -> None:
        with client_of(node) as client:
            client.replicaof("127.0.0.1", _port(self.master))
            until(lambda: client.info("replication")["master_link_status"] == "up")

    async def hit(self, rng: random.Random) -> None:
        killed = self.master
        port = _port(killed)
        killed.kill()
        with client_of_sentinel(self.url) as watcher:

            def other() -> bool:
                return int(watcher.sentinel_get_master_addr_by_name("weir")[1]) != port

            await asyncio.to_thread(until, other)
            chosen = int(watcher.sentinel_get_master_addr_by_name("weir")[1])
        self.master = next(node for node in self.nodes if _port(node) == chosen)
        options = {"replicaof": f"127.0.0.1 {chosen}"}
        back = start_embedded(killed.directory, server=self.server, port=port, options=options)
        self.nodes[self.nodes.index(killed)] = back
        with client_of(back) as client:
            await asyncio.to_thread(until, lambda: client.info("replication").get("master_link_status") == "up")

    def stop(self) -> None:
        self._stack.close()
        for node in self.nodes:
            discard(node)


class ClusterGroup:
    """Three masters, each with a replica that must have every write."""

    settings: ClassVar = SentinelGroup.settings

    def start(self) -> None:
        server = SERVERS["valkey"]
        assert server is not None
        self.server = server
        self.cluster = start_cluster(server, replicas=1)
        self.url = self.cluster.url
        for node in self.cluster.nodes[:3]:
            with client_of(node) as client:
                until(lambda c=client: c.info("replication")["slave0"]["state"] == "online")  # type: ignore[misc]

    async def hit(self, rng: random.Random) -> None:
        nodes = self.cluster.nodes
        masters = [node for node in nodes if self._role(node) == "master"]
        killed = rng.choice(masters)
        survivors = [node for node in nodes if node is not killed]
        port = _port(killed)
        killed.kill()
        count = len(masters)
        await asyncio.to_thread(until, lambda: sum(self._role(n) == "master" for n in survivors) == count, 40)
        back = start_embedded(killed.directory, server=self.server, port=port, options=CLUSTER_OPTIONS)
        nodes[nodes.index(killed)] = back
        with client_of(back) as client:
            await asyncio.to_thread(until, lambda: client.info("replication").get("master_link_status") == "up", 40)

    def _role(self, node: Embedded) -> str:
        with client_of(node) as client:
            return str(client.info("replication")["role"])

    def stop(self) -> None:
        self.cluster.stop()


class Resharding:
    """Three masters, between which slots move, key by key; each holds some that make that take a while."""

    settings: ClassVar[dict[str, str]] = {}

    def start(self) -> None:
        server = SERVERS["valkey"]
        assert server is not None
        self.cluster = start_cluster(server)
        self.url = self.cluster.url
        with redis.RedisCluster.from_url(self.cluster.nodes[0].url) as client:
            for tag in Partitions().tags:
                client.mset({b"%b:filler:%d" % (tag, n): b"x" for n in range(200)})

    async def hit(self, rng: random.Random) -> None:
        await asyncio.to_thread(self._move_half, *rng.sample(range(3), 2))

    def _move_half(self, source: int, target: int) -> None:
        moves = [Reshard(self.cluster.nodes, place, to=target) for place in range(len(Partitions().tags))]
        theirs = [move for move in moves if move.source == source]
        for move in theirs[: len(theirs) // 2]:
            move.whole(step=1)

    def stop(self) -> None:
        self.cluster.stop()
