"""The numbers of one router over the report's span.

Times are whole hours since the epoch. A span is shown hour by hour, or day by day when it is long. A time is a gap when
no record tells of it, or when too many records are missing: the counts would look like a drop that never was.
Hours from before the span are there as well, to compare with (`unusual`), and days, to forecast from (`forecast`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from weir.pipeline.report.gold import Gold, Row, hour, of, ordinal
from weir.pipeline.tables.columns import TRAFFIC
from weir.pipeline.tables.declaration import Table

DAY: Final = 24
WEEK: Final = 168
HOURLY_DAYS: Final = 31
"""Longer spans are shown by the day."""

_MISSING: Final = {"hour": 0.1, "day": 0.5}  # shares of missing records from which on a time is a gap
_LEAST_SECONDS: Final = {"hour": 1_800, "day": 43_200}  # less than half of the time of even one edge is a gap as well
_WHOLE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Span:
    """From the hour `start` until before the hour `end`, in steps of 1 or 24 hours."""

    start: int
    end: int
    step: int

    @property
    def days(self) -> float:
        return (self.end - self.start) / DAY

    @property
    def grain(self) -> str:
        return "day" if self.step == DAY else "hour"

    @property
    def times(self) -> range:
        return range(self.start, self.end, self.step)


def span_of(gold: Gold, days: int, *, daily: bool = False) -> Span | None:
    """The newest `days` of all routers, without an hour or a day that is not over. None: there is no traffic."""
    rows = gold.get(TRAFFIC.name, ())
    hours = [row for row in rows if row["grain"] == "hour"]
    if hours:
        end = hour(max(row["at"] for row in hours)) + 1
        newest = [row for row in hours if hour(row["at"]) == end - 1]
        if not any(_whole(row) for row in newest) and len(hours) > len(newest):
            end -= 1
    else:
        found = [row["at"] for row in rows if row["grain"] == "day"]
        if not found:
            return None
        end = hour(max(found)) + DAY
    first = hour(min(row["at"] for row in rows))
    if days > HOURLY_DAYS or daily:
        end -= end % DAY
        return Span(max(end - days * DAY, first - first % DAY), end, DAY)
    return Span(max(end - days * DAY, first), end, 1)


def _whole(row: Row) -> bool:
    return float(row["seconds_observed"] or 0) >= _WHOLE * 3600 * int(row["edges"] or 1)


class Part:
    """One router's part of gold."""

    def __init__(self, gold: Gold, router: str, program: str, span: Span, *, public: bool = False) -> None:
        self.router = router
        self.program = program
        self.span = span
        self.public = public
        self._gold = {
            name: [
                row for row in rows if row.get("router", router) == router and row.get("program", program) == program
            ]
            for name, rows in gold.items()
        }

    def rows(self, table: Table, **values: object) -> list[Row]:
        return list(of(self._gold.get(table.name, ()), **values))

    def within(self, table: Table, **values: object) -> Iterator[Row]:
        """The rows of the span, in the span's grain."""
        for row in self.rows(table, grain=self.span.grain, **values):
            if self.span.start <= hour(row["at"]) < self.span.end:
                yield row

    @cached_property
    def _observed(self) -> Mapping[str, Mapping[int, Row]]:
        found: dict[str, dict[int, Row]] = {"hour": {}, "day": {}}
        for row in self.rows(TRAFFIC):
            if row["grain"] in found and not _is_gap(row):
                found[row["grain"]][hour(row["at"])] = row
        return found

    def is_observed(self, at: int, grain: str) -> bool:
        return at in self._observed[grain]

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """The times of the span of which nothing, or not enough, is known: (first hour, hour after). The time before
        the router's first record is no gap."""
        found: list[tuple[int, int]] = []
        first = min(self._observed[self.span.grain], default=self.span.end)
        for at in self.span.times:
            if at < first or self.is_observed(at, self.span.grain):
                continue
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], at + self.span.step)
            else:
                found.append((at, at + self.span.step))
        return found

    def numbers(self, table: Table, column: str, grain: str, **values: object) -> dict[int, float]:
        """A column by hour, of all times that are no gap and have a number."""
        return {
            hour(row["at"]): float(row[column])
            for row in self.rows(table, grain=grain, **values)
            if row.get(column) is not None and self.is_observed(hour(row["at"]), grain)
        }

    def shown(self, numbers: Mapping[int, float], *, zero: bool = False) -> list[float | None]:
        """Numbers along the span. None is a gap; with `zero`, a time that was observed and has no number is 0."""
        otherwise = 0.0 if zero else None
        return [numbers.get(at, otherwise) if self.is_observed(at, self.span.grain) else None for at in self.span.times]

    def days(self, table: Table, column: str, **values: object) -> dict[int, float]:
        """A column by day (`gold.ordinal`), of all complete days."""
        last = self.span.end - self.span.end % DAY
        return {
            ordinal(at): value for at, value in self.numbers(table, column, "day", **values).items() if at + DAY <= last
        }

    def summed(self, table: Table, column: str) -> dict[int, float]:
        """Rows of the span added up by time."""
        return added((hour(row["at"]), float(row.get(column) or 0)) for row in self.within(table))


def added(numbers: Iterable[tuple[int, float]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for at, value in numbers:
        total[at] = total.get(at, 0.0) + value
    return total


def _is_gap(row: Row) -> bool:
    observed, missing = float(row["seconds_observed"] or 0), float(row["seconds_missing"] or 0)
    return observed < _LEAST_SECONDS[row["grain"]] or missing > _MISSING[row["grain"]] * (observed + missing)
