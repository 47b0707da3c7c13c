"""Numbers of a fleet: counters that edges add up, each edge's own gauges, Redis' gauges."""

import asyncio
import json
import os
import time
from collections.abc import Mapping

from weir.redis.partitions import REGISTRY
from weir.redis.resp import as_retry
from weir.runtime.state.calls import Calls
from weir.runtime.state.keys import CommonKeys
from weir.runtime.state.sketches import Sketches

_GAUGES_TTL = 600  # seconds: an edge publishes its gauges every few seconds


class Numbers:
    def __init__(self, calls: Calls, keys: CommonKeys) -> None:
        self.sketches = Sketches(calls, keys)
        self._calls = calls
        self._keys = keys
        self._op = 0
        self._salt = os.urandom(4).hex()
        self._saving = asyncio.Lock()  # Redis recognises a repetition only of an edge's latest operation
        self._unsent: dict[str, int] = {}  # counted, in no operation yet
        self._undecided: bytes | None = None  # an operation that Redis has not answered

    async def add_stats(self, deltas: Mapping[str, int]) -> None:
        """Add counters to those of the fleet, exactly once.

        After an exception, the counters are kept and added with the next call.
        """
        self._count(deltas)
        async with self._saving:
            if self._undecided is not None:
                await self._execute(as_retry(self._undecided))
            await self._execute(self._operation())

    def _count(self, deltas: Mapping[str, int]) -> None:
        for name, delta in deltas.items():
            self._unsent[name] = self._unsent.get(name, 0) + delta

    def moved(self) -> Mapping[str, int]:
        """Further counters of this edge, which are taken with each operation."""
        return {}

    def _operation(self) -> bytes:
        self._op += 1
        op = f"{self._salt}{self._op}".encode()
        self._count(self.moved())
        unsent, self._unsent = self._unsent, {}
        pairs: list[bytes | int] = []
        for name, delta in unsent.items():
            if delta:
                pairs += [name.encode(), delta]
        stats = self._keys.stats
        return self._calls.script_wire(
            "add_stats", [stats, stats + b":" + self._calls.edge], [op, int(time.time()), *pairs]
        )

    async def _execute(self, operation: bytes) -> None:
        self._undecided = operation
        await self._calls.muxes[REGISTRY].ask(operation, script=True)
        self._undecided = None

    async def read_stats(self) -> dict[str, int]:
        """All counters; `fromTime` is when counting began (Unix time)."""
        flat: list[bytes] = await self._calls.read_registry(b"HGETALL", self._keys.stats)
        return {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}

    async def publish_edge(self, gauges: Mapping[str, int]) -> None:
        """Publish the gauges of this edge."""
        edge = self._calls.edge
        await self._calls.call(
            REGISTRY,
            "publish_edge",
            [self._keys.edge_gauges(edge), self._keys.edges],
            [json.dumps(dict(gauges)).encode(), _GAUGES_TTL, edge, int(time.time())],
        )

    async def live_edges(self) -> list[bytes]:
        """The edges that hold their lease. An edge that stops gives its lease up; that of a crashed edge expires."""
        edges: list[bytes] = await self._calls.read_registry(b"ZRANGE", self._keys.edges, 0, -1)
        held = await asyncio.gather(*(self._calls.read(0, b"EXISTS", self._keys.lease(0, edge)) for edge in edges))
        live = [edge for edge, holds in zip(edges, held, strict=True) if holds]
        if len(live) < len(edges):  # an edge that comes back publishes itself again
            await self._calls.ask_registry(b"ZREM", self._keys.edges, *set(edges).difference(live))
        return live

    async def read_edges(self) -> dict[str, dict[str, int]]:
        """The live edges with the gauges they published last."""
        edges = await self.live_edges()
        if not edges:
            return {}
        values = await self._calls.read_registry(b"MGET", *(self._keys.edge_gauges(edge) for edge in edges))
        return {e.decode(): json.loads(v) for e, v in zip(edges, values, strict=True) if v is not None}

    async def redis_info(self) -> dict[str, int | float]:
        """Gauges of Redis, summed over the masters of a cluster."""
        total: dict[str, int | float] = {}
        for mux in self._calls.topology.nodes:
            text: bytes = await mux.ask(b"*1\r\n$4\r\nINFO\r\n", durable=False)
            info = dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
            keyspace = (v for v in info.values() if v.startswith("keys="))  # Redis 8 has more names that start with db
            numbers = {
                "up": 1,
                "memory_used_bytes": int(info["used_memory"]),
                "memory_max_bytes": int(info.get("maxmemory", 0)),
                "connected_clients": int(info["connected_clients"]),
                "commands": int(info["total_commands_processed"]),
                "cpu_seconds": float(info["used_cpu_sys"]) + float(info["used_cpu_user"]),
                "keys": sum(int(v.split(",")[0].removeprefix("keys=")) for v in keyspace),
                "aof_bytes": int(info.get("aof_current_size", 0)),
                "replicas": int(info.get("connected_slaves", 0)),
                "evicted_keys": int(info["evicted_keys"]),
            }
            total = {name: total.get(name, 0) + value for name, value in numbers.items()}
        total["up"] = int(self._calls.connected)
        return total
