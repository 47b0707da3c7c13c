"""How much of the span the records tell of, and what is missing."""

from __future__ import annotations

from typing import Final

from weir.pipeline.report import units
from weir.pipeline.report.figure import Figure, Section, Table
from weir.pipeline.report.gold import Row, hour, moment
from weir.pipeline.report.part import Part
from weir.pipeline.tables.columns import GAPS, TRAFFIC

_LISTED: Final = 20
_REASONS: Final = {
    "trimmed": "dropped from the stream before they were read",
    "missing": "never seen",
}


def observed(part: Part) -> float | None:
    """The share of the time of all edges, from the first record to the end of the span, that records tell of."""
    seen = missing = 0.0
    for row in part.within(TRAFFIC):
        seen += float(row["seconds_observed"] or 0)
        missing += float(row["seconds_missing"] or 0)
    return seen / (seen + missing) if seen else None


def gaps(part: Part) -> list[Row]:
    """The gaps of the span, the newest first."""
    found = [
        row for row in part.rows(GAPS) if hour(row["end"]) >= part.span.start and hour(row["start"]) < part.span.end
    ]
    return sorted(found, key=lambda row: hour(row["start"]), reverse=True)


def section(part: Part) -> Section | None:
    known = observed(part)
    if known is None:
        return None
    found = gaps(part)
    empty = [(start, end) for start, end in part.gaps]
    records = sum(int(row["last_missing"]) - int(row["first_missing"]) + 1 for row in found)
    if not found and not empty:
        return Section(
            "data",
            "Data",
            (
                Figure(
                    "gaps",
                    "No record is missing",
                    "Every edge's records are numbered without a hole.",
                    Table((), ()),
                    wide=True,
                ),
            ),
        )
    rows = [
        (
            units.between(moment(start), moment(end)),
            "all edges",
            "",
            "not enough records: left out of plots, comparisons and forecasts",
        )
        for start, end in empty
    ]
    rows += [
        (
            units.between(row["start"], row["end"]),
            str(row["edge"])[:8],
            units.exact(int(row["last_missing"]) - int(row["first_missing"]) + 1),
            _REASONS.get(str(row["reason"]), str(row["reason"])),
        )
        for row in found[:_LISTED]
    ]
    finding = f"{units.share(known)} of the edges' time is known"
    if known > 0.9999:
        finding = "Nearly all of the edges' time is known"
    summary = f"{units.plural(records, 'record is', 'records are')} missing between other records of the same edge. "
    summary += "Grey stretches in the plots are times of which too little is known; a gap is never shown as zero."
    return Section(
        "data",
        "Data",
        (Figure("gaps", finding, summary, Table(("When (UTC)", "Edge", "Records", "Why"), tuple(rows)), wide=True),),
    )
