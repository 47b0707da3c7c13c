"""Where the time between SUBS and ALLS goes, in traced SUBS."""

from __future__ import annotations

from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.figure import Figure, Section, Table
from weir.pipeline.report.part import Part
from weir.pipeline.tables.columns import CRITICAL_PATH

_STEPS: Final = {
    "takeover": "takeover: this session becomes the owner",
    "fold.page": "pages of the fold, from Redis",
    "client": "waiting for the client to read",
    "other": "the rest",
}


def section(part: Part) -> Section | None:
    """Traces have no router's name, so all SMP routers show the same."""
    sums: dict[str, float] = {}
    longest: dict[str, float] = {}
    traces = 0.0
    counted: dict[object, float] = {}
    for row in part.within(CRITICAL_PATH):
        step = str(row["step"])
        sums[step] = sums.get(step, 0.0) + float(row["total_us"] or 0)
        longest[step] = max(longest.get(step, 0.0), float(row["longest_us"] or 0))
        moment = (row["service"], row["at"])
        counted[moment] = max(counted.get(moment, 0.0), float(row["traces"] or 0))
    traces = sum(counted.values())
    whole = sum(sums.values())
    if part.program != "smp" or not whole:
        return None
    ordered = sorted(sums, key=lambda step: sums[step], reverse=True)
    rows = [charts.Row(_STEPS.get(step, step), sums[step], units.share(sums[step] / whole)) for step in ordered]
    most = ordered[0]
    figure = Figure(
        name="path",
        finding=f"{units.share(sums[most] / whole)} of the time from SUBS to ALLS: {_STEPS.get(most, most)}",
        summary=f"{units.plural(traces, 'traced SUBS', 'traced SUBS')}. A moment counts for one step.",
        spec=charts.ranked(rows, "c3"),
        table=Table(
            ("Step", "Share", "Mean", "Longest"),
            tuple(
                (
                    _STEPS.get(step, step),
                    units.share(sums[step] / whole),
                    units.duration(sums[step] / traces if traces else None),
                    units.duration(longest[step]),
                )
                for step in ordered
            ),
        ),
        wide=True,
    )
    return Section("path", "From SUBS to ALLS", (figure,))
