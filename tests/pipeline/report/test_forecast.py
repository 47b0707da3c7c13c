"""The forecast follows a line and ignores single days, and its band holds as often as it says, on made-up days."""

from collections.abc import Callable
from random import Random

import pytest

from weir.pipeline.report.forecast import LEAST_DAYS, MOST_DAYS, fit

_FIRST = 739_000  # some day


def _days(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values, _FIRST))


def test_too_few_days_have_no_forecast() -> None:
    assert fit({}) is None
    assert fit(_days([1.0] * (LEAST_DAYS - 1))) is None
    assert fit(_days([1.0] * LEAST_DAYS)) is not None


def test_a_line_continues() -> None:
    trend = fit(_days([100 + 3 * day for day in range(20)]))
    assert trend is not None
    assert trend.slope == pytest.approx(3)
    assert trend.at(trend.last + 30).middle == pytest.approx(100 + 3 * 49)
    assert trend.at(trend.last + 30).high == pytest.approx(trend.at(trend.last + 30).low)


def test_some_wild_days_and_gaps_change_little() -> None:
    values = _days([1000 + 5 * day for day in range(30)])
    for day in (3, 11, 12, 25):
        values[_FIRST + day] = 9_000
    for day in (5, 6, 17):
        del values[_FIRST + day]
    trend = fit(values)
    assert trend is not None
    assert trend.at(trend.last + 30).middle == pytest.approx(1000 + 5 * 59, rel=0.02)


def test_weekdays_keep_their_level() -> None:
    values = _days([1000.0 + (300 if day % 7 < 2 else 0) for day in range(28)])
    trend = fit(values)
    assert trend is not None
    assert trend.at(_FIRST + 35).middle == pytest.approx(1300, rel=0.02)
    assert trend.at(_FIRST + 38).middle == pytest.approx(1000, rel=0.02)
    assert trend.busiest(_FIRST + 38).middle == pytest.approx(1300, rel=0.02)


def test_nothing_falls_below_zero() -> None:
    trend = fit(_days([100.0 - 10 * day for day in range(10)]))
    assert trend is not None
    expected = trend.at(trend.last + 30)
    assert (expected.low, expected.middle, expected.high) == (0, 0, 0)


def test_old_days_do_not_count() -> None:
    values = _days([5_000.0] * 100 + [100 + 2.0 * day for day in range(MOST_DAYS)])
    trend = fit(values)
    assert trend is not None
    assert trend.days == MOST_DAYS
    assert trend.slope == pytest.approx(2)


def test_when_a_limit_is_reached() -> None:
    rng = Random(1)
    trend = fit(_days([100 + day + rng.gauss(0, 3) for day in range(60)]))
    assert trend is not None
    middle, earliest = trend.reaches(200, 365)
    assert middle is not None and earliest is not None
    assert abs(middle - (_FIRST + 100)) <= 8
    assert earliest < middle
    assert trend.reaches(10_000, 365) == (None, None)
    steady = fit(_days([50.0] * 20))
    assert steady is not None
    assert steady.reaches(200, 365) == (None, None)


Make = Callable[[Random, int], list[float]]


def _line(rng: Random, days: int) -> list[float]:
    drift = rng.uniform(-5, 15)
    return [3_000 + drift * day + rng.gauss(0, 20) for day in range(days)]


def _walk(rng: Random, days: int) -> list[float]:
    drift, level, found = rng.uniform(-5, 15), 3_000.0, []
    for _ in range(days):
        level += drift + rng.gauss(0, 20)
        found.append(level)
    return found


def _noisy_walk(rng: Random, days: int) -> list[float]:
    drift, level, found = rng.uniform(-5, 15), 3_000.0, []
    for _ in range(days):
        level += drift + rng.gauss(0, 8)
        found.append(level + rng.gauss(0, 20))
    return found


def _correlated(rng: Random, days: int) -> list[float]:
    drift, noise, found = rng.uniform(-5, 15), 0.0, []
    for day in range(days):
        noise = 0.7 * noise + rng.gauss(0, 20)
        found.append(3_000 + drift * day + noise)
    return found


def _weekends(rng: Random, days: int) -> list[float]:
    return [value + (60 if day % 7 >= 5 else 0) for day, value in enumerate(_line(rng, days))]


def _outliers(rng: Random, days: int) -> list[float]:
    return [value + (300 if rng.random() < 0.05 else 0) for value in _line(rng, days)]


@pytest.mark.parametrize("days", [14, 28, 60])
@pytest.mark.parametrize("make", [_line, _walk, _noisy_walk, _correlated, _weekends, _outliers])
def test_the_band_holds_four_times_out_of_five(make: Make, days: int) -> None:
    """30 and 90 days ahead, within the counting error of 60 tries. The seeds are fixed, so the result is no luck."""
    tries = 60
    held = dict.fromkeys((30, 90), 0)
    for seed in range(tries):
        values = make(Random(seed), days + 90)
        trend = fit(_days(values[:days]))
        assert trend is not None
        for ahead in held:
            expected = trend.at(trend.last + ahead)
            held[ahead] += expected.low <= values[days - 1 + ahead] <= expected.high
    assert min(held.values()) >= 0.75 * tries, held
