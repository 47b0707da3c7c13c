"""The span, gaps and numbers of a part."""

from datetime import timedelta

import pytest

from tests.pipeline.report.given import START, Given, Rows, joined
from weir.pipeline.report.gold import hour
from weir.pipeline.report.part import Part, Span, span_of
from weir.pipeline.tables.columns import CAPACITY, TRAFFIC

_START = hour(START)


def _part(rows: Rows, days: int, program: str = "smp") -> Part:
    span = span_of(rows, days)
    assert span is not None
    return Part(rows, "main", program, span)


def test_no_traffic_has_no_span() -> None:
    assert span_of({}, 14) is None
    assert span_of({"gold/traffic": []}, 14) is None


@pytest.mark.parametrize(
    "days, daily, start, step",
    [(2, False, 18, 1), (14, False, 6, 1), (31, False, 0, 1), (14, True, 6, 24), (60, False, 0, 24)],
)
def test_the_span_ends_with_the_newest_hour(days: int, daily: bool, start: int, step: int) -> None:
    span = span_of(Given(20).rows(), days, daily=daily)
    assert span == Span(_START + start * 24, _START + 20 * 24, step)
    assert span.grain == ("day" if step == 24 else "hour")
    assert span.days == 20 - start


def test_an_hour_that_has_only_begun_is_left_out() -> None:
    rows = Given(3).rows()
    newest = max((row for row in rows["gold/traffic"] if row["grain"] == "hour"), key=lambda row: row["at"])
    newest["seconds_observed"] = 900.0
    span = span_of(rows, 2)
    assert span == Span(_START + 23, _START + 71, 1)
    assert span_of(rows, 2, daily=True) == Span(_START, _START + 48, 24)


def test_gaps_are_none_and_not_zero() -> None:
    part = _part(Given(3, gaps=[range(30, 34), range(50, 51)]).rows(), 3)
    assert part.gaps == [(_START + 30, _START + 34), (_START + 50, _START + 51)]
    sent = part.shown(part.numbers(TRAFFIC, "messages_sent", "hour"))
    assert [place for place, value in enumerate(sent) if value is None] == [30, 31, 32, 33, 50]
    assert not any(value == 0 for value in sent)
    errors = part.shown({_START + 3: 7.0}, zero=True)
    assert errors[:5] == [0, 0, 0, 7, 0]
    assert errors[30] is None


def test_an_hour_with_too_many_missing_records_is_a_gap() -> None:
    rows = Given(2).rows()
    hours = [row for row in rows["gold/traffic"] if row["grain"] == "hour"]
    hours[5]["seconds_missing"] = 0.05 * 14_400
    hours[6]["seconds_missing"] = 0.2 * 14_400
    hours[7]["seconds_observed"] = 600.0
    assert _part(rows, 2).gaps == [(_START + 6, _START + 8)]


def test_the_time_before_the_first_record_is_no_gap() -> None:
    old, young = Given(10), Given(4, program="ntf", start=START + timedelta(days=6))
    part = _part(joined(old.rows(), young.rows()), 10, "ntf")
    assert part.gaps == []
    assert part.shown(part.numbers(TRAFFIC, "connections", "hour"))[:144] == [None] * 144


def test_days_are_complete_days() -> None:
    rows = Given(5).rows()
    last = START + timedelta(days=4, hours=6)
    rows["gold/traffic"] = [row for row in rows["gold/traffic"] if row["grain"] == "day" or row["at"] <= last]
    part = _part(rows, 14)
    assert sorted(part.days(CAPACITY, "queues")) == [(START + timedelta(days=n)).toordinal() for n in range(4)]


def test_a_part_has_the_rows_of_its_router_alone() -> None:
    rows = joined(Given(2).rows(), Given(2, program="ntf").rows(), Given(2, router="other").rows())
    part = _part(rows, 2)
    assert {(row["router"], row["program"]) for row in part.rows(TRAFFIC)} == {("main", "smp")}
    within = list(part.within(TRAFFIC))
    assert len(within) == 48
    assert part.summed(TRAFFIC, "messages_sent") == part.numbers(TRAFFIC, "messages_sent", "hour")
