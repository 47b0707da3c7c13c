"""Ranges of a stream: whatever is in it, batches together read each entry once, and none is much too large."""

from hypothesis import given
from hypothesis import strategies as st

from weir.pipeline.ingest.ids import ZERO, Extent, Id, Range, next_end, split, to_read

ids = st.builds(Id, st.integers(0, 10_000), st.integers(0, 20) | st.just(2**64 - 1))
streams = st.sets(ids.filter(lambda each: each > ZERO), min_size=1, max_size=200).map(sorted)


def extent(stream: list[Id]) -> Extent:
    return Extent(stream[0], stream[-1], len(stream))


def read(stream: list[Id], part: Range) -> list[Id]:
    return [each for each in stream if part.start < each <= part.end]


@given(ids)
def test_the_text_of_an_id_is_read_back(one: Id) -> None:
    assert Id.parse(str(one)) == one
    assert one < one.next()


@given(st.lists(ids, min_size=2, max_size=2, unique=True).map(sorted))
def test_no_id_is_between_an_id_and_the_next(pair: list[Id]) -> None:
    assert pair[0].next() <= pair[1]


@given(streams, st.integers(1, 300))
def test_batches_read_each_entry_once_and_come_to_an_end(stream: list[Id], limit: int) -> None:
    offset, found = ZERO, []
    for _ in range(12_000):
        end = next_end(offset, extent(stream), limit)
        part = to_read(offset, end)
        if part is None:
            break
        found += read(stream, part)
        offset = end
    assert found == stream
    assert offset == stream[-1]


@given(streams, ids, st.integers(1, 8))
def test_parts_of_a_range_read_what_the_range_has(stream: list[Id], start: Id, parts: int) -> None:
    part = to_read(start, stream[-1])
    if part is None:
        return
    found = [each for one in split(part, stream[0], parts) for each in read(stream, one)]
    assert found == read(stream, part)


def test_an_even_stream_is_read_in_batches_of_the_limit() -> None:
    stream = [Id(1_000 + n, 0) for n in range(10_000)]
    offset, sizes = ZERO, []
    while (part := to_read(offset, next_end(offset, extent(stream), 1_000))) is not None:
        sizes.append(len(read(stream, part)))
        offset = part.end
    assert max(sizes) <= 1_001
    assert len(sizes) <= 11


def test_an_empty_stream_and_one_that_is_read_have_nothing_to_read() -> None:
    assert next_end(Id(5, 0), None, 10) == Id(5, 0)
    assert next_end(Id(5, 0), Extent(Id(1, 0), Id(5, 0), 3), 10) == Id(5, 0)
    assert to_read(Id(5, 0), Id(5, 0)) is None


def test_a_stream_that_was_made_anew_is_read_from_its_beginning() -> None:
    end = next_end(Id(900, 3), Extent(Id(10, 0), Id(20, 0), 2), 100)
    assert end == Id(20, 0)
    assert to_read(Id(900, 3), end) == Range(ZERO, Id(20, 0))
