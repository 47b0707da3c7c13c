"""The section about what is missing."""

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import completeness


def test_gaps_are_listed(part: Make) -> None:
    shown = part(eventful=True)
    section = completeness.section(shown)
    assert section is not None
    [figure] = section.figures
    assert figure.finding == "99.5 % of the edges' time is known"
    assert figure.summary.startswith("360 records are missing between other records of the same edge.")
    assert figure.table.rows[0][:2] == ("Sun 27 Sep, 03:00 to 09:00", "all edges")
    when, edge, records, why = figure.table.rows[1]
    assert (when, edge, records) == ("Sun 27 Sep, 08:00 to 09:00", "a1b2c3d4", "60")
    assert why == "dropped from the stream before they were read"
    assert len(figure.table.rows) == 7


def test_nothing_is_missing(part: Make) -> None:
    section = completeness.section(part())
    assert section is not None
    assert section.figures[0].finding == "No record is missing"


def test_a_few_missing_records_are_no_gap_in_the_plots() -> None:
    rows = Given(2).rows()
    rows["gold/traffic"][3]["seconds_missing"] = 1.0
    rows["gold/gaps"] = Given(1, gaps=[range(3, 4)]).rows()["gold/gaps"]
    shown = part_of(rows)
    assert shown.gaps == []
    section = completeness.section(shown)
    assert section is not None
    assert section.figures[0].finding == "Nearly all of the edges' time is known"
    assert completeness.observed(shown) == 1 - 1 / (48 * 14_400 + 1)
