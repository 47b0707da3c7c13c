"""Directories of tables for tests: records go into bronze without Spark, and all rows come out for a comparison."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.pipeline.tables import model
from weir.pipeline.bronze import GAPS, ROLLUPS, SPANS
from weir.pipeline.tables.columns import TABLES
from weir.pipeline.tables.declaration import Table
from weir.pipeline.tables.store import Store
from weir.telemetry.rollups.record import Rollup


def add_records(store: Store, records: Iterable[Rollup]) -> None:
    rows = []
    for n, r in enumerate(records):
        start = datetime.fromtimestamp(r.start / 1000, UTC)
        rows.append(
            {"stream_id": f"{n}-0", "router": r.router, "program": r.program, "edge": r.edge, "sequence": r.sequence}
            | {"start": start, "day": start.date(), "duration_ms": r.duration, "version": 1, "ingested_at": start}
            | {name: pairs(getattr(r, name)) for name in ("commands", "events", "gauges")}
            | {"histograms": [(name, pairs(buckets)) for name, buckets in r.histograms.items()]}
            | {
                "services": [
                    {"label": s.label, "role": s.role, "sessions": s.sessions, "queues": s.queues}
                    | {"drift": pairs(s.drift), "delivered": s.delivered, "alls": pairs(s.alls)}
                    for s in r.services
                ]
            }
        )
    append(store, ROLLUPS, rows)


def add_trimmed(store: Store, records: Iterable[Rollup]) -> None:
    """The notes of ingest about records that the stream has dropped unread."""
    rows = []
    for r in records:
        start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (r.start, r.start + r.duration))
        row = {"router": r.router, "program": r.program, "edge": r.edge, "start": start, "end": end}
        row |= {"first_missing": r.sequence, "last_missing": r.sequence, "reason": "trimmed", "day": start.date()}
        rows.append(row)
    append(store, GAPS, rows)


def add_spans(store: Store, spans: Iterable[model.Row]) -> None:
    append(store, SPANS, [{"parent_span_id": "", "status": "", **span, "day": span["start"].date()} for span in spans])


def append(store: Store, table: Table, rows: list[dict[str, Any]]) -> None:
    store.create(table)
    schema = pa.schema(store.open(table.name).schema())
    write_deltalake(store.location(table.name), pa.Table.from_pylist(rows, schema), mode="append")


def arrow(table: Table, row: model.Row) -> dict[str, Any]:
    """A row as Arrow takes it: maps are pairs."""
    return {
        column.name: pairs(row[column.name])
        if column.type.startswith("map") and row[column.name] is not None
        else row[column.name]
        for column in table.columns
    }


def pairs(counts: Any) -> list[tuple[Any, int]]:
    return list(counts.items())


def rows(store: Store) -> model.Rows:
    """All rows of silver and gold, by their key."""
    found = {}
    for name, table in TABLES.items():
        stored = store.read(name, table.names)
        kinds = {column.name: column.type for column in table.columns}
        found[name] = model.sort(
            table,
            (
                {n: dict(v) if v is not None and kinds[n].startswith("map") else v for n, v in row.items()}
                for row in stored.to_pylist()
            ),
        )
    return found


def differences(found: model.Rows, expected: model.Rows) -> list[str]:
    """Describe the differences, at most three of each table. Shares and quantiles may differ in their last digit."""
    differing = []
    for name, table in TABLES.items():
        keys = [[tuple(row[k] for k in table.key) for row in some[name]] for some in (found, expected)]
        if keys[0] != keys[1]:
            differing.append(f"{name}: {len(keys[0])} rows, expected {len(keys[1])}")
            continue
        cells = [
            f"{name} {key} {column}: {one[column]!r}, expected {other[column]!r}"
            for key, one, other in zip(keys[0], found[name], expected[name], strict=True)
            for column in table.names
            if not _equal(one[column], other[column])
        ]
        differing += cells[:3]
    return differing


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-12 * abs(other)
    return bool(one == other)
