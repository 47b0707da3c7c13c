"""Numbers as people read them."""

from datetime import UTC, date, datetime

import pytest

from weir.pipeline.report import units


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"),
        (0, "0"),
        (7, "7"),
        (0.4, "0.4"),
        (12.34, "12.3"),
        (9_999, "9,999"),
        (1_234.0, "1,234"),
        (10_000, "10k"),
        (12_345, "12.3k"),
        (999_999, "1M"),
        (4_560_000, "4.56M"),
        (2.5e9, "2.5G"),
    ],
)
def test_count(value: float | None, text: str) -> None:
    assert units.count(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"),
        (512, "512 bytes"),
        (2**20, "1 MiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (200 * 2**30, "200 GiB"),
        (3 * 2**40, "3 TiB"),
    ],
)
def test_size(value: float | None, text: str) -> None:
    assert units.size(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"),
        (850, "850 µs"),
        (1_200, "1.2 ms"),
        (12_300, "12.3 ms"),
        (999_900, "1 s"),
        (90e6, "1.5 min"),
        (2 * 3600e6, "2 h"),
        (3 * 86400e6, "3 days"),
    ],
)
def test_duration(value: float | None, text: str) -> None:
    assert units.duration(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"),
        (0, "0 %"),
        (0.5, "50 %"),
        (0.12345, "12.3 %"),
        (1, "100 %"),
        (0.0042, "0.4 %"),
        (0.000_04, "0.004 %"),
        (0.000_000_3, "0.00003 %"),
    ],
)
def test_share(value: float | None, text: str) -> None:
    assert units.share(value) == text


@pytest.mark.parametrize(
    "ratio, text",
    [
        (1.0, "about the same"),
        (1.004, "about the same"),
        (1.31, "31 % more"),
        (0.4, "60 % less"),
        (12, "12 times as much"),
    ],
)
def test_change(ratio: float, text: str) -> None:
    assert units.change(ratio) == text


def test_plural_and_lists() -> None:
    assert units.plural(1, "hour") == "1 hour"
    assert units.plural(12_000, "hour") == "12k hours"
    assert units.plural(2, "record is", "records are") == "2 records are"
    assert [units.listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert units.sentence(["one", "two"], "none") == "One; two."
    assert units.sentence([], "Nothing.") == "Nothing."


def test_decimal_and_exact() -> None:
    assert units.decimal(None) == units.exact(None) == "–"
    assert units.decimal(1.234) == "1.23"
    assert units.exact(1_234_567.4) == "1,234,567"


def test_times() -> None:
    start = datetime(2026, 10, 8, 13, tzinfo=UTC)
    assert units.day(date(2026, 10, 8)) == "Thu 8 Oct"
    assert units.day_of_year(date(2027, 2, 4)) == "4 February 2027"
    assert units.between(start, start.replace(hour=16)) == "Thu 8 Oct, 13:00 to 16:00"
    assert units.between(start, start.replace(day=9, hour=2)) == "Thu 8 Oct 13:00 to Fri 9 Oct 02:00"
