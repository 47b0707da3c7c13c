"""The numbers that every program brings to its rollups. A program adds its own counters, gauges and services.

All names are declared in weir.telemetry.rollups.fields, and a record with another name cannot be made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol

from weir.redis.failures import DISCONNECTED, NOT_DURABLE, TIMEOUT
from weir.runtime.edge import Edge
from weir.runtime.state.sketches import PERIODS
from weir.runtime.state.store import EdgeStore
from weir.runtime.totals import Totals
from weir.telemetry.errors import ERRORS
from weir.telemetry.metrics import process_numbers
from weir.telemetry.rollups.histogram import Histogram
from weir.telemetry.rollups.record import ServiceRollup

_FAILURES: Final = {
    TIMEOUT: "redis_timeout",
    DISCONNECTED: "redis_disconnected",
    NOT_DURABLE: "redis_not_durable",
    "OOM": "redis_full",
}
_REDIS: Final = {
    "redis_used_bytes": "memory_used_bytes",
    "redis_max_bytes": "memory_max_bytes",
    "redis_keys": "keys",
}


class Numbers(Protocol):
    """The store's numbers of the fleet."""

    async def live_edges(self) -> list[bytes]: ...
    async def counts(self) -> Mapping[str, int]: ...
    async def redis_info(self) -> Mapping[str, float]: ...


class Source(ABC):
    program: ClassVar[str]
    stored: ClassVar[Mapping[str, str]]
    """Gauges of the fleet by the names that the store's counts have. One with a period has it in both."""

    def __init__(self, edge: Edge[Any, Any], store: EdgeStore[Any], numbers: Numbers) -> None:
        self._edge = edge
        self._store = store
        self._numbers = numbers
        self._round_trips = Histogram()
        store.topology.on_round_trip = lambda seconds: self._round_trips.observe(seconds * 1e6)

    @abstractmethod
    def answers(self) -> Mapping[str, int]:
        """Answers by command and outcome, since the start."""

    @abstractmethod
    def events(self) -> Mapping[str, int]:
        """The program's counters, since the start."""

    @abstractmethod
    def histograms(self) -> Mapping[str, Histogram]:
        """The program's histograms, since the start."""

    @abstractmethod
    def program_gauges(self) -> Mapping[str, int]:
        """The program's present numbers."""

    def take_services(self) -> tuple[ServiceRollup, ...]:
        """The use of services since the last call."""
        return ()

    # For the writer (weir.runtime.rollups).

    def totals(self) -> Totals:
        """Counts since the start of the edge."""
        ended = {f"connections_{reason}": count for reason, count in self._edge.ended_connections().items()}
        histograms = {**self.histograms(), "redis_rtt": self._round_trips}
        return Totals(
            self.answers(),
            {**self.events(), **ended, **self._failures(), "errors_logged": ERRORS.by_logger.total()},
            {name: histogram.buckets() for name, histogram in histograms.items()},
        )

    def gauges(self) -> dict[str, int]:
        """Present numbers of the edge."""
        return {
            **self.program_gauges(),
            "connections": len(self._edge.sessions()),
            "rss_bytes": process_numbers()["rss_bytes"],
        }

    async def refresh(self) -> dict[str, int]:
        """Fetch what the next record needs from Redis. Return the gauges of the fleet. Raises Unavailable.

        One edge at a time returns them, because to count costs Redis some hundred calls: that with the lowest name.
        """
        live = await self._numbers.live_edges()
        if not live or min(live) != self._store.edge:
            return {}
        counts, redis = await self._numbers.counts(), await self._numbers.redis_info()
        fleet = {name: int(redis[number]) for name, number in _REDIS.items()}
        for name, number in self.stored.items():
            if name.startswith("fleet_active_"):
                fleet |= {f"{name}_{period}": counts[f"{number}_{period}"] for period in PERIODS}
            else:
                fleet[name] = counts[number]
        return fleet

    def _failures(self) -> dict[str, int]:
        counts = self._store.failures.counts
        found = {name: counts.get(kind, 0) for kind, name in _FAILURES.items()}
        return found | {"redis_failed": sum(count for kind, count in counts.items() if kind not in _FAILURES)}
