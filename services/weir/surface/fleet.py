"""The numbers of the whole deployment, read through one edge, for the page, the metrics and the control port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from weir.surface.cached import Cached
from weir.telemetry.metrics import sum_edges

_FILLS_UP = 0.75  # share of Redis' memory limit; the alert WeirRedisFillsUp has the same
# Right within a second: numbers are reused for 0.2 s, and what an edge reports may be 0.7 s old (REPORT_PAUSE).
_FRESH = 0.2
_REPORT_LIMIT = 0.5  # seconds that the edges have to report; a late edge is shown with its last report


class Numbers(Protocol):
    """The store's numbers of the fleet."""

    async def read_stats(self) -> Mapping[str, int]: ...
    async def counts(self) -> Mapping[str, int]: ...
    async def read_edges(self) -> Mapping[str, Mapping[str, int]]: ...
    async def redis_info(self) -> Mapping[str, float]: ...


class Broadcast(Protocol):
    async def ask(self, limit: float, **task: Any) -> Any:
        """Give all edges a task, and wait for the answers for at most `limit` seconds."""


class Store(Protocol):
    @property
    def stats(self) -> Numbers: ...
    @property
    def broadcast(self) -> Broadcast: ...


class EdgeOfFleet(Protocol):
    @property
    def store(self) -> Store: ...


@dataclass(frozen=True)
class FleetNumbers:
    stats: Mapping[str, int]
    counts: Mapping[str, int]
    edges: Mapping[str, Mapping[str, int]]
    redis: Mapping[str, float]
    taken_at: float = field(default_factory=time.time)

    def total(self, gauge: str) -> int:
        return sum_edges(self.edges.values()).get(gauge, 0)


class Fleet:
    """Edges save their numbers when they are asked to: all at the same moment, so that the numbers fit each other.

    Edges that report by themselves every second would cost more, and a message that one edge has counted as sent and
    another not yet as received would be shown as waiting.
    """

    def __init__(self, edge: EdgeOfFleet, *, for_everybody: bool = True) -> None:
        """Without `for_everybody`, all edges save their numbers in every reading."""
        self._edge = edge
        self._task = "report" if for_everybody else "save"
        self._cached = Cached(self._read, _FRESH if for_everybody else 0.0)

    async def numbers(self) -> FleetNumbers:
        return await self._cached.get()

    async def _read(self) -> FleetNumbers:
        await self._edge.store.broadcast.ask(_REPORT_LIMIT, do=self._task)
        store = self._edge.store.stats
        stats, counts, edges, redis = await asyncio.gather(
            store.read_stats(), store.counts(), store.read_edges(), store.redis_info()
        )
        return FleetNumbers(stats, counts, edges, redis)


def memory_problems(redis: Mapping[str, float], meaning: str) -> list[str]:
    """A sentence when Redis' memory fills up. `meaning` says what happens when it is full."""
    used, most = redis.get("memory_used_bytes", 0), redis.get("memory_max_bytes", 0)
    if not most or used < _FILLS_UP * most:
        return []
    return [f"Redis uses {100 * used / most:.0f} % of the memory that it may use; when it is full, {meaning}."]
