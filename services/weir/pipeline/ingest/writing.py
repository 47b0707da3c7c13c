"""Writes to bronze tables that may be repeated."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weir.pipeline.directory import Directory
from weir.pipeline.tables.declaration import Table


def columns_of(table: Table, frame: DataFrame) -> DataFrame:
    """The columns of a table, in its types. `ingested_at` is now."""
    if "ingested_at" in table.names:
        frame = frame.withColumn("ingested_at", F.current_timestamp())
    return frame.select(*(F.col(column.name).cast(column.type) for column in table.columns))


def merge_new(directory: Directory, table: Table, frame: DataFrame, also: Sequence[str] = ()) -> None:
    """Insert the rows whose key is not in the table. `also` are columns that follow from the key, such as the day."""
    key = (*also, *table.key)
    columns_of(table, frame).dropDuplicates(list(table.key)).createOrReplaceTempView("fresh")
    same = " AND ".join(f"t.{name} = s.{name}" for name in key)
    frame.sparkSession.sql(
        f"MERGE INTO delta.`{directory.location(table.name)}` t USING fresh s ON {same} WHEN NOT MATCHED THEN INSERT *"
    )
