"""Return the days that are computed again."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.pipeline.tables.days import ROLLUPS, Progress, hashes, touched

DAY = date(2026, 11, 2)


def day(n: int) -> date:
    return DAY + timedelta(days=n)


def test_a_days_hash_is_of_its_files_whatever_their_order() -> None:
    assert hashes([{DAY: ["a", "b"]}, {}]) == hashes([{DAY: ["b", "a"]}, {}])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([{DAY: ["a"]}, {}], id="a file less"),
        pytest.param([{DAY: ["a", "c"]}, {}], id="another file"),
        pytest.param([{DAY: ["a"]}, {DAY: ["b"]}], id="a file of another table"),
    ],
)
def test_other_files_have_another_hash(other: list[dict[date, list[str]]]) -> None:
    assert hashes([{DAY: ["a", "b"]}, {}]) != hashes(other)


def test_only_days_with_other_input_are_new() -> None:
    before = Progress({ROLLUPS: {day(0): "x", day(1): "x", day(2): "x"}})
    assert before.changed(ROLLUPS, {day(0): "x", day(1): "y", day(3): "x"}) == [day(1), day(3)]


def test_everything_is_new_at_first() -> None:
    assert Progress().changed(ROLLUPS, {day(1): "x", day(0): "x"}) == [day(0), day(1)]


def test_a_closed_day_is_never_new_and_stays_closed() -> None:
    closed = Progress().close("bronze", day(2)).close("bronze", day(1))
    assert closed.changed(ROLLUPS, {day(0): "x", day(1): "x", day(2): "x"}) == [day(2)]
    assert not closed.is_closed("silver", day(0))


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        pytest.param([], [2], id="no gap"),
        pytest.param([(1, 1), (3, 4)], [2], id="gaps elsewhere"),
        pytest.param([(1, 2)], [1, 2], id="a gap that ends here"),
        pytest.param([(2, 4)], [2, 3, 4], id="a gap that begins here"),
        pytest.param([(0, 5)], [0, 1, 2, 3, 4, 5], id="a gap around"),
        pytest.param([(0, 1), (1, 2)], [1, 2], id="a gap of a neighbour does not spread"),
    ],
)
def test_days_that_share_a_gap_are_touched(gaps: list[tuple[int, int]], expected: list[int]) -> None:
    assert touched([day(2)], [(day(a), day(b)) for a, b in gaps]) == [day(n) for n in expected]


@given(st.sets(st.integers(0, 20)), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_touched_days_are_those_and_more(own: set[int], gaps: list[tuple[int, int]]) -> None:
    found = touched([day(n) for n in own], [(day(first), day(first + length)) for first, length in gaps])
    assert found == sorted(set(found))
    assert {day(n) for n in own} <= set(found)
