"""Gold is read from real Delta tables, with no more rows than the report uses."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.report.given import START, Given, Rows, joined
from weir.pipeline.errors import PipelineError
from weir.pipeline.report.build import report
from weir.pipeline.tables.columns import TABLES

pytestmark = pytest.mark.spark  # needs the extra "pipeline", and no Spark

_DAYS = 40


def write_tables(directory: Path, rows: Rows) -> None:
    """The rows as Delta tables, by another writer than the pipeline's own."""
    import pyarrow as pa
    from deltalake import write_deltalake

    types: Mapping[str, Any] = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
        "map<int,bigint>": pa.map_(pa.int32(), pa.int64()),
    }
    for name, found in rows.items():
        table = TABLES[name]
        schema = pa.schema([(column.name, types[column.type]) for column in table.columns])
        whole = [
            {
                column.name: list(value.items()) if isinstance(value := row.get(column.name), dict) else value
                for column in table.columns
            }
            for row in found
        ]
        partitions = ["grain", "day"] if "grain" in table.names else ["day"]
        write_deltalake(str(directory / name), pa.Table.from_pylist(whole, schema), partition_by=partitions)


@pytest.fixture(scope="module")
def rows() -> Rows:
    gaps, incidents = [range(24 * 30, 24 * 30 + 5)], [range(24 * 36, 24 * 36 + 3)]
    one = Given(_DAYS, gaps=gaps, incidents=incidents).rows()
    all_rows = joined(one, Given(_DAYS, program="ntf").rows(), Given(_DAYS, router="other").rows())
    return {
        name: sorted(found, key=lambda row: [row[key] for key in TABLES[name].key]) for name, found in all_rows.items()
    }


@pytest.fixture(scope="module")
def tables(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("tables")
    write_tables(directory, rows)
    return str(directory)


@pytest.mark.parametrize("days", [3, 14, 35])
def test_a_report_from_tables_is_that_from_all_rows(tables: str, rows: Rows, days: int) -> None:
    from weir.pipeline.report.reading import read

    assert report(read(tables, days), days) == report(rows, days)


def test_a_chosen_router(tables: str, rows: Rows) -> None:
    from weir.pipeline.report.reading import read

    found = dict(read(tables, 14, ["other"]))
    assert report(found, 14, ["other"]) == report(rows, 14, ["other"])
    assert {row["router"] for row in found.pop("gold/traffic")} == {"main", "other"}
    assert {row["router"] for each in found.values() for row in each} == {"other"}


def test_only_what_is_used_is_read(tables: str) -> None:
    from weir.pipeline.report.reading import read

    found = read(tables, 3)
    newest = START + timedelta(days=_DAYS - 1)
    latency = found["gold/latency"]
    assert min(row["at"] for row in latency if "buckets" in row) >= newest - timedelta(days=3)
    assert min(row["at"] for row in latency) == START
    old = [row for row in found["gold/commands"] if row["at"] < newest - timedelta(days=3)]
    assert old and not [row for row in old if row["outcome"] == "OK"]
    long = read(tables, 35, daily=True)["gold/latency"]
    assert {row["grain"] for row in long if "buckets" in row} == {"day"}


def test_no_tables_and_broken_tables(tables: str, tmp_path: Path) -> None:
    from weir.pipeline.report.reading import location, read

    with pytest.raises(PipelineError, match=r"no gold tables in .*: run weir pipeline ingest and weir pipeline tables"):
        read(str(tmp_path), 14)
    broken = tmp_path / "gold" / "traffic" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / "00000000000000000000.json").write_text("{")
    with pytest.raises(PipelineError, match="cannot read ") as raised:
        read(str(tmp_path), 14)
    assert "\n" not in str(raised.value)
    assert location("s3a://bucket/weir/") == "s3://bucket/weir"
