"""The section about what is in use."""

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import active


def test_what_is_found(part: Make) -> None:
    section = active.section(part())
    assert section is not None
    [figure] = section.figures
    assert section.title == "Queues in use"
    assert figure.finding == "40 % of the queues are in use on a day"
    assert [key.label for key in figure.keys] == ["in a day", "in a week, from Monday", "in a month, from the 1st"]
    assert len(figure.table.rows) == 14
    # The number of a week is the same on all of its days: that of its newest day.
    assert len({row[2] for row in figure.table.rows[:7]}) == 1
    assert len({row[2] for row in figure.table.rows[7:]}) == 1


def test_tokens_of_a_notification_router(part: Make) -> None:
    section = active.section(part("ntf"))
    assert section is not None
    assert section.title == "Tokens in use"


def test_without_estimates_there_is_no_section() -> None:
    rows = Given(3).rows()
    rows["gold/active_queues"] = []
    assert active.section(part_of(rows)) is None


def test_the_number_stored_may_be_unknown() -> None:
    rows = Given(3).rows()
    rows["gold/capacity"] = []
    section = active.section(part_of(rows))
    assert section is not None
    assert section.figures[0].finding.endswith("queues are in use on a day")
