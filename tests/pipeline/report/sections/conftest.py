"""One quiet and one eventful month of each router, made once."""

from collections.abc import Callable
from functools import cache

import pytest

from tests.pipeline.report.given import Given, Rows
from weir.pipeline.report.part import Part, span_of

Make = Callable[..., Part]


def part_of(rows: Rows, program: str = "smp", days: int = 14) -> Part:
    span = span_of(rows, days)
    assert span is not None
    return Part(rows, "main", program, span)


@cache
def _rows(program: str, eventful: bool) -> Rows:
    if not eventful:
        return Given(28, program=program).rows()
    gaps, incidents = [range(24 * 20 + 3, 24 * 20 + 9)], [range(24 * 25 + 13, 24 * 25 + 16)]
    return Given(28, program=program, gaps=gaps, incidents=incidents).rows()


@pytest.fixture(scope="session")
def part() -> Make:
    def make(program: str = "smp", *, eventful: bool = False, days: int = 14) -> Part:
        return part_of(_rows(program, eventful), program, days)

    return make
