"""Unusual hours are found and named; quiet series have no findings, whatever their rhythm and size."""

from math import cos, pi
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from weir.pipeline.report.unusual import MOST, WEEK, Series, find

_MONDAY = 20_000 * 24 + 4 * 24  # hours since the epoch


def _poisson(rng: Random, mean: float) -> int:
    """A count with its counting error; large ones are rounded normal numbers."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, mean**0.5)))
    count, left = 0, rng.expovariate(1)
    while left < mean:
        count += 1
        left += rng.expovariate(1)
    return count


def _rhythm(hour: int, depth: float = 0.6, weekend: float = 0.7) -> float:
    return (1 - depth * cos(((hour % 24) - 4) * pi / 12)) * (weekend if hour // 24 % 7 in (2, 3) else 1)


def _series(weeks: int, mean: float, *, noise: float = 0.05, growth: float = 0.0, seed: int = 1) -> dict[int, float]:
    rng = Random(seed)
    return {
        _MONDAY + hour: float(
            _poisson(rng, mean * _rhythm(_MONDAY + hour) * (1 + growth) ** (hour / WEEK) * rng.lognormvariate(0, noise))
        )
        for hour in range(weeks * WEEK)
    }


def _last(values: dict[int, float]) -> int:
    return max(values)


def test_an_incident_is_one_finding() -> None:
    values = _series(5, 1_000)
    errors = dict.fromkeys(values, 3.0)
    start = _last(values) - 50
    for hour in range(start, start + 3):
        errors[hour] = 800
        values[hour] *= 0.2
    found = find([Series("sent", values), Series("errors", errors, only_more=True, weight=2)], _last(values))
    assert [(finding.start, finding.end) for finding in found] == [(start, start + 3)]
    worst, other = found[0].episodes
    assert (worst.series.name, worst.value, worst.usual) == ("errors", 800, 3)
    assert other.series.name == "sent"
    assert 0.15 < other.ratio < 0.25


def test_two_weeks_are_enough() -> None:
    values = _series(2, 1_000)
    start = _last(values) - 30
    for hour in range(start, start + 2):
        values[hour] *= 4
    found = find([Series("sent", values)], _last(values))
    assert [(finding.start, finding.end) for finding in found] == [(start, start + 2)]


def test_an_incident_of_last_week_is_not_usual_and_not_this_weeks() -> None:
    values = _series(2, 1_000)
    for hour in range(_MONDAY + 60, _MONDAY + 64):
        values[hour] *= 0.1
    assert find([Series("sent", values)], _last(values)) == []


def test_good_news_of_errors_and_times_is_no_finding() -> None:
    times = {_MONDAY + hour: 50_000.0 + hour % 5 * 1000 for hour in range(5 * WEEK)}
    for hour in range(max(times) - 9, max(times) - 5):
        times[hour] = 900
    assert find([Series("p99", times, kind="time", only_more=True)], max(times)) == []
    assert len(find([Series("level", times, kind="level")], max(times))) == 1


def test_a_level_that_never_changes_and_then_does() -> None:
    values = {_MONDAY + hour: 400.0 for hour in range(4 * WEEK)}
    values[max(values) - 20] = values[max(values) - 19] = 250
    found = find([Series("clients", values, kind="level", least_ratio=1.25)], max(values))
    assert [(finding.start, finding.end) for finding in found] == [(max(values) - 20, max(values) - 18)]


def test_one_hour_alone_has_to_be_far_outside() -> None:
    values = _series(6, 10_000, noise=0.1)
    values[_last(values) - 40] *= 1.9
    assert find([Series("sent", values)], _last(values)) == []
    values[_last(values) - 40] *= 3
    assert len(find([Series("sent", values)], _last(values))) == 1


def test_too_little_history_has_no_findings() -> None:
    values = {_MONDAY + hour: 100.0 for hour in range(40)}
    values[_MONDAY + 35] = 90_000
    assert find([Series("sent", values)], max(values)) == []
    assert find([Series("sent", {})], _MONDAY) == []


def test_findings_are_few_and_the_worst_comes_first() -> None:
    values = _series(6, 1_000)
    for place in range(12):
        hour = _last(values) - 150 + 12 * place
        values[hour] *= 8 + place
        values[hour + 1] *= 8 + place
    found = find([Series("sent", values)], _last(values))
    assert len(found) == MOST
    assert [finding.score for finding in found] == sorted((finding.score for finding in found), reverse=True)
    assert found[0].start == _last(values) - 150 + 12 * 11


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    weeks=st.integers(1, 7),
    mean=st.floats(0.01, 100_000),
    noise=st.floats(0, 0.4),
    growth=st.floats(-0.1, 0.1),
    missing=st.floats(0, 0.3),
)
def test_quiet_series_have_no_findings(
    seed: int, weeks: int, mean: float, noise: float, growth: float, missing: float
) -> None:
    values = _series(weeks, mean, noise=noise, growth=growth, seed=seed)
    rng = Random(seed)
    values = {hour: value for hour, value in values.items() if rng.random() >= missing}
    last = _MONDAY + weeks * WEEK - 1
    assert find([Series("sent", values)], last) == []
    assert find([Series("errors", values, only_more=True)], last) == []


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), weeks=st.integers(2, 7), noise=st.floats(0, 0.3))
def test_quiet_times_have_no_findings(seed: int, weeks: int, noise: float) -> None:
    rng = Random(seed)
    values = {_MONDAY + hour: 5_000 * rng.lognormvariate(0, noise) for hour in range(weeks * WEEK)}
    assert find([Series("p99", values, kind="time", only_more=True)], max(values)) == []
    assert find([Series("clients", values, kind="level", least_ratio=1.25)], max(values)) == []
