"""Finds the days that have new input: a day's input is named by a hash of the names of its files.

Delta never changes a file, so equal names are equal rows. The hashes are stored after the last table has been written.
A run that was killed before that is repeated by the next one, and writes the same rows once more.

A day is closed when its input has been deleted by retention. Records that come later for a closed day are not counted,
because the day could not be computed again without the deleted ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import sha256
from typing import Final

FORM: Final = "1"
"""Another form makes all days that are not closed new. Raised when rows would be computed differently."""
ROLLUPS: Final = "rollups"
SPANS: Final = "spans"
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    ROLLUPS: ("bronze/rollups", "bronze/gaps"),
    SPANS: ("bronze/spans",),
}

Days = Mapping[date, str]


@dataclass(frozen=True)
class Progress:
    """For each source the hash of each day's input; for each layer the first day that is not closed."""

    hashes: Mapping[str, Days] = field(default_factory=dict)
    closed: Mapping[str, date] = field(default_factory=dict)

    def is_closed(self, layer: str, day: date) -> bool:
        return layer in self.closed and day < self.closed[layer]

    def changed(self, source: str, now: Days) -> list[date]:
        """The days that have other input now. A day whose input is gone altogether is none of them."""
        before = self.hashes.get(source, {})
        return sorted(
            day for day, digest in now.items() if before.get(day) != digest and not self.is_closed("bronze", day)
        )

    def close(self, layer: str, before: date) -> "Progress":
        """All days before this one are closed, and stay so."""
        first = max(before, self.closed.get(layer, before))
        return Progress(self.hashes, {**self.closed, layer: first})


@dataclass(frozen=True)
class Inputs:
    """The input at one moment: the version of each table, and a hash of each day."""

    versions: Mapping[str, int]
    hashes: Mapping[str, Days]


def hashes(tables: Iterable[Mapping[date, Iterable[str]]]) -> dict[date, str]:
    """A hash for each day of the names of its files."""
    listed: dict[date, list[str]] = {}
    for number, files in enumerate(tables):
        for day, names in files.items():
            listed.setdefault(day, []).extend(f"{number} {name}" for name in sorted(names))
    return {day: sha256("\n".join([FORM, *names]).encode()).hexdigest() for day, names in listed.items()}


def touched(days: Iterable[date], gaps: Iterable[tuple[date, date]]) -> list[date]:
    """Return the given days, and all days of the gaps (first and last day) that touch one of them."""
    own = set(days)
    found = set(own)
    for first, last in set(gaps):
        covered = {first + timedelta(days=n) for n in range((last - first).days + 1)}
        if covered & own:
            found |= covered
    return sorted(found)
