"""Numbers of the fleet: counters that edges add up, what is stored, active queues, and each edge's own gauges."""

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from weir.store import keys
from weir.store.core import Core, StoreConfig
from weir.store.topology import REGISTRY, Topology

_PERIODS = (("day", 2), ("week", 9), ("month", 33))  # days that a period's sketch is kept
_STORED = ("queues", "notifiers")
_SERVICES = 100  # services asked about in one call


def _starts(now: datetime) -> dict[str, int]:
    today = now.date()
    return {
        "day": today.toordinal(),
        "week": (today - timedelta(days=today.weekday())).toordinal(),
        "month": today.replace(day=1).toordinal(),
    }


class Stats(Core):
    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(config, topology)
        self._stats_op = 0
        self._stats_salt = os.urandom(4).hex()

    async def add_stats(self, deltas: Mapping[str, int]) -> None:
        """Adds counters, once whatever happens on the way."""
        self._stats_op += 1
        op = f"{self._stats_salt}{self._stats_op}".encode()
        stored, self.stored_delta = self.stored_delta, 0
        waiting, self.ntf_delta = self.ntf_delta, 0
        pairs: list[bytes | int] = []
        for name, delta in (*deltas.items(), ("messages", stored), ("notifications", waiting)):
            if delta:
                pairs += [name.encode(), delta]
        try:
            await self.call(
                REGISTRY, "add_stats", [keys.STATS, keys.STATS + b":" + self.edge], [op, int(time.time()), *pairs]
            )
        except BaseException:
            self.stored_delta += stored
            self.ntf_delta += waiting
            raise

    async def read_stats(self) -> dict[str, int]:
        """All counters; `fromTime` is when counting began (Unix time)."""
        flat: list[bytes] = await self.look_registry(b"HGETALL", keys.STATS)
        return {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}

    async def add_active(self, queues: Iterable[bytes], queues_ntf: Iterable[bytes]) -> None:
        """Queues in use today, this week and this month, as sketches of hashes whose key ends with the period."""
        asked: list[asyncio.Future[Any]] = []
        starts = _starts(datetime.now(UTC))
        for what, ids in (("queues", queues), ("notifiers", queues_ntf)):
            listed = list(ids)
            if not listed:
                continue
            for period, days in _PERIODS:
                key = keys.active_queues(f"{what}:{period}", starts[period])
                salt = blake2b(key, key=self.config.placement_key, digest_size=32).digest()
                hashes = [blake2b(i, key=salt, digest_size=8).digest() for i in listed]
                for at in range(0, len(hashes), 500):
                    asked.append(self.ask_registry(b"PFADD", key, *hashes[at : at + 500]))
                asked.append(self.ask_registry(b"EXPIRE", key, days * 86400))
        await asyncio.gather(*asked)

    async def counts(self) -> dict[str, int]:
        """What is stored: queues, notifiers, messages, notifications, services, their queues, active queues, edges."""
        starts = _starts(datetime.now(UTC))
        sketches = [(what, period) for what in ("queues", "notifiers") for period, _ in _PERIODS]
        shares, active, services, waiting, edges = await asyncio.gather(
            asyncio.gather(
                *(
                    self.look(p, b"HMGET", keys.counters(p), *(name.encode() for name in _STORED))
                    for p in range(keys.PARTITIONS)
                )
            ),
            asyncio.gather(
                *(
                    self.look_registry(b"PFCOUNT", keys.active_queues(f"{what}:{period}", starts[period]))
                    for what, period in sketches
                )
            ),
            self.look_registry(b"SMEMBERS", keys.SERVICES),
            self.look_registry(b"HMGET", keys.STATS, b"messages", b"notifications"),
            self.read_edges(),
        )
        roles = await asyncio.gather(*(self.look_registry(b"HGET", keys.service_record(s), b"role") for s in services))
        counts = {name: sum(int(share[n] or 0) for share in shares) for n, name in enumerate(_STORED)}
        counts |= {f"{what}_{period}": active[n] for n, (what, period) in enumerate(sketches)}
        by_role: dict[bytes, list[bytes]] = {b"M": [], b"N": []}
        for service_id, role in zip(services, roles, strict=True):
            by_role.get(role, []).append(service_id)
        counts["rcv_service_queues"] = await self._service_queues(by_role[b"M"])
        counts["ntf_service_queues"] = await self._service_queues(by_role[b"N"])
        return counts | {
            "messages": max(0, int(waiting[0] or 0) + self.stored_delta),
            "notifications": max(0, int(waiting[1] or 0) + self.ntf_delta),
            "services": len(services),
            "rcv_services": len(by_role[b"M"]),
            "ntf_services": len(by_role[b"N"]),
            "edges": len(edges),
        }

    async def _service_queues(self, services: list[bytes]) -> int:
        """From the services' own counts: a counter beside them would cost every association and could differ."""
        total = 0
        for at in range(0, len(services), _SERVICES):
            some = services[at : at + _SERVICES]
            total += sum(
                await asyncio.gather(
                    *(
                        self.call(p, "count_queues", [keys.service(p, service_id) for service_id in some], [])
                        for p in range(keys.PARTITIONS)
                    )
                )
            )
        return total

    async def publish_edge(self, gauges: Mapping[str, int]) -> None:
        """This edge's own numbers, gone soon after the edge is."""
        key = keys.edge_gauges(self.edge)
        ttl = int(self.config.lease * 1500)
        await asyncio.gather(
            self.ask_registry(b"SET", key, json.dumps(dict(gauges)).encode(), b"PX", ttl),
            self.ask_registry(b"ZADD", keys.EDGES, int(time.time()), self.edge),
            self.ask_registry(b"ZREMRANGEBYSCORE", keys.EDGES, 0, int(time.time() - 60 - self.config.lease)),
        )

    async def read_edges(self) -> dict[str, dict[str, int]]:
        """The live edges and what they last published."""
        edges: list[bytes] = await self.look_registry(b"ZRANGE", keys.EDGES, 0, -1)
        if not edges:
            return {}
        values = await self.look_registry(b"MGET", *(keys.edge_gauges(edge) for edge in edges))
        return {e.decode(): json.loads(v) for e, v in zip(edges, values, strict=True) if v is not None}

    async def redis_info(self) -> dict[str, int | float]:
        """Redis as one, summed over the masters of a cluster."""
        total: dict[str, int | float] = {}
        for mux in self.topology.nodes:
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
        total["up"] = int(self.connected_nodes())
        return total

    def connected_nodes(self) -> bool:
        return all(mux.connected for mux in self.topology.nodes)
