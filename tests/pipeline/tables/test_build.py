"""Silver and gold, computed by Spark: equal to the plain model, however the records came."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.pipeline.tables.case import BEFORE_MIDNIGHT, Case

pytestmark = pytest.mark.spark


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


def test_the_logs_of_the_tables_keep_no_values(store: Any) -> None:
    import pyarrow.parquet as pq

    logs = [path for path in Path(store.root).rglob("_delta_log/*") if path.is_file()]
    assert len(logs) > 20
    for path in logs:
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += str(pq.read_table(path).to_pylist()).encode()
        assert b"smp10" not in content, path
        assert b'minValues\\":{\\"' not in content, path
