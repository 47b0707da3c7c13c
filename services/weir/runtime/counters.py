"""Counters of an edge. They count from the edge's start; the fleet's are saved every few seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeVar

K = TypeVar("K", str, int)


class Counters:
    """Base of a dataclass of counters: ints, dicts (bucket → count) and further counters. Other fields are left out."""

    __slots__ = ()

    def totals(self) -> dict[str, int]:
        """Counts by name: `msgSent`, `rcvServices_srvSubOk` for a part, `msgRecvAckTimes_5` for a bucket. No zeros."""
        totals: dict[str, int] = {}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, int):
                if value:
                    totals[item.name] = value
            elif isinstance(value, dict):
                totals.update({f"{item.name}_{bucket}": count for bucket, count in value.items()})
            elif isinstance(value, Counters):
                totals.update({f"{item.name}_{name}": count for name, count in value.totals().items()})
        return totals


def increase(since: Mapping[K, int], now: Mapping[K, int]) -> dict[K, int]:
    """The difference between two `totals`, or between two histograms. No zeros."""
    return {name: count - since.get(name, 0) for name, count in now.items() if count != since.get(name, 0)}


_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 600_000)


def add_ms(buckets: dict[int, int], seconds: float) -> None:
    """Count a time in the bucket of its milliseconds, for `weir.telemetry.metrics.histogram`."""
    bucket = next((limit for limit in _MS if seconds * 1000 <= limit), _MS[-1])
    buckets[bucket] = buckets.get(bucket, 0) + 1
