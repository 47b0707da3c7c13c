"""How much the router did, and for how many clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.charts import Line
from weir.pipeline.report.figure import Figure, Key, Section
from weir.pipeline.report.part import DAY, WEEK, Part
from weir.pipeline.report.sections.common import a_day, highest, named, over_time, time_name, total
from weir.pipeline.tables.columns import NOTIFICATIONS, TRAFFIC
from weir.pipeline.tables.declaration import Table

Counted = tuple[tuple[Table, str, str, Key], ...]

_COUNTS: Final[dict[str, Counted]] = {
    "smp": (
        (TRAFFIC, "messages_sent", "sent", Key("sent", "c1", "area")),
        (TRAFFIC, "messages_received", "received", Key("received", "c2", "dashed")),
    ),
    "ntf": (
        (NOTIFICATIONS, "notifications_received", "received", Key("notifications received", "c1", "area")),
        (NOTIFICATIONS, "pushes_delivered", "delivered", Key("pushes delivered", "c2", "dashed")),
    ),
}
_NOUN: Final = {"smp": "message", "ntf": "notification"}
_LEVELS: Final = {
    "smp": (("connections", Key("clients connected", "c3", "area")),),
    "ntf": (("connections", Key("clients connected", "c3", "area")),),
}
_GROWN: Final = 0.05


def section(part: Part) -> Section | None:
    figures = [figure for figure in (_counts(part), _levels(part)) if figure]
    return Section("traffic", "Traffic", tuple(figures)) if figures else None


def _counts(part: Part) -> Figure | None:
    columns = _COUNTS[part.program]
    found = [part.shown(part.numbers(table, column, part.span.grain)) for table, column, _, _ in columns]
    first = found[0]
    daily = a_day(part, first)
    if daily is None:
        return None
    noun, step = _NOUN[part.program], part.span.step
    times = part.span.times
    top = highest(times, first)
    lines = [Line(key, values) for (_, _, _, key), values in zip(columns, found, strict=True)]
    summary = f"{units.count(total(first))} {noun}s in all."
    if top:
        when, most = top
        summary += f" The busiest {part.span.grain} was {time_name(when, step)} with {units.count(most)}."
    return Figure(
        name="counts",
        finding=f"{units.count(daily)} {noun}s a day{_compared(part, first)}",
        summary=summary,
        unit=f"{noun}s {named(part)}",
        keys=tuple(line.key for line in lines),
        spec=charts.lines(times, lines, part.gaps, part.span.end),
        table=over_time(part, times, step, [(line.key.label, line.values, units.exact) for line in lines]),
        wide=True,
    )


def _compared(part: Part, values: Sequence[float | None]) -> str:
    """The second half of a span of two weeks or more, against the first: whole weeks only."""
    per_week = WEEK // part.span.step
    if len(values) < 2 * per_week:
        return ""
    last, before = values[-per_week:], values[-2 * per_week : -per_week]
    now, then = a_day(part, last), a_day(part, before)
    if not now or not then:
        return ""
    if abs(now / then - 1) < _GROWN:
        return ", as many as the week before"
    return f", {units.change(now / then)} in the last seven days than in the seven before"


def _levels(part: Part) -> Figure | None:
    levels = _LEVELS[part.program]
    found = [part.shown(part.numbers(TRAFFIC, column, part.span.grain)) for column, _ in levels]
    peaks = part.shown(part.numbers(TRAFFIC, f"{levels[0][0]}_max", part.span.grain))
    top = highest(part.span.times, peaks)
    if top is None or not any(value for values in found for value in values):
        return None
    when, most = top
    lines = [Line(key, values) for (_, key), values in zip(levels, found, strict=True)]
    per = "hour" if part.span.step < DAY else "day"
    return Figure(
        name="clients",
        finding=f"Up to {units.count(most)} clients at a time",
        summary=f"The most were there on {time_name(when, part.span.step)}. The line is the mean of each {per}.",
        unit="clients",
        keys=(),
        spec=charts.lines(part.span.times, lines, part.gaps, part.span.end, low=True),
        table=over_time(
            part,
            part.span.times,
            part.span.step,
            [("mean", found[0], units.exact), ("most", peaks, units.exact)],
        ),
        wide=True,
    )
