"""The section about errors."""

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import errors


def test_what_is_found(part: Make) -> None:
    section = errors.section(part(eventful=True))
    assert section is not None
    plot, commands = section.figures
    assert plot.finding.endswith(" of commands were refused, most with AUTH")
    assert [key.label for key in plot.keys] == ["AUTH", "QUOTA", "INTERNAL"]
    assert "Most errors were on Fri 2 Oct" in plot.summary
    table = {row[0]: row[1:] for row in commands.table.rows}
    assert table["SUB"][-2:] == ("100 %", "AUTH")
    assert table["ACK"][-3:] == ("0", "0 %", "–")


def test_many_outcomes_are_added_up() -> None:
    rows = Given(2).rows()
    extra = [{**row, "outcome": name, "count": 3} for row in rows["gold/commands"][:1] for name in "ABCDEF"]
    rows["gold/commands"] += extra
    section = errors.section(part_of(rows))
    assert section is not None
    labels = [key.label for key in section.figures[0].keys]
    assert len(labels) == 5 and labels[-1] == "others"


def test_no_errors_are_said() -> None:
    rows = Given(2).rows()
    rows["gold/commands"] = [row for row in rows["gold/commands"] if row["outcome"] == "OK"]
    section = errors.section(part_of(rows))
    assert section is not None
    assert section.figures[0].finding == "No command was refused"
    assert section.figures[0].spec is None


def test_no_commands_have_no_section() -> None:
    rows = Given(2).rows()
    rows["gold/commands"] = []
    assert errors.section(part_of(rows)) is None
