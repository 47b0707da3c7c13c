"""Shared by the sections: tables over time, and how a time is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weir.pipeline.report import units
from weir.pipeline.report.charts import MS
from weir.pipeline.report.figure import Table
from weir.pipeline.report.gold import day, moment
from weir.pipeline.report.part import DAY, Part
from weir.pipeline.report.public import LEAST
from weir.pipeline.report.units import Format

GAP: Final = "no data"
UNPUBLISHED: Final = f"under {LEAST}"


def named(part: Part) -> str:
    """The step of the span, in words: "an hour" or "a day"."""
    return "a day" if part.span.step == DAY else "an hour"


def time_name(at: int, step: int) -> str:
    return units.day(day(at)) if step % DAY == 0 else units.moment(moment(at))


def over_time(
    part: Part, times: Sequence[int], step: int, columns: Sequence[tuple[str, Sequence[float | None], Format]]
) -> Table:
    """A table with a row for each time. A cell without a number says why."""
    rows = []
    none = UNPUBLISHED if part.public else GAP
    for place, at in enumerate(times):
        values = [(numbers[place], write) for _, numbers, write in columns]
        cells = [none if value is None else write(value) for value, write in values]
        rows.append((time_name(at, step), *cells))
    return Table(
        ("Time (UTC)" if step % DAY else "Day (UTC)", *(name for name, _, _ in columns)),
        tuple(rows),
        start=times[0] * MS,
        step=step * MS,
    )


def total(values: Sequence[float | None]) -> float:
    return sum(value for value in values if value is not None)


def highest(times: Sequence[int], values: Sequence[float | None]) -> tuple[int, float] | None:
    found = [(value, at) for at, value in zip(times, values, strict=True) if value is not None]
    if not found:
        return None
    value, at = max(found, key=lambda each: each[0])
    return at, value


def a_day(part: Part, values: Sequence[float | None]) -> float | None:
    """The sum over the span as a number per day, over the times that were observed."""
    seen = [value for value in values if value is not None]
    return sum(seen) * DAY / (len(seen) * part.span.step) if seen else None
