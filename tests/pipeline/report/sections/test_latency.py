"""The section about times: columns, cells and quantiles."""

from typing import Any

import pytest

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import latency
from weir.telemetry.rollups.histogram import bucket


def test_what_is_found(part: Make) -> None:
    section = latency.section(part(eventful=True))
    assert section is not None
    [figure] = section.figures
    assert [label for label, _ in figure.choices] == ["SEND to MSG", "SEND to stored", "Redis round trip"]
    first = figure.choices[0][1]
    assert first.finding.startswith("SEND to MSG: half within ")
    assert "slowest on Fri 2 Oct 12:00" in first.summary or "slowest on Fri 2 Oct 15:00" in first.summary
    assert first.unit == "share of the values of 3 hours"


@pytest.mark.parametrize(
    "days, unit, rows", [(2, "1 hour", 48), (14, "3 hours", 112), (28, "6 hours", 112), (60, "1 day", 28)]
)
def test_there_are_at_most_120_columns(part: Make, days: int, unit: str, rows: int) -> None:
    section = latency.section(part(days=days))
    assert section is not None
    first = section.figures[0].choices[0][1]
    assert first.unit == f"share of the values of {unit}"
    assert len(first.table.rows) == rows


def test_cells_are_shares_of_their_column(part: Make) -> None:
    section = latency.section(part())
    assert section is not None
    spec: Any = section.figures[0].choices[0][1].spec
    [cells] = [layer["data"]["values"][0] for layer in spec["layer"] if "color" in layer["encoding"]]
    shares: dict[int, float] = {}
    for at, share in zip(cells["t"], cells["n"], strict=True):
        shares[at] = shares.get(at, 0.0) + share
    assert len(shares) == 112
    assert all(total == pytest.approx(1, abs=0.01) for total in shares.values())


def test_few_values_have_no_cells_and_no_quantiles() -> None:
    rows = Given(2).rows()
    for row in rows["gold/latency"]:
        row["buckets"] = {bucket(5_000): 1 if row["histogram"] == "send_msg" else 300}
    section = latency.section(part_of(rows, days=2))
    assert section is not None
    assert [label for label, _ in section.figures[0].choices] == ["SEND to stored", "Redis round trip"]
    for row in rows["gold/latency"]:
        row["buckets"] = {bucket(5_000): 1}
    assert latency.section(part_of(rows, days=2)) is None


def test_a_gap_has_no_column(part: Make) -> None:
    section = latency.section(part(eventful=True))
    assert section is not None
    table = section.figures[0].choices[0][1].table
    assert ("Sun 27 Sep 03:00", *["no data"] * 4) in table.rows
