"""The needs of the next months, from the CPU of edges and the bytes of queues."""

import pytest

from tests.pipeline.report.given import START, Given, Rows
from weir.pipeline.report import needs
from weir.pipeline.report.part import Part, span_of

_GIB = 2**30


def _part(rows: Rows, program: str = "smp") -> Part:
    span = span_of(rows, 14)
    assert span is not None
    return Part(rows, "main", program, span)


def _capacity(part: Part) -> needs.Capacity:
    found = needs.capacity(part)
    assert found is not None
    return found


@pytest.mark.parametrize("cores, edges", [(0.01, 2), (0.59, 2), (0.61, 3), (1.2, 3), (1.21, 4), (6.0, 11)])
def test_edges_for(cores: float, edges: int) -> None:
    assert needs.edges_for(cores) == edges


@pytest.mark.parametrize(
    "used, memory",
    [(1, 64 * 2**20), (96 * 2**20, 128 * 2**20), (_GIB, 2 * _GIB), (6 * _GIB, 8 * _GIB), (6.1 * _GIB, 9 * _GIB)],
)
def test_memory_for(used: float, memory: float) -> None:
    assert needs.memory_for(used) == memory


@pytest.mark.parametrize("program, name", [("smp", "queues"), ("ntf", "subscriptions")])
def test_what_is_measured(program: str, name: str) -> None:
    found = _capacity(_part(Given(28, program=program).rows(), program))
    assert found.stored_name == name
    assert found.bytes_each == pytest.approx(15_000, rel=0.03)
    assert found.limit == 8 * _GIB
    assert found.edges == 4
    assert found.edge_memory == 180 * 2**20
    # The busiest hour of a day has 1.6 times the middle one, on 0.18 of a core in each of 4 edges.
    assert found.cores[max(found.cores)] == pytest.approx(0.18 * 4 * 1.6 * 0.78, rel=0.15)


def test_needs_grow_with_the_queues() -> None:
    found = _capacity(_part(Given(28).rows()))
    soon, later = needs.needs(found)
    assert (soon.days, later.days) == (30, 90)
    assert soon.stored is not None and later.stored is not None
    assert soon.stored.middle == pytest.approx(200_000 + 90 * 24 * 57, rel=0.03)
    assert later.stored.middle == pytest.approx(200_000 + 90 * 24 * 117, rel=0.03)
    assert soon.redis is not None and later.redis is not None and soon.used is not None
    assert soon.used.high / 0.75 <= soon.redis < later.redis
    assert later.used is not None and found.bytes_each is not None
    assert later.used is not None and found.bytes_each is not None
    assert later.redis == needs.memory_for(max(later.used.high, later.stored.high * found.bytes_each))
    assert soon.edges is not None and later.edges is not None
    assert 2 <= soon.edges <= later.edges <= 8


def test_when_redis_is_full() -> None:
    middle, earliest = _capacity(_part(Given(28).rows())).full()
    assert earliest is not None and middle is not None
    # 8 GiB are 573,000 queues of 15,000 bytes, at 2,160 more each day.
    assert middle - START.toordinal() == pytest.approx(173, abs=15)
    assert earliest <= middle


def test_no_limit_no_queues_or_no_history() -> None:
    rows = Given(3).rows()
    for row in rows["gold/capacity"]:
        row |= {"redis_max_bytes": None, "queues": 5, "cpu_share": None}
    found = _capacity(_part(rows))
    assert found.limit is None and found.bytes_each is None and found.used_trend is None
    assert found.full() == (None, None)
    assert [(need.redis, need.edges, need.stored) for need in needs.needs(found)] == [(None, None, None)] * 2
    rows["gold/capacity"] = []
    assert needs.capacity(_part(rows)) is None
