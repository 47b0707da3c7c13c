"""Silver and gold, computed by Spark: equal to the plain model, however the records came."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.pipeline.tables import fleet, model
from weir.telemetry.rollups.record import Rollup

pytestmark = pytest.mark.spark

# A Sunday at the end of a month: the numbers of the week are due, and gaps reach into another month.
BEFORE_MIDNIGHT = datetime(2026, 11, 1, 23, 40, tzinfo=UTC)
SUNDAY, MONDAY = date(2026, 11, 1), date(2026, 11, 2)


class Case:
    """Records with gaps: at random, over midnight for one edge, and at the beginning of another."""

    def __init__(self) -> None:
        rng = Random(1)
        every = [
            record
            for program in ("smp", "ntf")
            for record in fleet.records(40, edges=2, start=BEFORE_MIDNIGHT, program=program)
        ]
        self.lost = [r for r in every if rng.random() < 0.1 or (r.edge == "smp11" and 15 <= r.sequence <= 25)]
        self.lost += [r for r in every if r.edge == "ntf10" and r.sequence <= 2 and r not in self.lost]
        self.trimmed = [r for r in self.lost if r.edge != "ntf11"]
        self.records = [r for r in every if r not in self.lost] + short_intervals()
        self.spans = list(traces())
        self.expected = model.tables(
            self.records, [(r.edge, r.sequence, r.sequence) for r in self.trimmed], spans=self.spans
        )


def short_intervals() -> list[Rollup]:
    """An edge that reports every ten seconds for three minutes: several records belong to one minute."""
    start = round(datetime(2026, 11, 2, 0, 5, tzinfo=UTC).timestamp() * 1000)
    return [
        Rollup(
            *("other", "smp", "short", n, start + n * 10_000, 10_000),
            commands={"PING.OK": n, "SEND.AUTH": 1},
            events={"msgSent": n},
            gauges={"connections": n, "cpu_us": 10 * n, "loop_delay_max_us": 100 - n, "fleet_queues": n},
            histograms={"redis_rtt": {n: 1, 3: 5}},
        )
        for n in range(1, 18)
    ]


def traces() -> Iterator[model.Row]:
    """Two SUBS: one with two pages, over midnight, and one that found no message. And one that is not over."""
    begin = datetime(2026, 11, 1, 23, 59, 59, 900_000, tzinfo=UTC)
    first = (("SUBS", 0, 900_000), ("takeover", 1000, 9000), ("SOKS", 10_000, 3), ("fold.page", 10_010, 30_000))
    first += (("fold.page", 300_000, 20_000), ("ALLS", 899_000, 5))
    second = (("SUBS", 0, 12_000), ("takeover", 100, 9000), ("ALLS", 11_900, 2))
    third = (("SUBS", 0, 5000), ("takeover", 100, 4000))
    for trace, steps in enumerate((first, second, third)):
        for span, (name, offset, duration) in enumerate(steps):
            row = {"trace_id": f"{trace:032x}", "span_id": f"{span:016x}", "name": name, "service": "weir"}
            yield row | {"start": begin + timedelta(microseconds=offset), "duration_us": duration}


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


@pytest.fixture(scope="module")
def store(spark: Any, case: Case, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tables made at once, of records that came in order."""
    from tests.pipeline.tables import lake
    from weir.pipeline.tables.build import update
    from weir.pipeline.tables.store import Store

    made = Store(str(tmp_path_factory.mktemp("tables")))
    lake.add_records(made, case.records)
    lake.add_trimmed(made, case.trimmed)
    lake.add_spans(made, case.spans)
    updated = update(made, lambda: spark, lambda text: None)
    assert updated.records == updated.gold == (SUNDAY, MONDAY)
    return made


def test_tables_are_those_of_the_model(store: Any, case: Case) -> None:
    from tests.pipeline.tables import lake

    assert lake.differences(lake.rows(store), case.expected) == []
    assert all(case.expected.values())


def test_a_run_without_new_input_starts_no_spark(store: Any) -> None:
    from weir.pipeline.tables.build import update

    assert not update(store, lambda: pytest.fail("Spark was started"), pytest.fail)


class Killed(Exception):
    pass


def test_late_repeated_and_disordered_input_and_killed_runs_leave_the_same_tables(
    spark: Any, case: Case, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.pipeline.tables import lake
    from weir.pipeline.tables import columns
    from weir.pipeline.tables.build import update
    from weir.pipeline.tables.job import Job
    from weir.pipeline.tables.store import Store

    messy, rng, written = Store(str(tmp_path)), Random(2), Job._write
    killing = {"before": columns.TRAFFIC}

    def write(job: Job, table: Any, *arguments: Any) -> None:
        if table is killing["before"]:
            raise Killed
        written(job, table, *arguments)

    records = rng.sample(case.records, len(case.records))
    lake.add_records(messy, (r for r in records if r.start < BEFORE_MIDNIGHT.timestamp() * 1000 + 600_000))
    lake.add_records(messy, records[:60])
    with monkeypatch.context() as patched:
        patched.setattr(Job, "_write", write)
        with pytest.raises(Killed):
            update(messy, lambda: spark, lambda text: None)
    update(messy, lambda: spark, lambda text: None)
    lake.add_records(messy, records[30:])
    lake.add_records(messy, rng.sample(records, 40))
    lake.add_trimmed(messy, case.trimmed)
    lake.add_spans(messy, rng.sample(case.spans, len(case.spans)))
    lake.add_spans(messy, case.spans[:5])
    killing["before"] = columns.GAPS
    with monkeypatch.context() as patched:
        patched.setattr(Job, "_write", write)
        with pytest.raises(Killed):
            update(messy, lambda: spark, lambda text: None)
    update(messy, lambda: spark, lambda text: None)
    found = lake.rows(messy)
    assert lake.differences(found, case.expected) == []
    assert found == lake.rows(store)  # to the last digit
