"""Tests of the public report: bins, noise that stays, nothing small, nothing exact, and nothing else."""

import json
import re
from collections import Counter
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.report.given import Given, Rows, joined
from tests.pipeline.report.test_page import LIBRARY, Elements
from weir.pipeline.report import public
from weir.pipeline.report.build import report
from weir.pipeline.report.page import render
from weir.pipeline.report.part import span_of
from weir.pipeline.report.public import BIN, LEAST, Noise, published

SECRET = bytes(range(32))


@given(value=st.integers(0, 10**9), name=st.text(max_size=9))
def test_numbers_are_bins_and_never_small(value: int, name: str) -> None:
    found = Noise(SECRET).published(value, name)
    if value < LEAST:
        assert found is None
    if found is not None:
        assert found >= LEAST and found % BIN == 0


def test_the_noise_is_laplace() -> None:
    noise = Noise(SECRET)
    values = [noise.published(100_000, "column", day) for day in range(4_000)]
    errors = [value - 100_000 for value in values if value is not None]
    assert len(errors) == 4_000
    scale = public.SENSITIVITY / public.EPSILON
    assert abs(fmean(errors)) < 2
    assert fmean(map(abs, errors)) == pytest.approx(scale, rel=0.06)
    assert median(map(abs, errors)) == pytest.approx(scale * 0.693, abs=BIN)


def test_the_noise_stays_and_belongs_to_one_number() -> None:
    of = ("router", "smp", "gold/traffic", "2026-09-07", "messages_sent")
    noise = Noise(SECRET)
    first = noise.published(100_001, *of)
    assert first == Noise(SECRET).published(100_001, *of)
    # Numbers of one bin are published alike, so repeated reports of a growing number say less than its growth.
    assert first == noise.published(100_008, *of)
    others = [
        *(noise.published(100_001, *of[:place], "other", *of[place + 1 :]) for place in range(len(of))),
        *(noise.published(100_001 + BIN * step, *of) or 0 for step in range(1, 6)),
        Noise(bytes(32)).published(100_001, *of),
    ]
    assert Counter(others)[first] <= 2


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="less than 32 bytes"):
        Noise(b"short")


def _exact(rows: Rows) -> set[int]:
    """Every count of the rows that is no bin."""
    found: set[int] = set()
    for row in (row for each in rows.values() for row in each):
        for value in row.values():
            numbers = value.values() if isinstance(value, dict) else [value]
            found |= {int(n) for n in numbers if isinstance(n, int) and not isinstance(n, bool) and n % BIN}
    return found


@pytest.fixture(scope="module")
def rows() -> Rows:
    """A large router, and one whose counts are around the threshold."""
    return joined(
        Given(10, gaps=[range(50, 60)]).rows(),
        Given(10, program="ntf", scale=0.0001).rows(),
        Given(10, router="small", scale=0.0001).rows(),
    )


@pytest.fixture(scope="module")
def page(rows: Rows) -> str:
    return render(report(rows, 7, noise=Noise(SECRET)), LIBRARY, "0.1.0")


def _plotted(page: Elements) -> list[Any]:
    """The counts in the plots' data: columns a, b … of plots over time, and bars."""
    numbers: list[Any] = []
    for attributes, text in page.scripts:
        if "type" not in attributes or "latency" in attributes["id"]:
            continue
        spec = json.loads(text)
        for values in spec["data"]["values"]:
            numbers += [n for key, each in values.items() if key in "abc" for n in each]
            numbers += [values["v"]] if "v" in values else []
    return numbers


def test_nothing_below_the_threshold_is_in_the_file(page: str) -> None:
    elements = Elements(page)
    plotted = [number for number in _plotted(elements) if number is not None]
    assert len(plotted) > 30
    sums = [number for number in plotted if number % BIN == 0 and number >= LEAST]
    assert sums == plotted
    cells = [int(text.replace(",", "")) for text in re.findall(r"<td>([\d,]+)</td>", page)]
    assert len(cells) > 30
    assert all(number % BIN == 0 and number >= LEAST for number in cells)
    assert "<td>under 16</td>" in page


def test_no_exact_number_is_in_the_file(page: str, rows: Rows) -> None:
    exact = {number for number in _exact(rows) if number > 999}
    assert len(exact) > 500
    style = page.index("</style>")
    text = re.sub(r"<script>.*?</script>", "", page[style:], flags=re.DOTALL)
    written = {int(number.replace(",", "")) for number in re.findall(r"(?<![\d.,])\d[\d,]*\d(?![\d.])", text)}
    assert exact & written == set()


def test_only_what_is_listed_is_published(page: str) -> None:
    text = Elements(page).text
    for word in ("desk", "shop", "drift", "Redis", "AUTH", "QUOTA", "edge", "a1b2c3d4", "clients", "GiB", "unusual"):
        assert word not in text.replace("without edges", ""), word
    assert not re.search(r"\d\d:\d\d", text), "no hours"


def test_the_same_report_twice_is_the_same_page(page: str, rows: Rows) -> None:
    assert render(report(rows, 7, noise=Noise(SECRET)), LIBRARY, "0.1.0") == page
    assert render(report(rows, 7, noise=Noise(bytes(32))), LIBRARY, "0.1.0") != page


def test_a_day_that_is_not_over_is_not_published(rows: Rows) -> None:
    newest = max(row["at"] for row in rows["gold/traffic"] if row["grain"] == "day")
    late = {row["at"] for row in rows["gold/traffic"] if row["grain"] == "hour" and row["at"] >= newest}
    begun: Rows = {
        name: [row for row in found if row.get("grain") != "hour" or row["at"] not in late]
        for name, found in rows.items()
    }
    span = span_of(begun, 7, daily=True)
    assert span is not None
    days = {row["at"] for found in published(begun, span, Noise(SECRET)).values() for row in found}
    assert len(days) == 7 and newest not in days
