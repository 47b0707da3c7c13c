"""Deletes the days that are kept no longer, and then their files.

A day is first closed, so that late records cannot compute it again from what is left; then its rows are deleted; then
every file goes that no table has named for a while, also what killed runs have left. A reader that began before the
deletion has that while to end.

One command writes each table: `tables` closes days of bronze, and `ingest` deletes them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from weir.pipeline.bronze import TABLES as BRONZE
from weir.pipeline.tables import progress
from weir.pipeline.tables.columns import GOLD, SILVER
from weir.pipeline.tables.days import Progress
from weir.pipeline.tables.store import Store

GRACE: Final = 1
"""Hours for which a file stays that no table names any more."""
_LAYERS: Final[Mapping[str, tuple[str, ...]]] = {
    "bronze": tuple(BRONZE),
    "silver": tuple(table.name for table in SILVER),
    "gold": tuple(table.name for table in GOLD),
}


@dataclass(frozen=True)
class Keep:
    """How many days before the present one are kept."""

    bronze: int = 7
    silver: int = 35
    gold: int = 400

    def first_days(self, today: date) -> dict[str, date]:
        """The first day that each layer keeps."""
        days = {"bronze": self.bronze, "silver": self.silver, "gold": self.gold}
        return {layer: today - timedelta(days=count) for layer, count in days.items()}


def apply(store: Store, keep: Keep, today: date, grace: int = GRACE) -> dict[str, int]:
    """Close what has expired, and delete it from silver and gold. Return how many days each layer has closed."""
    first = keep.first_days(today)
    expired = {layer: _days_before(store, names, first[layer]) for layer, names in _LAYERS.items()}
    before = progress.load(store)
    closed = before
    for layer, days in expired.items():
        if days:
            closed = closed.close(layer, first[layer])
    if closed != before:
        progress.save(store, _without_closed(closed))
    for layer in ("silver", "gold"):
        for name in _LAYERS[layer]:
            if expired[layer]:
                store.delete_before(name, first[layer])
            store.vacuum(name, grace)
    store.vacuum(progress.NAME, grace)
    return {layer: sum(not before.is_closed(layer, day) for day in days) for layer, days in expired.items()}


def delete_closed(store: Store, names: Iterable[str], grace: int = GRACE) -> int:
    """Delete the closed days of these tables of bronze. Return how many days that were."""
    first = progress.load(store).closed.get("bronze")
    if first is None:
        return 0
    names = tuple(names)
    days = _days_before(store, names, first)
    for name in names:
        if days:
            store.delete_before(name, first)
        store.vacuum(name, grace)
    return len(days)


def _days_before(store: Store, names: Iterable[str], first: date) -> set[date]:
    return {day for name in names for day in store.files(name)[1] if day < first}


def _without_closed(found: Progress) -> Progress:
    """Nothing needs the hashes of closed days any more."""
    hashes = {
        source: {day: digest for day, digest in days.items() if not found.is_closed("bronze", day)}
        for source, days in found.hashes.items()
    }
    return replace(found, hashes=hashes)
