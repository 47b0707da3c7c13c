"""Any record that may be."""

from hypothesis import strategies as st

from weir.telemetry.rollups.fields import COMMANDS, DRIFT, EVENTS, GAUGES, HISTOGRAMS, OUTCOMES, PROGRAMS, ROLES
from weir.telemetry.rollups.histogram import LAST
from weir.telemetry.rollups.record import Rollup, ServiceRollup, is_label

numbers = st.integers(1, 2**53 - 1)
counts = st.integers(1, 10**5)
buckets = st.dictionaries(st.integers(-1, LAST), counts, max_size=8)
labels = st.one_of(st.text(min_size=1, max_size=64).filter(is_label), st.just("other"))
services = st.builds(
    ServiceRollup,
    labels,
    st.sampled_from(ROLES),
    counts,
    counts,
    st.dictionaries(st.sampled_from(DRIFT), counts),
    counts,
    buckets,
)


@st.composite
def rollups(draw: st.DrawFn) -> Rollup:
    program = draw(st.sampled_from(PROGRAMS))
    keys = [f"{command}.{outcome}" for command in COMMANDS[program] for outcome in OUTCOMES]

    def some(names: list[str], values: st.SearchStrategy[int]) -> dict[str, int]:
        return draw(st.dictionaries(st.sampled_from(names), values, max_size=6))

    return Rollup(
        draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True)),
        program,
        draw(st.from_regex(r"[0-9a-f]{12}", fullmatch=True)),
        draw(numbers),
        draw(numbers),
        draw(numbers),
        some(keys, counts),
        some(list(EVENTS[program]), counts),
        some(list(GAUGES[program]), numbers),
        draw(st.dictionaries(st.sampled_from(list(HISTOGRAMS[program])), buckets.filter(bool), max_size=3)),
        tuple(draw(st.lists(services, max_size=3))),
    )
