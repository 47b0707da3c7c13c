"""The simulated weeks: records that an edge could have published, and what a report should find in them."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

from weir.pipeline.demo import DAYS, NTF_EDGES, NTF_ROUTER, SMP_EDGES, SMP_ROUTER, STEP, records
from weir.telemetry.rollups.record import MAX_BYTES, Rollup, decode, encode

END = datetime(2026, 11, 19, 22, tzinfo=UTC)


@cache
def _made() -> tuple[Rollup, ...]:
    return tuple(records(END))


def test_the_same_seed_makes_the_same_records() -> None:
    day = {"days": 1}
    assert list(records(END, **day)) == list(records(END, **day))
    assert list(records(END, **day, seed=2)) != list(records(END, **day))


def test_every_kind_of_record_can_be_published() -> None:
    for rollup in _made()[::97]:
        data = encode(rollup)
        assert len(data) <= MAX_BYTES
        read = decode(data)
        assert (read.edge, read.sequence, read.start) == (rollup.edge, rollup.sequence, rollup.start)
        assert read.events == {name: count for name, count in rollup.events.items() if count}


def test_two_weeks_of_two_routers() -> None:
    made = _made()
    assert {(r.router, r.program) for r in made} == {(SMP_ROUTER, "smp"), (NTF_ROUTER, "ntf")}
    start = (END - timedelta(days=DAYS)).timestamp() * 1000
    assert min(r.start for r in made) == start
    assert max(r.start + r.duration for r in made) <= END.timestamp() * 1000 + 60_000
    assert all(one.start <= other.start + 3_000 for one, other in pairwise(made))
    steps = timedelta(days=DAYS) // STEP
    assert len(made) == (steps - timedelta(hours=6) // STEP) * (SMP_EDGES + NTF_EDGES)


def test_sequences_have_one_hole_and_edges_are_restarted() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for rollup in _made():
        numbers[rollup.edge].append(rollup.sequence)
    assert len(numbers) == 2 * SMP_EDGES + NTF_EDGES
    holes = [other - one for own in numbers.values() for one, other in pairwise(own) if other != one + 1]
    assert holes == [timedelta(hours=6) // STEP + 1] * (SMP_EDGES + NTF_EDGES)
    assert all(own[0] == 1 for own in numbers.values())


def test_one_edge_at_a_time_publishes_the_numbers_of_the_fleet() -> None:
    spoken: dict[tuple[str, int], int] = defaultdict(int)
    for rollup in _made():
        spoken[rollup.router, rollup.start // 60_000] += "redis_used_bytes" in rollup.gauges
    assert set(spoken.values()) == {1}


def test_there_is_an_incident_a_weekend_and_growth() -> None:
    made = [r for r in _made() if r.program == "smp"]
    failed = {r.start // 3_600_000 for r in made if r.commands["SEND.INTERNAL"]}
    assert len(failed) in (3, 4) and max(failed) - min(failed) <= 3
    sent: dict[int, list[int]] = defaultdict(list)
    for rollup in made:
        sent[datetime.fromtimestamp(rollup.start / 1000, UTC).weekday()].append(rollup.events["msgSent"])
    means = {day: sum(counts) / len(counts) for day, counts in sent.items()}
    assert max(means[5], means[6]) < 0.85 * min(means[day] for day in range(5))
    queues = [r.gauges["fleet_queues"] for r in made if "fleet_queues" in r.gauges]
    assert queues == sorted(queues) and queues[-1] > queues[0] * 1.1
