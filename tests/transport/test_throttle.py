"""Throttling: as much pause as work."""

import pytest

from weir.transport.throttle import free_at, pause


@pytest.mark.parametrize(
    ("before", "began", "ended", "expected"),
    [
        (0.0, 100.0, 100.5, 101.0),  # free for long: as much pause as work
        (100.0, 100.0, 100.5, 101.0),
        (103.0, 100.0, 100.5, 104.0),  # the user is not free yet: the pause is added to the rest of the last one
        (100.2, 100.0, 100.0, 100.2),
    ],
)
def test_free_at(before: float, began: float, ended: float, expected: float) -> None:
    assert free_at(before, began, ended) == expected


@pytest.mark.parametrize(
    ("free", "expected"), [(99.0, 0.0), (100.0, 0.0), (100.0009, 0.0), (100.5, 0.5), (160.0, 60.0)]
)
def test_pause(free: float, expected: float) -> None:
    assert pause(free, 100.0) == pytest.approx(expected)


def test_half_of_the_time_is_work() -> None:
    now = free = 0.0
    work = 0.0
    while now < 10.0:
        began, now = now, now + 0.0003
        work += 0.0003
        free = free_at(free, began, now)
        now += pause(free, now)
    assert work == pytest.approx(5.0, rel=0.001)
