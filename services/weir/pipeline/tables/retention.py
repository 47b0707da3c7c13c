"""Deletes the days that are kept no longer, and then their files.

A day is first closed, so that late records cannot compute it again from what is left; then its rows are deleted; then
every file of every table goes that no table has named for a while, also what killed runs have left. A reader that began
before the deletion has that while to end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from weir.pipeline.tables import progress
from weir.pipeline.tables.columns import GOLD, SILVER
from weir.pipeline.tables.store import Store

LAYERS: Final = ("bronze", "silver", "gold")


@dataclass(frozen=True)
class Keep:
    """How many days before the present one are kept."""

    bronze: int = 7
    silver: int = 35
    gold: int = 400
    grace: int = 1
    """Hours for which files stay that no table names any more."""

    def first_day(self, layer: str, today: date) -> date:
        days: int = getattr(self, layer)
        return today - timedelta(days=days)


def apply(store: Store, keep: Keep, today: date, bronze: Iterable[str]) -> dict[str, int]:
    """Delete what has expired. Return how many days each layer lost. `bronze` has the names of its tables."""
    names = {
        "bronze": tuple(bronze),
        "silver": tuple(table.name for table in SILVER),
        "gold": tuple(table.name for table in GOLD),
    }
    lost = {layer: _expire(store, layer, names[layer], keep.first_day(layer, today)) for layer in LAYERS}
    for name in (*(name for layer in LAYERS for name in names[layer]), progress.NAME):
        store.vacuum(name, keep.grace)
    return lost


def _expire(store: Store, layer: str, names: Iterable[str], first: date) -> int:
    expired = _expired(store, names, first)
    if expired:
        before = progress.load(store)
        closed = before.close(layer, first)
        if layer == "bronze":
            closed = replace(closed, hashes=_since(closed.hashes, first))
        progress.save(store, closed)
    for name in {name for name, _ in expired}:
        store.delete_before(name, first)
    return len({day for _, day in expired})


def _expired(store: Store, names: Iterable[str], first: date) -> set[tuple[str, date]]:
    return {(name, day) for name in names for day in store.files(name)[1] if day < first}


def _since(hashes: Mapping[str, Mapping[date, str]], first: date) -> dict[str, dict[date, str]]:
    return {source: {day: each for day, each in days.items() if day >= first} for source, days in hashes.items()}
