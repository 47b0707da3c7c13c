"""Numbers of the fleet: counters that edges add up, what is stored, active queues, and each edge's own gauges."""

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from weir.redis.partitions import REGISTRY
from weir.redis.resp import as_retry
from weir.router.store import keys
from weir.router.store.core import Core

_PERIODS = (("day", 2), ("week", 9), ("month", 33))  # days that the sketch of a period is kept
_STORED = ("queues", "notifiers")
_SERVICES = 100  # services of one script call
_GAUGES_TTL = 600  # seconds: an edge publishes its gauges every few seconds


def _starts(now: datetime) -> dict[str, int]:
    today = now.date()
    return {
        "day": today.toordinal(),
        "week": (today - timedelta(days=today.weekday())).toordinal(),
        "month": today.replace(day=1).toordinal(),
    }


class Stats:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._unsaved = core.unsaved
        self._stats_op = 0
        self._stats_salt = os.urandom(4).hex()
        self._saving = asyncio.Lock()  # Redis recognises a repetition only of an edge's latest operation
        self._unsent: dict[str, int] = {}  # counted, in no operation yet
        self._undecided: bytes | None = None  # an operation that Redis has not answered

    async def add_stats(self, deltas: Mapping[str, int]) -> None:
        """Add counters to those of the fleet, exactly once.

        After an exception, the counters are kept and added with the next call.
        """
        for name, delta in deltas.items():
            self._unsent[name] = self._unsent.get(name, 0) + delta
        async with self._saving:
            if self._undecided is not None:
                await self._execute(as_retry(self._undecided))
            await self._execute(self._operation())

    def _operation(self) -> bytes:
        self._stats_op += 1
        op = f"{self._stats_salt}{self._stats_op}".encode()
        unsent, self._unsent = self._unsent, {}
        unsaved = self._unsaved
        moved = {"messages": unsaved.messages, "notifications": unsaved.notifications}
        unsaved.messages = unsaved.notifications = 0
        pairs: list[bytes | int] = []
        for name, delta in (*unsent.items(), *moved.items()):
            if delta:
                pairs += [name.encode(), delta]
        return self._core.script_wire(
            "add_stats", [keys.STATS, keys.STATS + b":" + self._core.edge], [op, int(time.time()), *pairs]
        )

    async def _execute(self, operation: bytes) -> None:
        self._undecided = operation
        await self._core.muxes[REGISTRY].ask(operation, script=True)
        self._undecided = None

    async def read_stats(self) -> dict[str, int]:
        """All counters; `fromTime` is when counting began (Unix time)."""
        flat: list[bytes] = await self._core.read_registry(b"HGETALL", keys.STATS)
        return {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}

    async def add_active(self, queues: Iterable[bytes], queues_ntf: Iterable[bytes]) -> None:
        """Add queues in use to the HyperLogLog sketches of today, this week and this month.

        A sketch gets keyed hashes instead of ids, and each period has another key.
        """
        asked: list[asyncio.Future[Any]] = []
        starts = _starts(datetime.now(UTC))
        for what, ids in (("queues", queues), ("notifiers", queues_ntf)):
            listed = list(ids)
            if not listed:
                continue
            for period, days in _PERIODS:
                key = keys.active_queues(f"{what}:{period}", starts[period])
                salt = blake2b(key, key=self._core.config.placement_key, digest_size=32).digest()
                hashes = [blake2b(i, key=salt, digest_size=8).digest() for i in listed]
                for at in range(0, len(hashes), 500):
                    asked.append(self._core.call(REGISTRY, "add_active", [key], [days * 86400, *hashes[at : at + 500]]))
        await asyncio.gather(*asked)

    async def counts(self) -> dict[str, int]:
        """Totals of the fleet: queues, notifiers, messages, notifications, services and their queues, active queues."""
        starts = _starts(datetime.now(UTC))
        sketches = [(what, period) for what in ("queues", "notifiers") for period, _ in _PERIODS]
        shares, active, services, waiting, edges = await asyncio.gather(
            asyncio.gather(
                *(
                    self._core.read(p, b"HMGET", keys.counters(p), *(name.encode() for name in _STORED))
                    for p in range(keys.PARTITIONS)
                )
            ),
            asyncio.gather(
                *(
                    self._core.read_registry(b"PFCOUNT", keys.active_queues(f"{what}:{period}", starts[period]))
                    for what, period in sketches
                )
            ),
            self._core.read_registry(b"SMEMBERS", keys.SERVICES),
            self._core.read_registry(b"HMGET", keys.STATS, b"messages", b"notifications"),
            self.read_edges(),
        )
        roles = await asyncio.gather(
            *(self._core.read_registry(b"HGET", keys.service_record(s), b"role") for s in services)
        )
        counts = {name: sum(int(share[n] or 0) for share in shares) for n, name in enumerate(_STORED)}
        counts |= {f"{what}_{period}": active[n] for n, (what, period) in enumerate(sketches)}
        by_role: dict[bytes, list[bytes]] = {b"M": [], b"N": []}
        for service_id, role in zip(services, roles, strict=True):
            by_role.get(role, []).append(service_id)
        counts["rcv_service_queues"] = await self._service_queues(by_role[b"M"])
        counts["ntf_service_queues"] = await self._service_queues(by_role[b"N"])
        return counts | {
            "messages": max(0, int(waiting[0] or 0) + self._unsaved.messages),
            "notifications": max(0, int(waiting[1] or 0) + self._unsaved.notifications),
            "services": len(services),
            "rcv_services": len(by_role[b"M"]),
            "ntf_services": len(by_role[b"N"]),
            "edges": len(edges),
        }

    async def _service_queues(self, services: list[bytes]) -> int:
        """Sum the services' own counts. A separate counter would cost time in every association and could differ."""
        total = 0
        for at in range(0, len(services), _SERVICES):
            some = services[at : at + _SERVICES]
            total += sum(
                await asyncio.gather(
                    *(
                        self._core.call(p, "count_queues", [keys.service(p, service_id) for service_id in some], [])
                        for p in range(keys.PARTITIONS)
                    )
                )
            )
        return total

    async def publish_edge(self, gauges: Mapping[str, int]) -> None:
        """Publish the gauges of this edge."""
        key = keys.edge_gauges(self._core.edge)
        published = json.dumps(dict(gauges)).encode()
        await self._core.call(
            REGISTRY,
            "publish_edge",
            [key, keys.EDGES],
            [published, _GAUGES_TTL, self._core.edge, int(time.time())],
        )

    async def live_edges(self) -> list[bytes]:
        """The edges that hold their lease. An edge that stops gives its lease up; that of a crashed edge expires."""
        edges: list[bytes] = await self._core.read_registry(b"ZRANGE", keys.EDGES, 0, -1)
        held = await asyncio.gather(*(self._core.read(0, b"EXISTS", keys.lease(0, edge)) for edge in edges))
        live = [edge for edge, holds in zip(edges, held, strict=True) if holds]
        if len(live) < len(edges):  # an edge that comes back publishes itself again
            await self._core.ask_registry(b"ZREM", keys.EDGES, *set(edges).difference(live))
        return live

    async def read_edges(self) -> dict[str, dict[str, int]]:
        """The live edges with the gauges they published last."""
        edges = await self.live_edges()
        if not edges:
            return {}
        values = await self._core.read_registry(b"MGET", *(keys.edge_gauges(edge) for edge in edges))
        return {e.decode(): json.loads(v) for e, v in zip(edges, values, strict=True) if v is not None}

    async def redis_info(self) -> dict[str, int | float]:
        """Gauges of Redis, summed over the masters of a cluster."""
        total: dict[str, int | float] = {}
        for mux in self._core.topology.nodes:
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
        total["up"] = int(self._core.connected)
        return total
