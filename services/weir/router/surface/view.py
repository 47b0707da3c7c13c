"""An edge as the page, the metrics and the control port of the SMP router see it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from weir.redis.errors import Unavailable
from weir.router.config import RouterConfig
from weir.router.store.store import Store
from weir.surface.cached import Cached
from weir.surface.outage import Outage
from weir.telemetry.metrics import sum_edges

OUTAGE = Outage((Unavailable,), "Redis does not answer")

_FILLS_UP = 0.75  # share of Redis' memory limit; the alert WeirRedisFillsUp has the same
# Right within a second: numbers are reused for 0.2 s, and what an edge reports may be 0.7 s old (REPORT_PAUSE).
_FRESH = 0.2
_REPORT_LIMIT = 0.5  # seconds that the edges have to report; a late edge is shown with its last report


class ClientInfo(NamedTuple):
    """One connected client, without its address and its ids. Times are Unix seconds."""

    id: int
    version: int
    created: float
    rcv_active: float
    snd_active: float
    subs: int
    ntf_subs: int
    outgoing: int
    service: bool


class EdgeView(Protocol):
    @property
    def config(self) -> RouterConfig: ...
    @property
    def store(self) -> Store: ...
    @property
    def address(self) -> str:
        """`smp://…` as clients use it."""

    @property
    def edge_id(self) -> str: ...
    @property
    def started_at(self) -> float: ...
    @property
    def ready(self) -> bool:
        """Whether new clients are welcome."""

    @property
    def draining(self) -> bool: ...
    def gauges(self) -> Mapping[str, int]:
        """Numbers of this process now, by name."""

    def counted(self) -> Mapping[str, int]:
        """Events of this process since its start, by the reference's stat names."""

    def clients(self) -> Iterable[ClientInfo]: ...
    def trace_session(self, client: int, on: bool) -> bool:
        """Trace every command of one client. Return False if there is no such client."""

    async def save(self) -> None:
        """Put what was counted into the store. Raises Unavailable."""

    async def report(self) -> None:
        """Save, unless that was asked for a moment ago."""

    async def suspend(self) -> None: ...
    async def resume(self) -> None: ...


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
    """The numbers of the whole deployment, read through one edge.

    Edges save their numbers when they are asked to: all at the same moment, so that the numbers of one edge fit those
    of another. Edges that report by themselves every second would cost more, and a message that one edge has counted
    as sent and another not yet as received would be shown as waiting.
    """

    def __init__(self, edge: EdgeView, *, for_everybody: bool = True) -> None:
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


def memory_problems(redis: Mapping[str, float]) -> list[str]:
    """A sentence when Redis' memory fills up."""
    used, most = redis.get("memory_used_bytes", 0), redis.get("memory_max_bytes", 0)
    if not most or used < _FILLS_UP * most:
        return []
    return [f"Redis uses {100 * used / most:.0f} % of the memory that it may use; when it is full, senders get errors."]
