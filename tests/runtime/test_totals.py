"""The increase between two totals."""

from hypothesis import given
from hypothesis import strategies as st

from weir.runtime.totals import NOTHING, Totals

counts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))
histograms = st.dictionaries(st.sampled_from("xy"), st.dictionaries(st.integers(-1, 3), st.integers(0, 9)))
totals = st.builds(Totals, counts, counts, histograms)


def plus(one: Totals, more: Totals) -> Totals:
    def add(a: dict, b: dict) -> dict:
        return {k: a.get(k, 0) + b.get(k, 0) for k in a | b}

    names = one.histograms.keys() | more.histograms.keys()
    return Totals(
        add(one.commands, more.commands),
        add(one.events, more.events),
        {name: add(one.histograms.get(name, {}), more.histograms.get(name, {})) for name in names},
    )


def non_zero(some: Totals) -> Totals:
    def kept(counts: dict) -> dict:
        return {k: n for k, n in counts.items() if n}

    buckets = {name: kept(each) for name, each in some.histograms.items()}
    return Totals(kept(some.commands), kept(some.events), {name: each for name, each in buckets.items() if each})


@given(totals, totals)
def test_what_was_added_is_the_increase(before: Totals, more: Totals) -> None:
    assert plus(before, more).since(before) == non_zero(more)


def test_nothing() -> None:
    some = Totals({"a": 1}, {"b": 2}, {"x": {3: 4}})
    assert some.since(NOTHING) == some
    assert some.since(some) == NOTHING
