import pytest

from weir.runtime.rate import Rate


def test_the_window_is_three_samples_long() -> None:
    rate = Rate()
    assert rate.per_second() == 0.0
    rate.sample(100.0, 7)
    assert rate.per_second() == 0.0
    rate.sample(101.0, 17)
    assert rate.per_second() == 10.0
    for now, count in ((102.0, 27), (103.5, 27), (104.5, 37)):
        rate.sample(now, count)
    assert rate.per_second() == pytest.approx(20 / 3.5), "from 101 to 104.5"
    for now in (105.0, 106.0, 107.0):
        rate.sample(now, 37)
    assert rate.per_second() == 0.0
