"""Logarithmic buckets: where a value counts, and how far a quantile may be from the true one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.telemetry.rollups.histogram import LAST, Histogram, bounds, bucket, coarsen, merge, middle, quantile

values = st.integers(0, 2**44 - 1)
buckets = st.dictionaries(st.integers(-1, LAST), st.integers(1, 10**6), max_size=30)


@pytest.mark.parametrize(
    ("value", "index"),
    [
        (0, -1),
        (0.9, -1),
        (-5, -1),
        (1, 0),
        (2, 8),
        (3, 12),
        (4, 16),
        (1000, 79),
        (10**6, 159),
        (2**44, LAST),
        (1e300, LAST),
    ],
)
def test_the_bucket_of_a_value(value: float, index: int) -> None:
    assert bucket(value) == index


@given(st.integers(1, 2**44 - 1))
def test_a_bucket_has_the_values_between_its_bounds(value: int) -> None:
    index = bucket(value)
    assert 2**index <= value**8 < 2 ** (index + 1)  # the definition, in whole numbers
    low, high = bounds(index)
    assert low <= value * (1 + 1e-12) and value < high * (1 + 1e-12)


def test_the_bucket_of_small_values() -> None:
    assert bounds(-1) == (0.0, 1.0)
    assert middle(-1) == 0.0


@given(st.lists(values))
def test_observing_counts_in_the_same_buckets(observed: list[int]) -> None:
    histogram = Histogram()
    for value in observed:
        histogram.observe(value)
    assert histogram.buckets() == merge({bucket(value): 1} for value in observed)


def test_values_that_no_bucket_has() -> None:
    histogram = Histogram()
    for value in (-1.0, 0.5, 2.0**44, 1e300):
        histogram.observe(value)
    assert histogram.buckets() == {-1: 2, LAST: 2}


@given(st.lists(values, min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_is_within_the_error_of_its_bucket(observed: list[int], q: float) -> None:
    found = quantile(merge({bucket(value): 1} for value in observed), q)
    rank = max(1, -int(-(q * len(observed)) // 1))
    true = sorted(observed)[rank - 1]
    assert found is not None
    assert found == 0 if true == 0 else abs(found - true) <= 0.045 * true


def test_a_quantile_of_nothing() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({3: 0}, 0.5) is None


@given(st.lists(buckets))
def test_merging_adds_every_bucket_up(histograms: list[dict[int, int]]) -> None:
    total = merge(histograms)
    assert sum(total.values()) == sum(sum(each.values()) for each in histograms)
    assert total == merge(reversed(histograms))
    assert all(total[index] == sum(each.get(index, 0) for each in histograms) for index in total)


@given(buckets, st.sampled_from((1, 2, 4, 8, 32, LAST + 1)))
def test_coarse_buckets_keep_all_counts(fine: dict[int, int], width: int) -> None:
    coarse = coarsen(fine, width)
    assert sum(coarse.values()) == sum(fine.values())
    assert coarse.get(-1) == fine.get(-1)
    assert all(-1 <= index <= LAST for index in coarse)
    assert width > 1 or coarse == fine
