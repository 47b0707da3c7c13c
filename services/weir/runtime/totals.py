"""The counts of an edge since its start, for rollups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weir.runtime.counters import increase


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts under the names of weir.telemetry.rollups.fields."""

    commands: Mapping[str, int] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def since(self, before: Totals) -> Totals:
        """The increase. No zeros."""
        histograms = {
            name: increase(before.histograms.get(name, {}), buckets) for name, buckets in self.histograms.items()
        }
        return Totals(
            increase(before.commands, self.commands),
            increase(before.events, self.events),
            {name: more for name, more in histograms.items() if more},
        )


NOTHING: Final = Totals()
