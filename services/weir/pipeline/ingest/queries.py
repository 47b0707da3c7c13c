"""The streaming queries of ingest, and how they stop: after a batch, not in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from weir.pipeline.directory import Directory

_CHECKPOINTS: Final = "ingest/checkpoints"
_COMMIT_LIMIT: Final = 20.0  # seconds, for Spark's own notes about a batch that is written


class Stopped(Exception):
    """A batch does not begin, because ingest stops."""


class Query:
    """One source, and what writes its batches."""

    def __init__(
        self,
        name: str,
        source: str,
        options: dict[str, str],
        write: Callable[[DataFrame, int], None],
        stop: threading.Event,
    ) -> None:
        self._name = name
        self._source = source
        self._options = options
        self._write = write
        self._stop = stop
        self._idle = threading.Event()
        self._idle.set()
        self._query: Any = None

    def start(self, session: SparkSession, directory: Directory, every: float | None) -> None:
        """Read every so many seconds; None: what there is now, and then end."""
        frame = session.readStream.format(self._source).options(**self._options).load()
        writer = frame.writeStream.queryName(self._name).foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", directory.location(f"{_CHECKPOINTS}/{self._name}"))
        if every is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(every * 1000)} milliseconds")
        self._query = writer.start()

    def _batch(self, frame: DataFrame, number: int) -> None:
        self._idle.clear()
        try:
            if self._stop.is_set():
                raise Stopped
            self._write(frame, number)
        finally:
            self._idle.set()

    @property
    def active(self) -> bool:
        return bool(self._query.isActive)

    def check(self) -> None:
        """Raise the error with which the query has ended."""
        error = self._query.exception()
        if error is not None and not self._stop.is_set():
            raise error

    def end(self, *, at_once: bool) -> None:
        """Stop. Without `at_once`, the batch that is being written is written and noted first."""
        if self._query is None:
            return
        if not at_once:
            self._idle.wait()
            end = time.monotonic() + _COMMIT_LIMIT
            while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < end:
                time.sleep(0.05)
        self._query.stop()
