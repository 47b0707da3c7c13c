"""Reads the CPU time and memory that processes, the machine and Redis have used."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import redis

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of all threads of a process; 0 if the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def machine_busy() -> tuple[float, float]:
    """Return (busy, total) seconds of all cores since the machine started."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / _TICKS, sum(fields) / _TICKS


@dataclass(frozen=True)
class RedisUsage:
    cpu_s: float = 0.0
    commands: int = 0
    calls: dict[str, int] = field(default_factory=dict)


def redis_usage(url: str) -> RedisUsage:
    """Read INFO. For a cluster, this is the usage of the one node that `url` names."""
    client = redis.Redis.from_url(url)
    try:
        info = client.info("cpu") | client.info("stats") | client.info("commandstats")
    finally:
        client.close()
    calls = {
        name.removeprefix("cmdstat_"): int(stats["calls"])
        for name, stats in info.items()
        if name.startswith("cmdstat_")
    }
    cpu = float(info["used_cpu_sys"]) + float(info["used_cpu_user"])
    return RedisUsage(cpu, int(info["total_commands_processed"]), calls)


@dataclass(frozen=True)
class Usage:
    """The counters of a router's processes at one moment."""

    at: float
    edges: dict[int, float]
    redis: RedisUsage | None
    machine: tuple[float, float]


def usage(edge_pids: tuple[int, ...], redis_url: str | None) -> Usage:
    return Usage(
        time.monotonic(),
        {pid: cpu_seconds(pid) for pid in edge_pids},
        redis_usage(redis_url) if redis_url else None,
        machine_busy(),
    )


@dataclass(frozen=True)
class Spent:
    """The usage between two moments."""

    wall_s: float
    edges_s: float
    redis_s: float
    redis_commands: int
    machine_fraction: float
    edge_fractions: tuple[float, ...]
    redis_calls: dict[str, int]


def spent(before: Usage, after: Usage) -> Spent:
    wall = after.at - before.at
    edges = [after.edges[pid] - before.edges.get(pid, 0.0) for pid in after.edges]
    calls: dict[str, int] = {}
    redis_s, commands = 0.0, 0
    if before.redis is not None and after.redis is not None:
        redis_s = after.redis.cpu_s - before.redis.cpu_s
        commands = after.redis.commands - before.redis.commands
        for name, count in after.redis.calls.items():
            if count > before.redis.calls.get(name, 0):
                calls[name] = count - before.redis.calls.get(name, 0)
    busy = after.machine[0] - before.machine[0]
    total = after.machine[1] - before.machine[1]
    return Spent(
        wall, sum(edges), redis_s, commands, busy / total if total else 0.0, tuple(e / wall for e in edges), calls
    )
