"""From gold to the report: a chapter for each router, and what stands at its top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from weir.pipeline.report import units, watch
from weir.pipeline.report.figure import Chapter, Figure, Report, Section, Table, Tile
from weir.pipeline.report.gold import Gold, day, routers
from weir.pipeline.report.needs import capacity
from weir.pipeline.report.part import Part, Span, span_of
from weir.pipeline.report.public import BIN, EPSILON, LEAST, Noise, published
from weir.pipeline.report.sections import (
    active,
    completeness,
    errors,
    growth,
    latency,
    notifications,
    path,
    services,
    traffic,
)
from weir.pipeline.report.sections.common import a_day, total
from weir.pipeline.report.sections.completeness import observed
from weir.pipeline.tables.columns import LATENCY, NOTIFICATIONS, TRAFFIC
from weir.telemetry.rollups.histogram import merge, quantile

SECTIONS: Final[tuple[Callable[[Part], Section | None], ...]] = (
    traffic.section,
    errors.section,
    latency.section,
    active.section,
    services.section,
    notifications.section,
    growth.section,
    path.section,
    completeness.section,
)
PUBLIC_SECTIONS: Final = (traffic.section, latency.section, active.section, notifications.section)
IN_FULL: Final = 8
"""More routers than these are in the overview alone."""

_KINDS: Final = {"smp": "SMP router", "ntf": "Notification router"}
_COUNT: Final = {
    "smp": (TRAFFIC, "messages_sent", "messages a day"),
    "ntf": (NOTIFICATIONS, "notifications_received", "notifications a day"),
}
_TIME: Final = {"smp": ("send_msg", "SEND to MSG"), "ntf": ("nmsg_push", "NMSG to push")}
_FAST: Final = 0.99
_COMPLETE: Final = 0.99


class Nothing(Exception):
    """There is nothing to report about. The text says why."""


def report(gold: Gold, days: int, only: Sequence[str] = (), noise: Noise | None = None) -> Report:
    """The report about the newest `days` of the routers `only`, or of all. With `noise` it may be published."""
    span = span_of(gold, days, daily=noise is not None)
    if span is None or not span.times:
        raise Nothing("the tables have no traffic yet, or not of a whole day")
    if noise is not None:
        gold = published(gold, span, noise)
    known = routers(gold)
    wanted = [each for each in known if not only or each[0] in only]
    missing = sorted(set(only) - {router for router, _ in known})
    if missing:
        there = ", ".join(dict.fromkeys(router for router, _ in known))
        raise Nothing(f"no traffic of router {missing[0]!r}; there is {there}")
    parts = [Part(gold, router, program, span, public=noise is not None) for router, program in wanted]
    in_full = parts if len(parts) <= IN_FULL else []
    names = list(dict.fromkeys(part.router for part in parts))
    return Report(
        title=names[0] if len(names) == 1 else units.listed(names) if len(names) <= 3 else f"{len(names)} routers",
        subtitle=period(span),
        chapters=tuple(chapter(part, place, alone=len(names) == 1) for place, part in enumerate(in_full, 1)),
        overview=overview(parts) if len(parts) > 2 and noise is None else None,
        footnotes=_footnotes(parts, in_full),
    )


def period(span: Span) -> str:
    last = day(span.end - 1)
    length = units.plural(round(span.days), "day") if span.days >= 1 else units.plural(span.end - span.start, "hour")
    return f"{units.day(day(span.start))} to {units.day(last)} {last.year}, {length}, times are UTC"


def chapter(part: Part, place: int, *, alone: bool) -> Chapter:
    """`alone`: all routers of the report have one name, which is the report's title."""
    name = f"r{place}"
    found = [section for section in (make(part) for make in (PUBLIC_SECTIONS if part.public else SECTIONS)) if section]
    notes = [] if part.public else watch.notes(part)
    calm = "Nothing: each hour was like the same hour of other days, and no record is missing."
    return Chapter(
        name=name,
        title=_KINDS[part.program] if alone else part.router,
        kind="" if alone else _KINDS[part.program],
        tiles=tuple(tiles(part)),
        notes=tuple(notes),
        sections=tuple(_named(section, name) for section in found),
        quiet="" if notes or part.public else calm,
    )


def _named(section: Section, chapter: str) -> Section:
    """The section with names that are unique in the page."""
    return replace(
        section,
        name=f"{chapter}-{section.name}",
        figures=tuple(_figure_named(figure, chapter) for figure in section.figures),
    )


def _figure_named(figure: Figure, chapter: str) -> Figure:
    return replace(
        figure,
        name=f"{chapter}-figure-{figure.name}",
        choices=tuple((label, _figure_named(chosen, chapter)) for label, chosen in figure.choices),
    )


def tiles(part: Part) -> list[Tile]:
    table, column, label = _COUNT[part.program]
    daily = a_day(part, part.shown(part.numbers(table, column, part.span.grain)))
    found = [Tile(label, units.count(daily), "mean of the days shown")] if daily is not None else []
    histogram, name = _TIME[part.program]
    slow = _quantile(part, histogram)
    if slow is not None:
        found.append(Tile(name, units.duration(slow), "99 % are faster"))
    if part.public:
        return found
    refused = _refused(part)
    if refused is not None:
        found.append(Tile("refused commands", units.share(refused), "of all answers"))
    found += _redis(part)
    known = observed(part)
    if known is not None:
        tone = "bad" if known < _COMPLETE else ""
        found.append(Tile("data", "complete" if known > 0.99995 else units.share(known), "of the edges' time", tone))
    return found


def _quantile(part: Part, histogram: str) -> float | None:
    merged = merge(dict(row["buckets"] or {}) for row in part.within(LATENCY, histogram=histogram))
    return quantile(merged, _FAST) if sum(merged.values()) >= 100 else None


def _refused(part: Part) -> float | None:
    commands = total(part.shown(part.numbers(TRAFFIC, "commands_total", part.span.grain)))
    errors = total(part.shown(part.numbers(TRAFFIC, "errors_total", part.span.grain)))
    return errors / commands if commands else None


def _redis(part: Part) -> list[Tile]:
    found = capacity(part)
    if found is None:
        return []
    used = units.size(found.used[max(found.used)])
    if found.limit is None:
        return [Tile("Redis", used, "no limit is set")]
    _, earliest = found.full()
    if earliest is None:
        share = units.share(found.used[max(found.used)] / found.limit)
        return [Tile("Redis used", share, f"of {units.size(found.limit)}", "good")]
    when = date.fromordinal(earliest)
    soon = earliest - max(found.used) < watch.SOON
    return [Tile("Redis full", f"{when:%b %Y}", "at the earliest", "bad" if soon else "")]


def overview(parts: Sequence[Part]) -> Table:
    rows = []
    for part in parts:
        table, column, _ = _COUNT[part.program]
        found = capacity(part)
        earliest = found.full()[1] if found else None
        known = observed(part)
        rows.append(
            (
                part.router,
                _KINDS[part.program],
                units.count(a_day(part, part.shown(part.numbers(table, column, part.span.grain)))),
                units.duration(_quantile(part, _TIME[part.program][0])),
                units.share(_refused(part)),
                units.size(found.used[max(found.used)]) if found else units.NONE,
                units.day_of_year(date.fromordinal(earliest)) if earliest else "not soon",
                units.share(known),
            )
        )
    return Table(
        ("Router", "Kind", "a day", "99 % within", "refused", "Redis", "full at the earliest", "data"), tuple(rows)
    )


def _footnotes(parts: Sequence[Part], in_full: Sequence[Part]) -> tuple[str, ...]:
    if parts and parts[0].public:
        return (
            f"Every number is rounded up to a multiple of {BIN}, has random noise (Laplace, ε {EPSILON}), and is left "
            f"out below {LEAST}, so that the page says nothing about single people. Sums, means and quantiles are made "
            "of these numbers.",
        )
    notes = [
        "Quantiles are within 4.5 %, and are left out below 100 values. Numbers of queues in use are estimates.",
        "Forecasts are straight lines through the days; the band is made to hold four times out of five.",
    ]
    if len(in_full) < len(parts):
        notes.insert(0, f"More than {IN_FULL} routers: choose some of them with --router NAME for their plots.")
    return tuple(notes)
