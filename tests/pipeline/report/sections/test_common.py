"""Functions that the sections share."""

from tests.pipeline.report.given import START
from tests.pipeline.report.sections.conftest import Make
from weir.pipeline.report import units
from weir.pipeline.report.gold import hour
from weir.pipeline.report.sections import common

_AT = hour(START)


def test_tables_over_time(part: Make) -> None:
    table = common.over_time(part(), range(_AT, _AT + 3), 1, [("sent", [5.0, None, 7000.0], units.exact)])
    assert table.columns == ("Time (UTC)", "sent")
    assert table.rows == (("Mon 7 Sep 00:00", "5"), ("Mon 7 Sep 01:00", "no data"), ("Mon 7 Sep 02:00", "7,000"))
    days = common.over_time(part(), range(_AT, _AT + 48, 24), 24, [("sent", [1.0, 2.0], units.exact)])
    assert days.columns[0] == "Day (UTC)"
    assert [row[0] for row in days.rows] == ["Mon 7 Sep", "Tue 8 Sep"]


def test_sums(part: Make) -> None:
    assert common.total([1.0, None, 2.0]) == 3
    assert common.highest(range(3), [1.0, None, 9.0]) == (2, 9.0)
    assert common.highest(range(2), [None, None]) is None
    assert common.a_day(part(), [10.0, None, 20.0]) == 15 * 24
    assert common.a_day(part(days=60), [10.0, 20.0]) == 15
    assert common.a_day(part(), [None]) is None
    assert (common.named(part()), common.named(part(days=60))) == ("an hour", "a day")
