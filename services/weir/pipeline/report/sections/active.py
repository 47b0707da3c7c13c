"""How many queues, or tokens, are really in use: by the day, the week and the month."""

from __future__ import annotations

from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.charts import Line
from weir.pipeline.report.figure import Figure, Key, Section
from weir.pipeline.report.gold import day, hour, hour_of
from weir.pipeline.report.part import DAY, Part
from weir.pipeline.report.sections.common import over_time
from weir.pipeline.tables.columns import ACTIVE_QUEUES, CAPACITY
from weir.pipeline.tables.declaration import PERIODS

WHAT: Final = {"smp": "queues", "ntf": "tokens"}
_KEYS: Final = {
    "day": Key("in a day", "c1", "line"),
    "week": Key("in a week, from Monday", "c3", "dashed"),
    "month": Key("in a month, from the 1st", "c4", "dotted"),
}
_LEAST: Final = 2


def section(part: Part) -> Section | None:
    what = WHAT[part.program]
    times = range(part.span.start - part.span.start % DAY, part.span.end, DAY)
    found = {period: _active(part, what, period) for period in PERIODS}
    days = [at for at in times if at in found["day"] and at + DAY <= part.span.end]
    if len(days) < _LEAST:
        return None
    lines = [
        Line(_KEYS[period], [found[period].get(at) for at in times], stepped=period != "day")
        for period in PERIODS
        if found[period]
    ]
    newest = days[-1]
    active = found["day"][newest]
    stored = part.numbers(CAPACITY, what, "day").get(newest)
    finding = f"{units.count(active)} {what} are in use on a day"
    summary = "Estimates, with an error of about 1 %. A period that is not over counts up to its newest day."
    if stored and stored >= active:
        finding = f"{units.share(active / stored)} of the {what} are in use on a day"
        summary = f"{units.count(active)} of {units.count(stored)} {what} on {units.day(day(newest))}. {summary}"
    figure = Figure(
        name="active",
        finding=finding,
        summary=summary,
        unit=f"{what} in use",
        keys=tuple(line.key for line in lines),
        spec=charts.lines(times, lines, (), part.span.end),
        table=over_time(part, times, DAY, [(line.key.label, line.values, units.exact) for line in lines]),
        wide=True,
    )
    return Section("active", f"{what.capitalize()} in use", (figure,))


def _active(part: Part, what: str, period: str) -> dict[int, float]:
    """The number of a period, on each of its days. A day's row counts from the period's start through the day."""
    days: dict[int, int] = {}
    most: dict[int, float] = {}
    for row in part.rows(ACTIVE_QUEUES, what=what, period=period):
        first = hour(row["at"])
        days[hour_of(row["day"].toordinal())] = first
        most[first] = max(most.get(first, 0.0), float(row["active"]))
    return {at: most[first] for at, first in days.items()}
