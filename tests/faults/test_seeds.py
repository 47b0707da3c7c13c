"""Whole fault runs: seeds that were chosen for coverage, schedules that found something once, and edges that are broken
on purpose, which the checker must find."""

from collections.abc import Sequence

import pytest

from tests.faults.__main__ import run
from tests.faults.broken import BROKEN
from tests.faults.network import NO_NAMESPACES, enter
from tests.faults.plan import FAULTS, KINDS, kind_of, make_plan
from tests.faults.seeds import CHOSEN, FOUND

SECONDS = 10.0
_WHOLE = pytest.mark.all("a whole run of faults")
_LIMIT = pytest.mark.timeout(400)


async def outcome(seed: int, seconds: float, options: Sequence[str] = ()) -> tuple[bool, str]:
    if not enter():
        pytest.skip(NO_NAMESPACES)
    held, text = await run(seed, seconds, options)
    print(text)
    return held, text


def test_the_chosen_seeds_cover_every_fault_on_every_redis() -> None:
    seen = {(kind_of(seed), fault.what) for seed in CHOSEN for fault in make_plan(seed, SECONDS)}
    assert seen == {(kind, what) for kind in KINDS for what in FAULTS}
    assert len(CHOSEN) == 10


@_WHOLE
@_LIMIT
@pytest.mark.parametrize("seed", CHOSEN)
async def test_chosen(seed: int) -> None:
    held, text = await outcome(seed, SECONDS)
    assert held, text


@_WHOLE
@_LIMIT
@pytest.mark.parametrize(("seed", "seconds", "only", "_what"), FOUND)
async def test_found_before(seed: int, seconds: float, only: tuple[str, ...], _what: str) -> None:
    held, text = await outcome(seed, seconds, [f"--only={kind}" for kind in only])
    assert held, text


@_WHOLE
@_LIMIT
@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_edge_is_found(name: str) -> None:
    """With steps of an edge's clock only, which change nothing."""
    held, text = await outcome(0, 4.0, ["--only=edge clock", f"--broken={name}"])
    assert not held
    assert BROKEN[name][2] in text, text
