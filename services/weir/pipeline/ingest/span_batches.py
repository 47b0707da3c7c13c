"""The spans of a batch are written to bronze/spans, each once.

A MERGE leaves out spans that are there. So it does not matter whether a batch is run again, a file is read again after
it was copied, or the collector wrote a span twice.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weir.pipeline import bronze
from weir.pipeline.directory import Directory
from weir.pipeline.ingest.progress import Counts
from weir.pipeline.ingest.writing import merge_new


class SpanBatches:
    """Called by Spark with each batch."""

    def __init__(self, directory: Directory, done: Callable[[Counts], None]) -> None:
        self._directory = directory
        self._done = done

    def __call__(self, frame: DataFrame, _batch: int) -> None:
        frame = frame.persist()
        try:
            total, unreadable = frame.agg(F.count("*"), F.count("reason")).first()
            if unreadable:
                merge_new(self._directory, bronze.QUARANTINE, frame.where("reason IS NOT NULL"))
            if total > unreadable:
                spans = frame.where("reason IS NULL").withColumn("start", F.timestamp_micros("start_us"))
                merge_new(self._directory, bronze.SPANS, spans.coalesce(1), also=["day"])
            self._done(Counts(spans=total - unreadable, unreadable=unreadable))
        finally:
            frame.unpersist()
