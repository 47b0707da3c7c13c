"""The rollups of a batch are written to the bronze tables, so that each record is there exactly once.

A batch may be killed at any point, and is then run again. What it writes, in this order:

1. its plan (`plans`);
2. bronze/quarantine and bronze/newer, by a MERGE that leaves out rows that are there;
3. bronze/rollups, by an append with Delta's own transaction number: Delta ignores an append that is there already;
4. bronze/gaps, by a MERGE of the plan's changes.

Records that the stream brings a second time are known from the state of the sequences, so bronze/rollups is never read.
An append, unlike a MERGE, costs no more when the table is large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weir.pipeline import bronze
from weir.pipeline.directory import Directory
from weir.pipeline.ingest import entries
from weir.pipeline.ingest.ids import Id
from weir.pipeline.ingest.newer import Backlog
from weir.pipeline.ingest.plans import Plan, Plans
from weir.pipeline.ingest.progress import Counts
from weir.pipeline.ingest.sequences import Changes, Entry, Gap, Mark
from weir.pipeline.ingest.writing import columns_of, merge_new
from weir.pipeline.tables.store import Store

_KEYS: Final = (
    *("kind", "reason", "stream", "stream_id"),
    *("router", "program", "edge", "sequence", "start_ms", "duration_ms"),
)
_PLACE: Final = ("stream", "stream_id")
_QUERY: Final = "sql.streaming.queryId"
_ONE_FILE: Final = 20_000
"""Batches with fewer records are written as one file a day."""


class RollupBatches:
    """Called by Spark with each batch."""

    def __init__(
        self, directory: Directory, store: Store, backlog: Backlog, done: Callable[[Counts, dict[str, Id]], None]
    ) -> None:
        self._directory = directory
        self._store = store
        self._plans = Plans(directory)
        self._backlog = backlog
        self._done = done

    def __call__(self, frame: DataFrame, batch: int) -> None:
        query = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
        state, plan = self._plans.load(query, batch)
        if plan is not None and self._is_written(query, batch):
            self._merge_gaps(frame, plan.changes)
            return
        frame = self._backlog.added_to(frame).persist()
        try:
            keys = frame.select(*_KEYS).toArrow().to_pylist()
            records = [_entry(row) for row in keys if row["kind"] == entries.RECORD]
            changes = state.advance(records, (_mark(row) for row in keys if row["kind"] == entries.MARK))
            self._plans.save(Plan(query, batch, state.to_json(), changes), again=plan is not None)
            kinds = Counter(row["kind"] for row in keys)
            for table, kind in ((bronze.QUARANTINE, entries.UNREADABLE), (bronze.NEWER, entries.NEWER)):
                if kinds[kind]:
                    merge_new(self._directory, table, frame.where(F.col("kind") == kind))
            if len(records) > len(changes.duplicates):
                self._append(frame, changes, len(records), query, batch)
            self._merge_gaps(frame, changes)
            self._backlog.finish(frame)
            self._done(_counts(kinds, changes), _last_read(records))
        finally:
            frame.unpersist()

    def _is_written(self, query: str, batch: int) -> bool:
        """Whether bronze/rollups has the records of this batch."""
        table = self._store.open(bronze.ROLLUPS.name)
        latest = None if table is None else table.transaction_version(query)
        return latest is not None and latest >= batch

    def _append(self, frame: DataFrame, changes: Changes, count: int, query: str, batch: int) -> None:
        records = frame.where(F.col("kind") == entries.RECORD)
        if changes.duplicates:
            rows = [(stream, str(entry)) for stream, entry in changes.duplicates]
            again = frame.sparkSession.createDataFrame(rows, "stream string, stream_id string")
            records = records.join(F.broadcast(again), list(_PLACE), "left_anti")
        if count < _ONE_FILE:
            records = records.coalesce(1)
        rows = columns_of(bronze.ROLLUPS, records.withColumn("start", F.timestamp_millis("start_ms")))
        writer = rows.write.format("delta").mode("append").option("txnAppId", query).option("txnVersion", batch)
        writer.save(self._directory.location(bronze.ROLLUPS.name))

    def _merge_gaps(self, frame: DataFrame, changes: Changes) -> None:
        rows = [_gap_row(gap, True) for gap in changes.removed] + [_gap_row(gap, False) for gap in changes.added]
        if not rows:
            return
        schema = ", ".join(f"{column.name} {column.type}" for column in bronze.GAPS.columns)
        frame.sparkSession.createDataFrame(rows, f"{schema}, gone boolean").createOrReplaceTempView("gaps")
        names = ", ".join(bronze.GAPS.names)
        frame.sparkSession.sql(
            f"MERGE INTO delta.`{self._directory.location(bronze.GAPS.name)}` t USING gaps s"
            " ON t.edge = s.edge AND t.first_missing = s.first_missing AND t.last_missing = s.last_missing"
            " WHEN MATCHED AND s.gone THEN DELETE"
            f" WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({names}) VALUES ({names})"
        )


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        row["stream"],
        Id.parse(row["stream_id"]),
        row["router"],
        row["program"],
        row["edge"],
        row["sequence"],
        row["start_ms"],
        row["duration_ms"],
    )


def _mark(row: dict[str, Any]) -> Mark:
    return Mark(row["stream"], Id.parse(row["stream_id"]), Id.parse(row["reason"]))


def _gap_row(gap: Gap, gone: bool) -> tuple[Any, ...]:
    start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (gap.start, gap.end))
    return (*gap[:5], start, end, gap.reason, start.date(), gone)


def _counts(kinds: Counter[str], changes: Changes) -> Counts:
    again = len(changes.duplicates)
    return Counts(
        records=kinds[entries.RECORD] - again,
        duplicates=again,
        unreadable=kinds[entries.UNREADABLE],
        newer=kinds[entries.NEWER],
        missing=sum(map(_size, changes.added)) - sum(map(_size, changes.removed)),
    )


def _last_read(records: list[Entry]) -> dict[str, Id]:
    """The last entry of each stream."""
    last: dict[str, Id] = {}
    for record in records:
        last[record.stream] = max(record.id, last.get(record.stream, record.id))
    return last


def _size(gap: Gap) -> int:
    return gap.last_missing - gap.first_missing + 1
