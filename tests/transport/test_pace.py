"""Work and rest."""

import pytest

from weir.transport.pace import rest, rested_at


@pytest.mark.parametrize(
    ("before", "began", "ended", "expected"),
    [
        (0.0, 100.0, 100.5, 101.0),  # long rested: as much rest as work
        (100.0, 100.0, 100.5, 101.0),
        (103.0, 100.0, 100.5, 104.0),  # not yet rested: on top of it
        (100.2, 100.0, 100.0, 100.2),
    ],
)
def test_rested_at(before: float, began: float, ended: float, expected: float) -> None:
    assert rested_at(before, began, ended) == expected


@pytest.mark.parametrize(
    ("rested", "expected"), [(99.0, 0.0), (100.0, 0.0), (100.0009, 0.0), (100.5, 0.5), (160.0, 60.0)]
)
def test_rest(rested: float, expected: float) -> None:
    assert rest(rested, 100.0) == pytest.approx(expected)


def test_half_of_the_time_is_work() -> None:
    now = rested = 0.0
    work = 0.0
    while now < 10.0:
        began, now = now, now + 0.0003
        work += 0.0003
        rested = rested_at(rested, began, now)
        now += rest(rested, now)
    assert work == pytest.approx(5.0, rel=0.001)
