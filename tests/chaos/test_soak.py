"""kill -9 of edges, Redis (fsync) and clients at random points: nothing lost, nothing doubled, nothing out of order."""

from pathlib import Path

import pytest

from tests.chaos.backends import Backend, ClusterGroup, Fsync, Resharding, SentinelGroup
from tests.chaos.run import Plan, Run


async def survive(plan: Plan, directory: Path, backend: Backend) -> Run:
    run = Run(plan, directory, backend)
    try:
        await run.go()
    finally:
        print(run.report())
    assert run.journal.problems() == []
    errors = [line for edge in run.edges for line in edge.errors()]
    assert errors == [], "\n".join(edge.log.read_text()[-3000:] for edge in run.edges)
    assert run.killed == plan.kills
    return run


@pytest.mark.timeout(150)
async def test_kills_in_a_short_run(tmp_path: Path) -> None:
    kills = {"edge": 2, "drain": 1, "redis": 2, "send": 1, "receive": 1, "serve": 1}
    await survive(Plan(pairs=20, messages=2000, kills=kills, workers=1, served=8, limit=110), tmp_path, Fsync((0.0,)))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_kills_in_a_long_run(tmp_path: Path, seed: int) -> None:
    """20,000 messages between 50 pairs, 15 of them received by one service. Redis is away for a moment, for longer
    than commands wait for it, or for longer than a lease."""
    kills = {"edge": 14, "drain": 4, "redis": 12, "send": 8, "receive": 6, "serve": 4}
    downtimes = (0.0, 0.0, 0.0, 2.0, 6.5, 12.0)
    plan = Plan(50, 20_000, kills, seed, served=15, limit=1700)
    await survive(plan, tmp_path, Fsync(downtimes))


@pytest.mark.all("a fault schedule of half a minute")
@pytest.mark.timeout(200)
@pytest.mark.parametrize("group", [SentinelGroup, ClusterGroup])
async def test_fail_over(tmp_path: Path, group: type[SentinelGroup | ClusterGroup]) -> None:
    """Masters are killed and their replicas take over, with every confirmed write, while messages flow."""
    kills = {"redis": 2, "edge": 1}
    await survive(Plan(pairs=12, messages=1200, kills=kills, workers=1, served=4, limit=170), tmp_path, group())


@pytest.mark.all("a fault schedule of half a minute")
@pytest.mark.timeout(150)
async def test_resharding(tmp_path: Path) -> None:
    """Slots move from master to master while messages flow; no client hears of it."""
    plan = Plan(pairs=12, messages=1800, kills={"redis": 5}, workers=1, served=4, limit=110)
    run = await survive(plan, tmp_path, Resharding())
    counts = run.journal.counts
    assert counts["U"] == 0
    assert counts["M"] == counts["A"] == plan.messages
    assert counts["S"] == plan.pairs


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("group", [SentinelGroup, ClusterGroup])
async def test_fail_over_in_a_long_run(tmp_path: Path, group: type[SentinelGroup | ClusterGroup]) -> None:
    kills = {"redis": 8, "edge": 4, "receive": 2, "serve": 2, "send": 2}
    await survive(Plan(pairs=30, messages=6000, kills=kills, seed=7, served=10, limit=1700), tmp_path, group())
