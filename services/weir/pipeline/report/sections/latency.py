"""How long things took: a heat map of each histogram, with its median and its 99th percentile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.charts import Cell, Line
from weir.pipeline.report.figure import Figure, Key, Section
from weir.pipeline.report.gold import hour
from weir.pipeline.report.part import DAY, Part
from weir.pipeline.report.sections.common import over_time, time_name
from weir.pipeline.tables.columns import HISTOGRAM_COLUMNS, LATENCY
from weir.pipeline.tables.declaration import MIN_SAMPLES
from weir.telemetry.rollups.histogram import PER_OCTAVE, merge, quantile

NAMES: Final[Mapping[str, str]] = {
    "send_msg": "SEND to MSG",
    "send_stored": "SEND to stored",
    "msg_ack": "MSG to ACK",
    "subs_soks": "SUBS to SOKS",
    "subs_alls": "SUBS to ALLS",
    "nmsg_push": "NMSG to push",
    "redis_rtt": "Redis round trip",
}
"""Histograms of times, the one that people feel first."""

_COLUMNS: Final = 120
_PER_ROW: Final = PER_OCTAVE // charts.ROWS_PER_OCTAVE
_MEDIAN: Final = Key("half are faster", "c2", "line")
_SLOW: Final = Key("99 % are faster", "c2", "dashed")

Buckets = dict[int, int]


def section(part: Part) -> Section | None:
    step = _step(part)
    found: dict[str, dict[int, list[Buckets]]] = {}
    for row in part.within(LATENCY):
        at = part.span.start + (hour(row["at"]) - part.span.start) // step * step
        if part.is_observed(hour(row["at"]), part.span.grain):
            buckets = {int(index): int(count) for index, count in dict(row["buckets"] or {}).items()}
            found.setdefault(str(row["histogram"]), {}).setdefault(at, []).append(buckets)
    choices = []
    for name, label in NAMES.items():
        times = {at: merge(parts) for at, parts in found.get(name, {}).items()}
        figure = _figure(part, name, label, times, step)
        if figure:
            choices.append((label, figure))
    if not choices:
        return None
    first = choices[0][1]
    chosen = Figure("latency", first.finding, first.summary, first.table, wide=True, choices=tuple(choices))
    return Section("latency", "Latency", (chosen,))


def _step(part: Part) -> int:
    """Hours of a column, so that there are at most 120: 1, 2, 3, 4, 6, 8, 12, or whole days."""
    hours = part.span.end - part.span.start
    for step in (1, 2, 3, 4, 6, 8, 12):
        if step >= part.span.step and hours / step <= _COLUMNS:
            return step
    return DAY * -(-hours // (_COLUMNS * DAY))


def _figure(part: Part, name: str, label: str, times: Mapping[int, Buckets], step: int) -> Figure | None:
    everything = merge(times.values())
    count = sum(everything.values())
    cells = _cells(times)
    if not cells:
        return None
    starts = range(part.span.start, part.span.end, step)
    medians, slow, worst = (_quantiles(times, starts, q) for q in (0.5, 0.99, 1.0))
    middles = [at + step / 2 for at in starts]
    half, most = quantile(everything, 0.5), quantile(everything, 0.99)
    slowest = max(((value, at) for value, at in zip(slow, starts, strict=True) if value is not None), default=None)
    summary = units.sentence([HISTOGRAM_COLUMNS[name].text, f"{units.count(count)} times"], "")
    if slowest:
        summary += (
            f" The slowest 1 % were slowest on {time_name(slowest[1], step)}: {units.duration(slowest[0])} or more."
        )
    lines = [Line(_MEDIAN, medians), Line(_SLOW, slow)]
    counts = [float(sum(times.get(at, {}).values())) if at in times else None for at in starts]
    return Figure(
        name=f"latency-{name.replace('_', '-')}",
        finding=f"{label}: half within {units.duration(half)}, 99 % within {units.duration(most)}",
        summary=summary,
        unit=f"share of the values of {units.plural(step, 'hour') if step < DAY else units.plural(step // DAY, 'day')}",
        keys=(_MEDIAN, _SLOW),
        spec=charts.heat(cells, step, lines, middles, part.gaps, (part.span.start, part.span.end)),
        table=over_time(
            part,
            starts,
            step,
            [
                ("values", counts, units.exact),
                ("half within", medians, units.duration),
                ("99 % within", slow, units.duration),
                ("all within", worst, units.duration),
            ],
        ),
        wide=True,
    )


def _quantiles(times: Mapping[int, Buckets], starts: range, q: float) -> list[float | None]:
    """None below 100 values: a quantile of few values would say something about single ones."""
    return [quantile(times[at], q) if at in times and sum(times[at].values()) >= MIN_SAMPLES else None for at in starts]


def _cells(times: Mapping[int, Buckets]) -> list[Cell]:
    """Half an octave high, so that a cell can be seen; values below 1 µs count as 1 µs."""
    cells = []
    for at, buckets in times.items():
        shares: dict[int, int] = {}
        for index, count in buckets.items():
            row = max(0, index) // _PER_ROW
            shares[row] = shares.get(row, 0) + count
        of = sum(shares.values())
        if of >= MIN_SAMPLES:
            cells += [Cell(at, row, count / of) for row, count in shares.items()]
    return cells
