"""Plans: the same for the same seed, and no second Redis fault before the first is mended."""

import pytest

from tests.faults.plan import EDGES, FAULTS, NODES, kind_of, make_plan, read_plan

SEEDS = range(60)
OF_REDIS = {name for name, kind in FAULTS.items() if kind.victim == "redis"}


def test_the_same_seed_gives_the_same_plan() -> None:
    assert make_plan(7, 10) == make_plan(7, 10)
    assert make_plan(7, 10) != make_plan(10, 10)
    assert str(make_plan(7, 10)).startswith("seed 7: replicated\n")


def test_a_printed_plan_can_be_read() -> None:
    for seed in SEEDS:
        plan = make_plan(seed, 10)
        assert read_plan(f"what it found\n{plan}\n") == plan


@pytest.mark.parametrize("seconds", [4.0, 10.0, 30.0])
def test_faults_fit_the_run(seconds: float) -> None:
    for seed in SEEDS:
        for fault in make_plan(seed, seconds).faults:
            assert 0 < fault.at < seconds
            assert fault.at + fault.seconds <= seconds + 0.01
            assert fault.target < (NODES[kind_of(seed)] if fault.what in OF_REDIS else EDGES)


def test_one_redis_fault_at_a_time() -> None:
    for seed in SEEDS:
        busy = 0.0
        for fault in make_plan(seed, 30.0).faults:
            if fault.what in OF_REDIS:
                assert fault.at > busy
                busy = fault.at + fault.seconds + 1.0


def test_every_kind_of_fault_comes_on_every_kind_of_redis() -> None:
    seen = {(kind_of(seed), fault.what) for seed in SEEDS for fault in make_plan(seed, 10.0).faults}
    assert seen == {(kind, what) for what in FAULTS for kind in FAULTS[what].on}


def test_some_kinds_only() -> None:
    for seed in SEEDS:
        assert {fault.what for fault in make_plan(seed, 10.0, only=["edge stop"]).faults} <= {"edge stop"}


def test_without_a_library_for_clocks_the_rest_is_the_same() -> None:
    for seed in SEEDS:
        plan = make_plan(seed, 10.0)
        rest = tuple(fault for fault in plan.faults if not fault.what.endswith("clock"))
        assert make_plan(seed, 10.0, clocks=False) == plan._replace(faults=rest)
