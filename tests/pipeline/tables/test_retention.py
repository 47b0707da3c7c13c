"""Expired values are nowhere on disk. No Spark is needed: tables are written as Spark writes them, by delta-rs."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.pipeline.tables import fleet
from weir.telemetry.rollups.record import Rollup, ServiceRollup

pytestmark = pytest.mark.spark

TODAY = date(2026, 11, 20)
OLD, NEW = "oldmarker7c1e", "newmarker7c1e"


def record(marker: str, days_ago: int, sequence: int) -> Rollup:
    start = datetime.combine(TODAY - timedelta(days=days_ago), datetime.min.time(), UTC)
    services = (ServiceRollup(f"{marker}-label", "messages", 1, 60),)
    return Rollup(
        *(f"{marker}-router", "smp", f"{marker}edge", sequence, round(start.timestamp() * 1000), 60_000),
        services=services,
    )


def on_disk(directory: Path, marker: str) -> list[str]:
    """Files whose bytes, or whose names, have the marker, also inside of what is compressed."""
    import pyarrow.parquet as pq

    found = []
    for path in directory.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        if path.suffix == ".parquet" and not path.name.endswith(".checkpoint.parquet"):
            content += str(pq.read_table(path).to_pylist()).encode()
        if re.search(marker.encode(), content) or marker in path.name:
            found.append(str(path.relative_to(directory)))
    return found


def test_expired_days_are_nowhere_on_disk(tmp_path: Path) -> None:
    from tests.pipeline.tables import lake, model
    from weir.pipeline.bronze import TABLES as BRONZE
    from weir.pipeline.tables import progress, retention
    from weir.pipeline.tables.columns import TABLES
    from weir.pipeline.tables.days import ROLLUPS
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    records = [record(OLD, 401, 1), record(OLD, 401, 3), record(NEW, 3, 1), record(NEW, 3, 3)]
    lake.add_records(store, records)
    lake.add_trimmed(store, records)
    for name in BRONZE:
        store.create(BRONZE[name])
    tables = model.tables(records)
    for name, table in TABLES.items():
        lake.append(store, table, [lake.arrow(table, row) for row in tables[name]])
    left = tmp_path / "silver" / "edge_minutes" / "day=2025-10-15" / "left-by-a-killed-run"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(OLD.encode())
    progress.save(store, progress.Progress({ROLLUPS: progress.read_inputs(store).hashes[ROLLUPS]}))
    assert on_disk(tmp_path, OLD)

    closed = retention.apply(store, retention.Keep(), TODAY, grace=0)
    assert closed == {"bronze": 1, "silver": 1, "gold": 1}
    assert retention.delete_closed(store, BRONZE, grace=0) == 1
    assert on_disk(tmp_path, OLD) == []
    assert {Path(path).parts[0] for path in on_disk(tmp_path, NEW)} == {"bronze", "silver", "gold"}
    assert retention.apply(store, retention.Keep(), TODAY, grace=0) == {"bronze": 0, "silver": 0, "gold": 0}


def test_a_closed_day_is_not_computed_again_from_what_comes_late(tmp_path: Path) -> None:
    from tests.pipeline.tables import lake
    from weir.pipeline.bronze import TABLES as BRONZE
    from weir.pipeline.tables import progress, retention
    from weir.pipeline.tables.days import ROLLUPS
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    lake.add_records(store, [record(OLD, 8, 1), record(NEW, 7, 1)])
    retention.apply(store, retention.Keep(), TODAY, grace=0)
    retention.delete_closed(store, BRONZE, grace=0)
    lake.add_records(store, [record(OLD, 8, 2)])
    changed = progress.load(store).changed(ROLLUPS, progress.read_inputs(store).hashes[ROLLUPS])
    assert changed == [TODAY - timedelta(days=7)]


def test_a_file_stays_for_the_grace_of_queries(tmp_path: Path) -> None:
    from tests.pipeline.tables import lake
    from weir.pipeline.tables import retention
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    lake.add_records(store, fleet.records(2))
    before = on_disk(tmp_path, "smp10")
    store.delete_before("bronze/rollups", date(2027, 1, 1))
    store.vacuum("bronze/rollups", 1)
    assert on_disk(tmp_path, "smp10") == before
    store.vacuum("bronze/rollups", 0)
    assert on_disk(tmp_path, "smp10") == []
    assert retention.GRACE == 1


def test_the_log_keeps_no_values(tmp_path: Path) -> None:
    from tests.pipeline.tables import lake
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    lake.add_records(store, [record(OLD, 1, 1)])
    assert on_disk(tmp_path / "bronze" / "rollups" / "_delta_log", OLD) == []
