"""Services: what they get, whether they agree with the router about their queues, and how long SUBS takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.charts import Line
from weir.pipeline.report.figure import Figure, Key, Section, Table
from weir.pipeline.report.gold import Row, hour
from weir.pipeline.report.part import DAY, Part, added
from weir.pipeline.report.sections.common import over_time
from weir.pipeline.tables.columns import SERVICES
from weir.pipeline.tables.declaration import MIN_QUEUES

DRIFTS: Final = ("more", "fewer", "diff")
_KEYS: Final = {
    "more": Key("more stored than expected", "c2", "area"),
    "fewer": Key("fewer stored than expected", "c4", "area"),
    "diff": Key("as many, but others", "c3", "area"),
}


def section(part: Part) -> Section | None:
    rows = list(part.within(SERVICES))
    if not rows:
        return None
    by_service: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_service.setdefault((str(row["label"]), str(row["role"])), []).append(row)
    drifted = sum(_sum(rows, f"drift_{kind}") for kind in DRIFTS)
    of = drifted + _sum(rows, "drift_ok")
    figures = [_table(by_service, drifted, of)]
    if drifted:
        figures.append(_drift(part, rows, drifted))
    return Section("services", "Services", tuple(figures))


def _sum(rows: Sequence[Row], column: str) -> float:
    return sum(float(row[column] or 0) for row in rows)


def _table(by_service: dict[tuple[str, str], list[Row]], drifted: float, of: float) -> Figure:
    lines = []
    for (label, role), rows in sorted(by_service.items(), key=lambda each: -_sum(each[1], "delivered")):
        newest = max(rows, key=lambda row: hour(row["at"]))
        slow = [float(row["alls_p99"]) for row in rows if row["alls_p99"] is not None]
        wrong = sum(_sum(rows, f"drift_{kind}") for kind in DRIFTS)
        lines.append(
            (
                label,
                role,
                units.exact(newest["queues"]),
                units.exact(newest["sessions"]),
                units.exact(_sum(rows, "delivered")),
                units.exact(wrong + _sum(rows, "drift_ok")),
                units.exact(wrong),
                units.duration(max(slow) if slow else None),
            )
        )
    number = units.plural(len(by_service), "service")
    agreed = (
        "all agree with the router about their queues"
        if not drifted
        else (f"{units.share(drifted / of)} of their SUBS expected other queues than are stored")
    )
    return Figure(
        name="services",
        finding=f"{number}: {agreed}" if of else number,
        summary="A SUBS says how many queues the client expects, and their hash. Drift is when the router has others: "
        f"the client then asks for each queue. Hours with fewer than {MIN_QUEUES} queues of a service do not count. "
        "The time to ALLS is that of the slowest hour.",
        table=Table(
            ("Service", "Gets", "Queues", "Sessions", "Delivered", "SUBS", "with drift", "99 % to ALLS"),
            tuple(lines),
        ),
        wide=True,
    )


def _drift(part: Part, rows: Sequence[Row], drifted: float) -> Figure:
    """Drift by the day: it is rare, and by the hour one would not see it."""
    start = part.span.start - part.span.start % DAY
    times = range(start, part.span.end, DAY)
    lines = []
    for kind in DRIFTS:
        days = added((hour(row["at"]) // DAY * DAY, float(row[f"drift_{kind}"] or 0)) for row in rows)
        lines.append(Line(_KEYS[kind], [days.get(at) for at in times]))
    labels: dict[str, float] = {}
    for row in rows:
        wrong = sum(float(row[f"drift_{kind}"] or 0) for kind in DRIFTS)
        labels[str(row["label"])] = labels.get(str(row["label"]), 0.0) + wrong
    worst = max(labels, key=lambda label: labels[label])
    return Figure(
        name="drift",
        finding=f"{'All' if labels[worst] == drifted else 'Most'} of the drift is with {worst}",
        summary=f"{units.count(drifted)} SUBS with drift, {units.count(labels[worst])} of them from {worst}.",
        unit="SUBS with drift a day",
        keys=tuple(line.key for line in lines),
        spec=charts.stacked(times, lines, (), part.span.end, DAY, low=True),
        table=over_time(part, times, DAY, [(line.key.label, line.values, units.exact) for line in lines]),
        wide=True,
    )
