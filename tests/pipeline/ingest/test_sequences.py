"""Gaps and duplicates, as a model of sets would find them."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.pipeline.ingest.ids import ZERO, Id
from weir.pipeline.ingest.sequences import MISSING, TRIMMED, Changes, Entry, Gap, Mark, Sequences

MINUTE = 60_000
T0 = 1_000 * MINUTE
EDGES = ("a", "b", "c")


def entry(edge: str, sequence: int, *, at: int | None = None, n: int = 0) -> Entry:
    """A record of an edge that started at T0. `at` is the time of its entry, in minutes after T0."""
    written = T0 + (sequence if at is None else at) * MINUTE
    return Entry("s", Id(written, n), "main", "smp", edge, sequence, T0 + (sequence - 1) * MINUTE, MINUTE)


def clock(minutes: int) -> Entry:
    """A record of an edge that is always there. It begins long before the others and misses nothing."""
    return entry("clock", minutes + 101, at=minutes)


def numbers(gaps: Iterable[Gap]) -> set[tuple[str, int, int, str]]:
    return {(gap.edge, gap.first_missing, gap.last_missing, gap.reason) for gap in gaps}


class Table:
    """bronze/gaps, under the changes of each batch."""

    def __init__(self) -> None:
        self.state = Sequences()
        self.rows: set[Gap] = set()
        self.duplicates: list[tuple[str, Id]] = []

    def batch(self, entries: Iterable[Entry], marks: Iterable[Mark] = ()) -> Changes:
        changes = self.state.advance(entries, marks)
        assert set(changes.removed) <= self.rows
        assert not set(changes.added) & self.rows
        self.rows = self.rows - set(changes.removed) | set(changes.added)
        self.duplicates += changes.duplicates
        self.state = Sequences.from_json(self.state.to_json())
        return changes


def started() -> Table:
    """Ingest has read the stream for long, and the three edges begin now."""
    table = Table()
    table.batch([clock(minutes) for minutes in range(-100, 1)])
    return table


# Any records of three edges, in any order, some of them again and some never.
arrivals = st.lists(st.tuples(st.sampled_from(EDGES), st.integers(1, 30)), max_size=120)


def in_batches(entries: list[Entry], sizes: list[int]) -> Iterable[list[Entry]]:
    while entries:
        size = sizes.pop() if sizes else len(entries)
        yield entries[:size]
        entries = entries[size:]


@given(arrivals, st.lists(st.integers(1, 10)))
def test_duplicates_and_gaps_are_those_of_the_model(arrived: list[tuple[str, int]], sizes: list[int]) -> None:
    entries = [entry(edge, sequence, at=40, n=n) for n, (edge, sequence) in enumerate(arrived)]
    table = started()
    for each in in_batches(entries, sizes):
        table.batch(each)
    table.batch([clock(100)])

    first = {key: n for n, key in reversed(list(enumerate(arrived)))}
    again = [("s", each.id) for n, each in enumerate(entries) if first[arrived[n]] != n]
    assert sorted(table.duplicates) == sorted(again)
    expected = set()
    for edge in EDGES:
        there = sorted({0} | {sequence for name, sequence in arrived if name == edge})
        expected |= {(edge, a + 1, b - 1, MISSING) for a, b in pairwise(there) if b > a + 1}
    assert numbers(table.rows) == expected


@given(st.permutations([(edge, n) for edge in EDGES for n in range(1, 11)]), st.lists(st.integers(1, 10)))
def test_records_that_all_arrive_leave_no_gap(arrived: list[tuple[str, int]], sizes: list[int]) -> None:
    table = started()
    entries = [entry(edge, sequence, at=n * 20, n=n) for n, (edge, sequence) in enumerate(arrived)]
    for each in in_batches(entries, sizes):
        table.batch(each)
    table.batch([clock(1_000)])
    assert not table.rows
    assert not table.duplicates


@given(arrivals, st.lists(st.integers(1, 10)), st.lists(st.integers(1, 10)))
def test_batches_may_be_cut_anywhere(arrived: list[tuple[str, int]], one: list[int], other: list[int]) -> None:
    entries = [entry(edge, sequence, at=sequence + 30, n=n) for n, (edge, sequence) in enumerate(arrived)]
    entries.sort(key=lambda each: each.id)
    tables = []
    for sizes in (one, other):
        table = started()
        for each in in_batches(entries, sizes):
            table.batch(each)
        table.batch([clock(1_000)])
        tables.append(table)
    assert tables[0].rows == tables[1].rows
    assert sorted(tables[0].duplicates) == sorted(tables[1].duplicates)


def test_a_hole_is_missing_after_ten_intervals_and_not_before() -> None:
    table = started()
    table.batch([entry("a", 1), entry("a", 4)])
    assert not table.batch([clock(13)]).added
    (gap,) = table.batch([clock(14)]).added
    assert gap == Gap("main", "smp", "a", 2, 3, T0 + MINUTE, T0 + 3 * MINUTE, MISSING)


def test_a_late_record_makes_a_gap_smaller_and_the_last_one_takes_it_back() -> None:
    table = started()
    table.batch([entry("a", 1), entry("a", 5), clock(30)])
    assert numbers(table.rows) == {("a", 2, 4, MISSING)}
    table.batch([entry("a", 3, at=31)])
    assert numbers(table.rows) == {("a", 2, 2, MISSING), ("a", 4, 4, MISSING)}
    table.batch([entry("a", 2, at=32), entry("a", 4, at=33)])
    assert not table.rows


def test_what_was_trimmed_unread_is_a_gap_at_once() -> None:
    table = started()
    table.batch([entry("a", 1), entry("b", 1)])
    # Redis removed minutes 2 to 6 before the next batch was read.
    table.batch([entry("a", 7), entry("b", 7)], [Mark("s", Id(T0 + MINUTE, 0), Id(T0 + 7 * MINUTE, 0))])
    assert numbers(table.rows) == {("a", 2, 6, TRIMMED), ("b", 2, 6, TRIMMED)}


def test_an_edge_that_writes_late_after_a_trim_has_a_trimmed_gap() -> None:
    table = started()
    table.batch([entry("a", 1)])
    table.batch([entry("b", 1, at=8)], [Mark("s", Id(T0 + MINUTE, 0), Id(T0 + 7 * MINUTE, 0))])
    table.batch([entry("a", 9)], [Mark("s", Id(T0 + 8 * MINUTE, 0), Id(T0 + 7 * MINUTE, 0))])
    assert numbers(table.rows) == {("a", 2, 8, TRIMMED)}


def test_what_was_read_before_it_was_trimmed_is_no_gap() -> None:
    table = started()
    table.batch([entry("a", 1), entry("a", 2)])
    table.batch([entry("a", 3)], [Mark("s", Id(T0 + 2 * MINUTE, 0), Id(T0 + 3 * MINUTE, 0))])
    assert not table.rows


def test_a_trim_long_ago_does_not_explain_a_hole_of_today() -> None:
    table = started()
    table.batch([entry("a", 1)], [Mark("s", Id(T0 - 9 * MINUTE, 0), Id(T0 - 5 * MINUTE, 0))])
    table.batch([entry("a", 2), entry("a", 4), clock(40)])
    assert numbers(table.rows) == {("a", 3, 3, MISSING)}


def test_history_begins_with_the_first_entry_that_was_ever_read() -> None:
    table = Table()
    begin = Mark("s", ZERO, Id(T0 + 500 * MINUTE, 0))
    table.batch([entry("a", 500), entry("b", 501), entry("a", 501)], [begin])
    table.batch([clock(600)])
    assert not table.rows
    # An edge that starts later and whose first records never come has a gap.
    table.batch([entry("c", 3, at=603), clock(620)])
    assert numbers(table.rows) == {("c", 1, 2, MISSING)}


def test_a_record_from_before_history_is_read_when_it_comes_late() -> None:
    table = Table()
    table.batch([entry("a", 500)], [Mark("s", ZERO, Id(T0 + 500 * MINUTE, 0))])
    assert not table.batch([entry("a", 499, at=505)]).duplicates
    assert table.batch([entry("a", 499, at=506)]).duplicates
    table.batch([clock(600)])
    assert not table.rows


def test_a_stream_that_is_read_again_brings_duplicates_only() -> None:
    entries = [entry(edge, n) for edge in EDGES for n in (1, 2, 5)]
    table = started()
    table.batch(entries)
    changes = table.batch(entries, [Mark("s", ZERO, Id(T0, 0))])
    assert len(changes.duplicates) == len(entries)


def test_edges_are_forgotten_when_none_of_their_records_can_be_read_again() -> None:
    table = started()
    table.batch([entry("a", 1)])
    later = 3 * 24 * 60
    table.batch([clock(later)])
    assert '"a"' in table.state.to_json()
    table.batch([clock(later + 1)], [Mark("s", Id(T0 + later * MINUTE, 0), Id(T0 + 10 * MINUTE, 0))])
    assert '"a"' not in table.state.to_json()


@pytest.mark.parametrize("back", [0, 5])
def test_a_gap_ends_no_earlier_than_it_starts(back: int) -> None:
    """A clock that is set back."""
    table = started()
    late = entry("a", 4, at=4)._replace(start=T0 - back * MINUTE)
    table.batch([entry("a", 1), late, clock(30)])
    (gap,) = table.rows
    assert gap.start <= gap.end
