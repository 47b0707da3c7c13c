"""What the server page, the metrics and the control port may see of an edge and ask of it, and nothing more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from weir.router.config import RouterConfig
from weir.store.store import Store
from weir.telemetry.metrics import sum_edges

_FRESH = 1.0  # seconds that fleet numbers are reused, so that many viewers cost Redis as much as one


class ClientInfo(Protocol):
    """One connected client, without its address and its ids. Times are Unix seconds."""

    @property
    def id(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def created(self) -> float: ...
    @property
    def rcv_active(self) -> float: ...
    @property
    def snd_active(self) -> float: ...
    @property
    def subs(self) -> int: ...
    @property
    def ntf_subs(self) -> int: ...
    @property
    def outgoing(self) -> int: ...
    @property
    def service(self) -> bool: ...


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
        """Listening, with its lease, neither draining nor suspended."""

    @property
    def draining(self) -> bool: ...
    def gauges(self) -> Mapping[str, int]:
        """This process now, by name."""

    def counted(self) -> Mapping[str, int]:
        """Events of this process since its start, by the reference's stat names."""

    def clients(self) -> Iterable[ClientInfo]: ...
    def trace_session(self, client: int, on: bool) -> bool:
        """Trace every command of one client; False when there is no such client."""

    async def save(self) -> None:
        """Put what was counted into the store; raises Unavailable."""

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
    """The whole deployment's numbers, through one edge; read together and kept for a moment."""

    def __init__(self, edge: EdgeView) -> None:
        self._edge = edge
        self._numbers: FleetNumbers | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def numbers(self) -> FleetNumbers:
        async with self._lock:
            if self._numbers is None or time.monotonic() >= self._until:
                store = self._edge.store
                stats, counts, edges, redis = await asyncio.gather(
                    store.read_stats(), store.counts(), store.read_edges(), store.redis_info()
                )
                # This edge's own gauges are fresher than what it last published.
                own = {self._edge.edge_id: self._edge.gauges()}
                self._numbers = FleetNumbers(stats, counts, {**edges, **own}, redis)
                self._until = time.monotonic() + _FRESH
            return self._numbers
