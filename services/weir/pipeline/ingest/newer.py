"""Records that an older version of Weir could not read, read again by this one.

An ingest of an older version has kept them in bronze/newer. This version adds those that it knows to its next batches,
where they are taken like any other record, and then deletes them from bronze/newer. A record that was taken and not
deleted, because ingest was killed in between, is a duplicate the next time.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from weir.pipeline import bronze
from weir.pipeline.directory import Directory
from weir.pipeline.ingest import entries
from weir.pipeline.ingest.ids import Id
from weir.pipeline.ingest.rows import to_arrow
from weir.pipeline.tables.store import Store
from weir.runtime.state.rollups import FIELD
from weir.telemetry.rollups.fields import VERSION

_AT_ONCE: Final = 20_000


class Backlog:
    def __init__(self, directory: Directory, store: Store) -> None:
        self._table = f"delta.`{directory.location(bronze.NEWER.name)}`"
        versions = store.read(bronze.NEWER.name, ["version"])
        self._left = versions is not None and any(version <= VERSION for version in versions["version"].to_pylist())
        self._taken: list[tuple[str, str]] = []

    def added_to(self, frame: DataFrame) -> DataFrame:
        """The batch, and records that are read again."""
        if not self._left:
            return frame
        session = frame.sparkSession
        found = session.sql(
            f"SELECT stream, stream_id, raw FROM {self._table} WHERE version <= {VERSION}"
            f" ORDER BY stream, stream_id LIMIT {_AT_ONCE}"
        ).collect()
        self._taken = [(row.stream, row.stream_id) for row in found]
        self._left = len(found) == _AT_ONCE
        if not found:
            return frame
        rows = (entries.read_entry(row.stream, Id.parse(row.stream_id), {FIELD: bytes(row.raw)}) for row in found)
        batch = to_arrow(rows, to_arrow_schema(frame.schema, timezone="UTC"))
        again = session.createDataFrame(pa.Table.from_batches([batch]), frame.schema)
        # A stream that is read from its beginning brings the same entries.
        return frame.unionByName(again).dropDuplicates(["kind", "stream", "stream_id"])

    def finish(self, frame: DataFrame) -> None:
        """Delete what the batch has taken."""
        if not self._taken:
            return
        session = frame.sparkSession
        session.createDataFrame(self._taken, "stream string, stream_id string").createOrReplaceTempView("taken")
        session.sql(
            f"MERGE INTO {self._table} t USING taken s"
            f" ON t.stream = s.stream AND t.stream_id = s.stream_id AND t.version <= {VERSION}"
            " WHEN MATCHED THEN DELETE"
        )
        self._taken = []
