"""The rollups of a deployment, as the pipeline reads them: the stream in Redis, and sums over records."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields

import redis

from weir.redis.partitions import Partitions
from weir.runtime.counters import Counters
from weir.runtime.state.keys import CommonKeys
from weir.runtime.state.rollups import FIELD
from weir.telemetry.rollups.histogram import merge
from weir.telemetry.rollups.record import Rollup, decode


def raw_records(url: str, prefix: str = "") -> list[bytes]:
    with redis.Redis.from_url(url) as client:
        entries = client.xrange(CommonKeys(Partitions(prefix)).rollups)
    return [fields[FIELD] for _, fields in entries]


def records(url: str, prefix: str = "", edges: Iterable[str] | None = None) -> list[Rollup]:
    """Each record once, in the order of the stream; with `edges`, those of these edges."""
    found = {(r.edge, r.sequence): r for r in map(decode, raw_records(url, prefix))}
    wanted = None if edges is None else set(edges)
    return [r for r in found.values() if wanted is None or r.edge in wanted]


async def until_records(
    url: str, enough: Callable[[list[Rollup]], bool], prefix: str = "", edges: Iterable[str] | None = None
) -> list[Rollup]:
    """Read the stream until it has what the test waits for."""
    async with asyncio.timeout(30):
        while not enough(found := await asyncio.to_thread(records, url, prefix, edges)):
            await asyncio.sleep(0.05)
    return found


class Sums:
    """All records of some edges, added up."""

    def __init__(self, found: Iterable[Rollup]) -> None:
        found = list(found)
        self.commands = sum_counts(r.commands for r in found)
        self.events = sum_counts(r.events for r in found)
        names = {name for r in found for name in r.histograms}
        self.histograms = {name: merge(r.histograms.get(name, {}) for r in found) for name in names}

    def count(self, histogram: str) -> int:
        """Values that a histogram has counted."""
        return sum(self.histograms.get(histogram, {}).values())


def sum_counts(counts: Iterable[object]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)  # type: ignore[call-overload]
    return dict(total)


def sequences(found: Iterable[Rollup]) -> dict[str, list[int]]:
    """Sequence numbers by edge, in the order of the stream."""
    by_edge: dict[str, list[int]] = {}
    for record in found:
        by_edge.setdefault(record.edge, []).append(record.sequence)
    return by_edge


def count_everything(stats: Counters) -> None:
    """Set every counter to 1."""
    for item in fields(stats):  # type: ignore[arg-type]
        value = getattr(stats, item.name)
        if isinstance(value, int):
            setattr(stats, item.name, 1)
        elif isinstance(value, Counters):
            count_everything(value)
