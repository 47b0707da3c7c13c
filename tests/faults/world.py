"""The router of a run: Redis in one of three kinds, two edges, their network, and what breaks them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from time import monotonic

from tests.chaos.processes import Deployment, EdgeProcess
from tests.faults.network import SENTINEL_HOST, EdgeNetwork, NodeNetwork, join_nodes
from tests.faults.plan import EDGES, LEASE, NODES, Fault
from tests.redis.test_failover import client_of_sentinel, sentinel
from tests.support.ports import free_port
from tests.support.redis import CLUSTER_OPTIONS, client_of, form_cluster, until
from weir.redis.embedded import Embedded, binary, start_embedded

SETTINGS = {
    "WEIR_REDIS_LEASE": f"{LEASE:g}s",
    "WEIR_REDIS_COMMAND_TIMEOUT": "1500ms",
    "WEIR_REDIS_CONNECT_TIMEOUT": "60s",
    "WEIR_DRAIN_GRACE": "2s",
    "WEIR_QUEUES_QUOTA": "10000",
}
DURABILITY = {
    "fsync": {"WEIR_REDIS_DURABILITY": "fsync"},
    "cluster": {"WEIR_REDIS_DURABILITY": "fsync"},
    "replicated": {
        "WEIR_REDIS_DURABILITY": "replicated",
        "WEIR_REDIS_REPLICAS": "1",
        "WEIR_REDIS_REPLICA_TIMEOUT": "1s",
    },
}
_OPTIONS = {
    "cluster": CLUSTER_OPTIONS,
    # A master waits 5 s for more replicas before it sends its data to one; with a pair, no SEND is confirmed meanwhile.
    "replicated": {"repl-diskless-sync-delay": "0"},
}
_RESTART_LIMIT, _RESTART_PAUSE = 30.0, 0.5  # seconds
_LIBRARY = "libfaketime.so.1"
_OPEN = {"protected-mode": "no"}  # edges come from other addresses


@cache
def faketime() -> Path | None:
    """libfaketime, which shows a process another time than the machine's."""
    places = sorted(Path("/usr/lib").glob(f"*/faketime/{_LIBRARY}"))
    return places[0] if places else None


class Clock:
    """The offset of one process' clock. The process reads the file once a second."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0.0
        self.step(0.0)
        self.environment: dict[str, str] = {}
        if (library := faketime()) is not None:
            self.environment = {
                "LD_PRELOAD": str(library),
                "FAKETIME_TIMESTAMP_FILE": str(file),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }

    def step(self, seconds: float) -> None:
        self._offset += seconds
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{self._offset:+.3f}\n")
        fresh.rename(self._file)


class Node:
    """One Redis process, which keeps its data, address and clock when it is killed and started again."""

    def __init__(self, number: int, directory: Path, options: dict[str, str], appendfsync: str) -> None:
        self.directory = directory
        self.network = NodeNetwork(number)
        self.host, self.port = self.network.address, free_port()
        self.options = _OPEN | options
        self._appendfsync = appendfsync
        directory.mkdir()
        self.clock = Clock(directory / "clock")
        self._server = directory / "server"
        words = [f"{name}={value}" for name, value in self.clock.environment.items()]
        inside = " ".join(self.network.inside)
        self._server.write_text(f'#!/bin/sh\nexec {inside} env {" ".join(words)} "{binary()}" "$@"\n')
        self._server.chmod(0o700)
        self.process: Embedded | None = None

    def start(self, **options: str) -> Embedded:
        self.process = start_embedded(
            self.directory,
            port=self.port,
            listen=self.host,
            appendfsync=self._appendfsync,
            server=self._server,
            options=self.options | options,
        )
        return self.process

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.running:
            os.kill(self.process.pid, number)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
        self.network.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class World:
    """`start`, then `suffer` one fault after the other, then `mend`, which returns when all of it works again."""

    def __init__(self, kind: str, directory: Path, broken: str = "") -> None:
        """`broken`: the fault of the edges themselves (broken.py)."""
        self.kind = kind
        self._program = ("tests.faults.broken", broken) if broken else ("weir.cli.main",)
        self.directory = directory
        self.nodes: list[Node] = []
        self.edges: list[EdgeProcess] = []
        self.networks: list[EdgeNetwork] = []
        self.clocks: list[Clock] = []  # of the edges
        self.suffered: Counter[str] = Counter()
        self._stack = ExitStack()
        self._sentinel = ""
        self._edge_locks = [asyncio.Lock() for _ in range(EDGES)]  # an edge that starts is not hit again
        self._redis_lock = asyncio.Lock()

    async def start(self) -> None:
        url = self._start_redis()
        deployment = Deployment(self.directory, url, SETTINGS | DURABILITY[self.kind])
        for number in range(EDGES):
            network = EdgeNetwork(number)
            self.networks.append(network)
            clock = Clock(self.directory / f"clock-{number}")
            self.clocks.append(clock)
            self.edges.append(
                EdgeProcess(
                    deployment,
                    network.address,
                    inside=network.inside,
                    program=self._program,
                    environment=clock.environment,
                )
            )
        await asyncio.gather(*(edge.start() for edge in self.edges))

    def _start_redis(self) -> str:
        options = _OPTIONS.get(self.kind, {})
        fsync = "everysec" if self.kind == "replicated" else "always"
        for number in range(NODES[self.kind]):
            self.nodes.append(Node(number, self.directory / f"redis-{number}", options, fsync))
        if self.kind == "replicated":
            return self._start_pair()
        started = [node.start() for node in self.nodes]
        if self.kind == "cluster":
            return form_cluster(started, masters=len(started)).url
        return started[0].url

    def _start_pair(self) -> str:
        master, replica = self.nodes
        master.start()
        follower = replica.start(replicaof=f"{master.host} {master.port}")
        with client_of(follower) as client:
            until(lambda: client.info("replication")["master_link_status"] == "up")
        url = self._stack.enter_context(sentinel(master.port, master.host, SENTINEL_HOST))
        self._sentinel = url
        with client_of_sentinel(url) as watcher:
            until(lambda: len(watcher.sentinel_slaves("weir")) == 1)
        return url

    # Faults

    async def suffer(self, fault: Fault) -> None:
        """Break it, wait, mend it."""
        self.suffered[fault.what] += 1
        victim, _, what = fault.what.partition(" ")
        if fault.what == "edge clock":
            self.clocks[fault.target].step(fault.step)
        elif victim == "edge":
            async with self._edge_locks[fault.target]:
                await self._hit_edge(self.edges[fault.target], what, fault)
        elif victim == "redis" and not what.startswith("line "):
            async with self._redis_lock:
                await self._hit_redis(self.nodes[fault.target], what, fault)
        else:
            network = self.networks[fault.target]
            line = network.redis if victim == "redis" else network.client
            how = what.removeprefix("line ")
            if how == "slow":
                line.slow()
            else:
                line.lose(*(("in", "out") if how == "cut" else (how,)))
            await asyncio.sleep(fault.seconds)
            line.mend()

    async def _hit_edge(self, edge: EdgeProcess, what: str, fault: Fault) -> None:
        if what == "stop":
            edge.signal(signal.SIGSTOP)
            await asyncio.sleep(fault.seconds)
            edge.signal(signal.SIGCONT)
        else:
            if what == "drain":
                await edge.stop()
            else:
                edge.kill()
            await asyncio.sleep(fault.seconds)
            await self._restart(edge)

    async def _restart(self, edge: EdgeProcess) -> None:
        """As a supervisor does: an edge that cannot start because Redis is away is started again."""
        end = monotonic() + _RESTART_LIMIT
        while True:
            try:
                await edge.start()
                return
            except RuntimeError:
                if monotonic() > end:
                    raise
            await asyncio.sleep(_RESTART_PAUSE)

    async def _hit_redis(self, node: Node, what: str, fault: Fault) -> None:
        if what == "clock":
            node.clock.step(fault.step)
        elif what == "stop":
            node.signal(signal.SIGSTOP)
            await asyncio.sleep(fault.seconds)
            node.signal(signal.SIGCONT)
        elif what == "cut":
            node.network.line.lose("in", "out")
            await asyncio.sleep(fault.seconds)
            node.network.line.mend()
        elif what in ("apart", "exile"):
            others = [other.network for other in self.nodes if other is not node]
            node.network.part(others, sentinel=what == "exile")
            await asyncio.sleep(fault.seconds)
            join_nodes()
        else:
            assert node.process is not None
            node.process.kill()
            await asyncio.sleep(fault.seconds)
            node.start(**self._role_of(node))

    def _role_of(self, node: Node) -> dict[str, str]:
        """A node that comes back follows the master that Sentinel names, or is that master."""
        if not self._sentinel:
            return {}
        with client_of_sentinel(self._sentinel) as watcher:
            host, port = watcher.sentinel_get_master_addr_by_name("weir")
        return {} if int(port) == node.port else {"replicaof": f"{host.decode()} {int(port)}"}

    def mend(self) -> None:
        """Whatever is still broken: lines and stopped processes. Killed ones come back in `suffer`."""
        for network in self.networks:
            network.redis.mend()
            network.client.mend()
        for node in self.nodes:
            node.network.line.mend()
        join_nodes()
        for process in (*self.edges, *self.nodes):
            process.signal(signal.SIGCONT)

    def errors(self) -> Iterable[str]:
        """What edges logged as errors of their own, and edges that have ended by themselves."""
        for number, edge in enumerate(self.edges):
            yield from (f"edge {number} logged: {line}" for line in edge.errors())
            if not edge.running:
                yield f"edge {number} has ended"

    def stop(self) -> None:
        for edge in self.edges:
            edge.kill()
        for node in self.nodes:
            node.close()
        self._stack.close()
        for network in self.networks:
            network.close()
