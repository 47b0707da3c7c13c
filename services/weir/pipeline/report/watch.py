"""Sentences about what needs attention: unusual hours of this week, missing records, and a Redis that will be full."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from weir.pipeline.report import units
from weir.pipeline.report.figure import Note
from weir.pipeline.report.gold import hour, moment
from weir.pipeline.report.needs import capacity
from weir.pipeline.report.part import WEEK, Part, added
from weir.pipeline.report.sections.latency import NAMES
from weir.pipeline.report.sections.services import DRIFTS
from weir.pipeline.report.unusual import MOST, Episode, Finding, Series, find
from weir.pipeline.tables.columns import COMMANDS, LATENCY, NOTIFICATIONS, SERVICES, TRAFFIC

SOON: Final = 90
_NAMED: Final = 3
_COUNTS: Final = {
    "smp": (
        (TRAFFIC, "messages_sent", "messages sent"),
        (TRAFFIC, "messages_received", "messages received"),
        (TRAFFIC, "queues_created", "queues created"),
        (TRAFFIC, "queues_deleted", "queues deleted"),
        (NOTIFICATIONS, "notifications_sent", "notifications delivered"),
    ),
    "ntf": (
        (NOTIFICATIONS, "notifications_received", "notifications received"),
        (NOTIFICATIONS, "pushes_delivered", "pushes delivered"),
        (TRAFFIC, "tokens_created", "tokens created"),
    ),
}
_BAD: Final = {
    "smp": ((NOTIFICATIONS, "notifications_lost", "notifications lost"),),
    "ntf": ((NOTIFICATIONS, "pushes_failed", "pushes failed"),),
}
_OK: Final = "OK"
_CARE: Final = 2.0  # errors, losses and times come before more or less traffic


def notes(part: Part) -> list[Note]:
    """The sentences, the most important first."""
    found = [_sentence(finding) for finding in find(series(part), part.span.end - 1)]
    return [*_full(part), *_missing(part), *found][:MOST]


def series(part: Part) -> Iterator[Series]:
    """The numbers that are watched, hour by hour."""
    for table, column, name in _COUNTS[part.program]:
        yield Series(name, part.numbers(table, column, "hour"))
    for table, column, name in _BAD[part.program]:
        yield Series(name, part.numbers(table, column, "hour"), only_more=True, weight=_CARE)
    yield Series("clients connected", part.numbers(TRAFFIC, "connections", "hour"), kind="level", least_ratio=1.25)
    for outcome in sorted({str(row["outcome"]) for row in part.rows(COMMANDS, grain="hour")} - {_OK}):
        counts = _filled(part, added(_hours(part, outcome)))
        yield Series(f"{outcome} errors", counts, only_more=True, weight=_CARE)
    for name, label in NAMES.items():
        times = part.numbers(LATENCY, "p99", "hour", histogram=name)
        yield Series(f"{label}, slowest 1 %", times, kind="time", only_more=True, weight=_CARE)
    for label, role in sorted({(str(row["label"]), str(row["role"])) for row in part.rows(SERVICES, grain="hour")}):
        rows = part.rows(SERVICES, grain="hour", label=label, role=role)
        yield Series(f"delivered to {label}", {hour(row["at"]): float(row["delivered"] or 0) for row in rows})
        drift = {hour(row["at"]): sum(float(row[f"drift_{kind}"] or 0) for kind in DRIFTS) for row in rows}
        yield Series(f"SUBS of {label} with drift", drift, only_more=True, weight=_CARE)


def _hours(part: Part, outcome: str) -> Iterator[tuple[int, float]]:
    for row in part.rows(COMMANDS, grain="hour", outcome=outcome):
        yield hour(row["at"]), float(row["count"])


def _filled(part: Part, counts: dict[int, float]) -> dict[int, float]:
    """Zero in every hour that was observed: errors have a row only when there were any."""
    observed = part.numbers(TRAFFIC, "commands_total", "hour")
    return {at: counts.get(at, 0.0) for at in observed}


def _sentence(finding: Finding) -> Note:
    parts = [_part(episode) for episode in finding.episodes[:_NAMED]]
    more = len(finding.episodes) - _NAMED
    if more > 0:
        parts.append(f"{units.plural(more, 'other number')} changed as well")
    return Note(units.between(moment(finding.start), moment(finding.end)), units.sentence(parts, ""))


def _part(episode: Episode) -> str:
    write = units.duration if episode.series.kind == "time" else units.count
    rate = " an hour" if episode.series.kind == "count" else ""
    return f"{episode.series.name}: {write(episode.value)}{rate} instead of {write(episode.usual)}"


def _full(part: Part) -> list[Note]:
    found = capacity(part)
    if found is None or found.used_trend is None:
        return []
    middle, earliest = found.full()
    if earliest is None or earliest > found.used_trend.last + SOON:
        return []
    when = units.day_of_year(date.fromordinal(earliest))
    text = f"Redis may be full from {when} on"
    if middle:
        text += f"; expected is {units.day_of_year(date.fromordinal(middle))}"
    return [Note(f"In {units.plural(earliest - found.used_trend.last, 'day')}", f"{text}.")]


def _missing(part: Part) -> list[Note]:
    """One sentence about the gaps of this week."""
    start = part.span.end - WEEK
    found = [(first, end) for first, end in part.gaps if end > start]
    if not found:
        return []
    hours = sum(end - max(start, first) for first, end in found)
    longest = max(found, key=lambda gap: gap[1] - gap[0])
    when = units.between(moment(longest[0]), moment(longest[1]))
    text = "No data, or too little of it"
    if len(found) > 1:
        text += (
            f"; {units.plural(hours, 'hour')} in {units.plural(len(found), 'gap')} this week, this one is the longest"
        )
    return [Note(when, f"{text}.")]
