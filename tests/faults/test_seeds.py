"""Whole fault runs: a short one, seeds that were chosen for coverage, schedules that found something once, and edges
that are broken on purpose, which the checker must find."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.__main__ import run
from tests.faults.broken import BROKEN
from tests.faults.network import NO_NAMESPACES, enter
from tests.faults.plan import FAULTS, Fault, Plan, make_plan, read_plan
from tests.faults.seeds import CHOSEN, FOUND
from tests.faults.world import faketime

SECONDS = 10.0
SHORT = (Fault(0.2, "redis kill", 0, 0.5), Fault(0.6, "edge kill", 0, 0.1), Fault(1.0, "redis line in", 1, 1.8))
_WHOLE = pytest.mark.all("a whole run of faults")
_LIMIT = pytest.mark.timeout(400)


async def outcome(plan: Plan, seconds: float = SECONDS, options: Sequence[str] = ()) -> tuple[bool, str]:
    if not enter():
        pytest.skip(NO_NAMESPACES)
    if faketime() is None and any(fault.what.endswith("clock") for fault in plan.faults):
        pytest.skip("steps of clocks need libfaketime (Debian: apt install faketime)")
    held, text = await run(plan, seconds, options)
    print(text)
    return held, text


def test_the_chosen_seeds_cover_every_fault_on_every_redis() -> None:
    plans = [make_plan(seed, SECONDS) for seed in CHOSEN]
    seen = {(plan.redis, fault.what) for plan in plans for fault in plan.faults}
    assert seen == {(kind, what) for what in FAULTS for kind in FAULTS[what].on}
    assert len(CHOSEN) == 10


@_LIMIT
async def test_short() -> None:
    held, text = await outcome(Plan(0, "fsync", SHORT), 3.0)
    assert held, text


@_WHOLE
@_LIMIT
@pytest.mark.parametrize("seed", CHOSEN)
async def test_chosen(seed: int) -> None:
    held, text = await outcome(make_plan(seed, SECONDS))
    assert held, text


@_WHOLE
@_LIMIT
@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
async def test_found_before(file: Path) -> None:
    held, text = await outcome(read_plan(file.read_text()))
    assert held, text


@_WHOLE
@_LIMIT
@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_edge_is_found(name: str) -> None:
    """Nothing else fails."""
    held, text = await outcome(make_plan(0, 0.0), 4.0, [f"--broken={name}"])
    assert not held
    assert BROKEN[name][2] in text, text
