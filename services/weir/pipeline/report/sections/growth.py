"""The section about growth, its forecast and its needs: Redis' memory, stored queues, and edges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.charts import Ahead
from weir.pipeline.report.figure import Figure, Key, Section, Table
from weir.pipeline.report.forecast import LEAST_DAYS, Expected, Trend
from weir.pipeline.report.gold import hour_of
from weir.pipeline.report.needs import AHEAD, BUSY, FREE, LEAST_EDGES, Capacity, Need, capacity, needs
from weir.pipeline.report.part import Part
from weir.pipeline.report.units import Format

_HISTORY: Final = 90
_LONG: Final = 60
"""Days of history from which on the plot shows 90 days ahead instead of 30."""
_NEAR: Final = 2.5
"""A limit further above than so many times the forecast would flatten the plot: the text says it."""
_FLAT: Final = 0.002
_SIZES: Final = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_KEYS: Final = (
    Key("measured", "c1", "line"),
    Key("expected", "c1", "dashed"),
    Key("four times out of five", "c1", "band"),
)


def section(part: Part) -> Section | None:
    found = capacity(part)
    if found is None:
        return None
    figures = [_memory(found)]
    if found.stored:
        figures.append(_stored(found))
    figures.append(_needs(found, needs(found)))
    return Section("growth", "Growth", tuple(figures))


def _memory(found: Capacity) -> Figure:
    newest = max(found.used)
    used = found.used[newest]
    of = f" of {units.size(found.limit)}" if found.limit else ""
    scale, unit = next(((size, name) for size, name in _SIZES if max(found.used.values()) >= size), (1, "bytes"))
    return _figure(
        name="memory",
        finding=f"Redis uses {units.size(used)}{of}{_grows(found.used_trend, used, units.size)}",
        summary=_full(found),
        unit=f"{unit} used by Redis",
        history=found.used,
        trend=found.used_trend,
        write=units.size,
        scale=scale,
        limit=found.limit,
        limit_label=f"limit: {units.size(found.limit)}",
    )


def _full(found: Capacity) -> str:
    if found.limit is None:
        return "Redis has no limit of its memory (maxmemory), so this page cannot say when it is full."
    if found.used_trend is None:
        return f"A forecast needs {LEAST_DAYS} days of history."
    middle, earliest = found.full()
    if earliest is None:
        return "At this rate Redis is not full within three years."
    when = f"expected on {units.day_of_year(date.fromordinal(middle))}" if middle else "hardly within three years"
    return f"Redis is full at the earliest on {units.day_of_year(date.fromordinal(earliest))}, {when}."


def _stored(found: Capacity) -> Figure:
    newest = max(found.stored)
    stored = found.stored[newest]
    summary = "All that are stored, in use or not."
    if found.bytes_each:
        summary += f" One takes {units.size(found.bytes_each)} of Redis, with its messages and indexes."
    return _figure(
        name="stored",
        finding=f"{units.count(stored)} {found.stored_name}{_grows(found.stored_trend, stored, units.count)}",
        summary=summary,
        unit=f"{found.stored_name} stored",
        history=found.stored,
        trend=found.stored_trend,
        write=units.exact,
    )


def _grows(trend: Trend | None, now: float, write: Format) -> str:
    if trend is None:
        return ""
    if abs(trend.slope) * 7 < _FLAT * max(1.0, now):
        return ", about constant"
    return f", {write(abs(trend.slope) * 7)} {'more' if trend.slope > 0 else 'fewer'} each week"


def _figure(
    *,
    name: str,
    finding: str,
    summary: str,
    unit: str,
    history: Mapping[int, float],
    trend: Trend | None,
    write: Format,
    scale: float = 1,
    limit: float | None = None,
    limit_label: str = "",
) -> Figure:
    newest = max(history)
    days = range(max(min(history), newest - _HISTORY + 1), newest + 1)
    ahead: list[tuple[int, Expected]] = []
    if trend is not None:
        far = max(AHEAD) if len(history) >= _LONG else min(AHEAD)
        ahead = [(day, trend.at(day)) for day in range(newest, newest + far + 1)]
    top = max([*history.values(), *(expected.high for _, expected in ahead)])
    return Figure(
        name=name,
        finding=finding,
        summary=summary,
        unit=unit,
        keys=_KEYS if ahead else _KEYS[:1],
        spec=charts.forecast(
            [hour_of(day) for day in days],
            [history[day] / scale if day in history else None for day in days],
            [Ahead(hour_of(day), e.low / scale, e.middle / scale, e.high / scale) for day, e in ahead],
            limit / scale if limit is not None and limit <= _NEAR * top else None,
            limit_label,
        ),
        table=Table(
            ("Day (UTC)", "measured", "expected", "band"),
            (
                *((_day(day), write(history.get(day)), "", "") for day in days),
                *((_day(day), "", write(e.middle), f"{write(e.low)} to {write(e.high)}") for day, e in ahead[1:]),
            ),
            start=hour_of(days[0]) * charts.MS,
            step=24 * charts.MS,
        ),
    )


def _day(day: int) -> str:
    return units.day(date.fromordinal(day))


def _needs(found: Capacity, wanted: list[Need]) -> Figure:
    last = wanted[-1]
    parts = []
    if last.edges is not None:
        parts.append(units.plural(last.edges, "edge"))
    if last.redis is not None:
        parts.append(f"{units.size(last.redis)} for Redis")
    now = ("now", units.exact(_newest(found.stored)), units.size(_newest(found.used)), units.size(found.limit))
    rows = [(*now, units.decimal(_newest(found.cores)), units.exact(found.edges))]
    for need in wanted:
        rows.append(
            (
                f"in {need.days} days",
                _band(need.stored, units.exact),
                _band(need.used, units.size),
                units.size(need.redis),
                _band(need.cores, units.decimal),
                units.exact(need.edges),
            )
        )
    memory = f" The largest edge takes {units.size(found.edge_memory)} of memory." if found.edge_memory else ""
    return Figure(
        name="needs",
        finding=f"In 90 days: {units.listed(parts)}" if parts else f"A forecast needs {LEAST_DAYS} days of history",
        summary=f"Redis: {found.stored_name} take as many bytes as today, or the memory grows as it did, whichever is "
        f"more; {units.share(FREE)} of it stays free. Edges: each uses at most {units.share(BUSY)} of a core in the "
        f"busiest hour; one more so that one can fail, and never fewer than {LEAST_EDGES}. Both are counted for the "
        f"upper edge of the forecast.{memory}",
        table=Table(
            ("When", found.stored_name, "Redis used", "Redis to have", "cores, busiest hour", "edges"), tuple(rows)
        ),
        wide=True,
    )


def _newest(values: Mapping[int, float]) -> float | None:
    return values[max(values)] if values else None


def _band(expected: Expected | None, write: Format) -> str:
    return units.NONE if expected is None else f"{write(expected.middle)} (up to {write(expected.high)})"
