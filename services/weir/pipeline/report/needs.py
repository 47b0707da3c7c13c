"""The needs of the next months: edges from the CPU they use, and Redis' memory from the bytes of a queue.

The assumptions, which the page repeats. Edges: in the busiest hour of a day an edge uses at most 60 % of a core, as its
busiest minute uses more; one edge can fail while the others carry everything; there are never fewer than two. Redis: a
queue needs as many bytes as today, with its messages and indexes, or the memory grows as it did, whichever is more; a
quarter of it stays free, for buffers, for fragmentation, and for pages that are copied while Redis saves. Everything is
counted for the upper edge of the forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final

from weir.pipeline.report.forecast import Expected, Trend, fit
from weir.pipeline.report.gold import hour, ordinal
from weir.pipeline.report.part import DAY, Part
from weir.pipeline.tables.columns import CAPACITY

AHEAD: Final = (30, 90)
BUSY: Final = 0.6
FREE: Final = 0.25
LEAST_EDGES: Final = 2

_STORED: Final = {"smp": "queues", "ntf": "token_subscriptions"}
_ENOUGH: Final = 1_000
"""With fewer queues most of Redis' memory is not theirs."""
_GIB: Final = 2**30
_SMALL: Final = 64 * 2**20
_WITHIN: Final = 3 * 365


@dataclass(frozen=True, slots=True)
class Capacity:
    """The history of one router by day (`gold.ordinal`), and its trends."""

    stored_name: str
    used: Mapping[int, float]
    stored: Mapping[int, float]
    cores: Mapping[int, float]
    limit: float | None
    edges: int
    edge_memory: float | None
    used_trend: Trend | None
    stored_trend: Trend | None
    cores_trend: Trend | None

    @property
    def bytes_each(self) -> float | None:
        """Redis' memory per queue, the median of the last seven days."""
        days = sorted(self.used.keys() & self.stored.keys())[-7:]
        found = [self.used[day] / self.stored[day] for day in days if self.stored[day] >= _ENOUGH]
        return median(found) if found else None

    def full(self) -> tuple[int | None, int | None]:
        """The days on which Redis reaches its limit: expected, and at the earliest."""
        if self.limit is None or self.used_trend is None:
            return None, None
        return self.used_trend.reaches(self.limit, _WITHIN)


@dataclass(frozen=True, slots=True)
class Need:
    """The needs some days from now."""

    days: int
    stored: Expected | None
    used: Expected | None
    redis: float | None
    cores: Expected | None
    edges: int | None


def capacity(part: Part) -> Capacity | None:
    """None: gold does not say what Redis uses."""
    used = part.days(CAPACITY, "redis_used_bytes")
    if not used:
        return None
    name = _STORED[part.program]
    stored = part.days(CAPACITY, name)
    cores = _busiest(part)
    limits = part.days(CAPACITY, "redis_max_bytes")
    edges = part.days(CAPACITY, "edges")
    memory = part.days(CAPACITY, "edge_rss_bytes_max")
    return Capacity(
        stored_name=name.replace("token_", ""),
        used=used,
        stored=stored,
        cores=cores,
        limit=limits[max(limits)] or None if limits else None,
        edges=int(edges[max(edges)]) if edges else 0,
        edge_memory=memory[max(memory)] if memory else None,
        used_trend=fit(used),
        stored_trend=fit(stored),
        cores_trend=fit(cores),
    )


def needs(of: Capacity) -> list[Need]:
    """The needs in 30 and in 90 days."""
    found = []
    for days in AHEAD:
        stored = of.stored_trend.busiest(of.stored_trend.last + days) if of.stored_trend else None
        used = of.used_trend.busiest(of.used_trend.last + days) if of.used_trend else None
        cores = of.cores_trend.busiest(of.cores_trend.last + days) if of.cores_trend else None
        each = of.bytes_each
        high = max(stored.high * each if stored and each else 0.0, used.high if used else 0.0)
        found.append(
            Need(
                days=days,
                stored=stored,
                used=used,
                redis=memory_for(high) if high else None,
                cores=cores,
                edges=edges_for(cores.high) if cores else None,
            )
        )
    return found


def edges_for(cores: float) -> int:
    return max(LEAST_EDGES, ceil(cores / BUSY) + 1)


def memory_for(used: float) -> float:
    """With the free quarter, rounded up: to whole GiB, or to 64 MiB below one."""
    wanted = used / (1 - FREE)
    step = _GIB if wanted > _GIB else _SMALL
    return float(ceil(wanted / step) * step)


def _busiest(part: Part) -> dict[int, float]:
    """The cores that all edges together used in the busiest hour of each day."""
    edges = part.numbers(CAPACITY, "edges", "hour")
    found: dict[int, float] = {}
    last = part.span.end - part.span.end % DAY
    for row in part.rows(CAPACITY, grain="hour"):
        at = hour(row["at"])
        if row["cpu_share"] is not None and at in edges and at < last:
            day = ordinal(at)
            found[day] = max(found.get(day, 0.0), float(row["cpu_share"]) * edges[at])
    return found
