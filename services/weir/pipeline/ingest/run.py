"""A run of ingest: checks, lock, Spark, queries, signals."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weir.pipeline import bronze
from weir.pipeline.directory import ORPHAN_ENDS, Directory
from weir.pipeline.errors import PipelineError
from weir.pipeline.failures import spark_failures
from weir.pipeline.ingest.ids import Id
from weir.pipeline.ingest.plans import Plans
from weir.pipeline.ingest.progress import Counts, Progress
from weir.pipeline.ingest.registry import FAILURE, Registry, open_stream, to_text
from weir.pipeline.spark import SparkOptions, spark_session

if TYPE_CHECKING:
    from weir.pipeline.ingest.queries import Query

_TICK: Final = 0.25
_RETENTION: Final = 3600.0
_SPAN_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class IngestOptions:
    directory: Directory
    registries: tuple[Registry, ...] = ()
    spans: tuple[str, ...] = ()
    every: float | None = None
    """Seconds between batches. None: one run over what there is."""
    max_records: int = 50_000
    spark: SparkOptions = field(default_factory=SparkOptions)


def ingest(options: IngestOptions, progress: Progress) -> bool:
    """Run until the end, or until a signal. Return whether all was read that there was."""
    for registry in options.registries:
        with open_stream(registry) as stream:
            stream.extent()
    for pattern in options.spans:
        if not Path(pattern).parent.is_dir():
            raise PipelineError(f"--spans {pattern}: there is no directory {Path(pattern).parent}")
    options.directory.claim()
    with options.directory.locked("ingest", ORPHAN_ENDS) as locks:
        spark = replace(options.spark, tables=options.directory.root)
        with spark_session(spark, locks) as session, spark_failures(session, options.directory.root):
            return Ingest(options, session, progress).run()


class Ingest:
    """A run in a session. It holds the lock of the tables."""

    def __init__(self, options: IngestOptions, session: Any, progress: Progress) -> None:
        from weir.pipeline.tables.store import Store

        self._options = options
        self._directory = options.directory
        self._session = session
        self._progress = progress
        self._stop = threading.Event()
        self._store = Store(options.directory.location(""))
        self._cleaned = time.monotonic()

    def run(self) -> bool:
        from weir.pipeline.ingest.rollup_source import RollupSource
        from weir.pipeline.ingest.span_source import SpanSource

        for table in bronze.TABLES.values():
            self._store.create(table)
        if not Plans(self._directory) and self._store.count(bronze.ROLLUPS.name):
            raise PipelineError(f"{self._directory.location('ingest')} is missing, and without it records would repeat")
        self._clean()
        for source in (RollupSource, SpanSource):
            self._session.dataSource.register(source)
        with _stopping(self._stop):
            while True:
                try:
                    with spark_failures(self._session, self._directory.root):
                        self._until_end()
                    break
                except PipelineError as error:
                    if self._options.every is None or not str(error).startswith(FAILURE):
                        raise
                    self._progress.say(f"{error}; next try in {self._options.every:.0f}s")
                    if self._stop.wait(self._options.every):
                        break
        self._progress.end()
        return not self._stop.is_set()

    def _until_end(self) -> None:
        """Run the queries until they have read all, one fails, or ingest stops."""
        queries = self._queries()
        try:
            for query in queries:
                query.start(self._session, self._directory, self._options.every)
            while any(query.active for query in queries) and not self._stop.wait(_TICK):
                self._progress.wait(self._due())
                for query in queries:
                    query.check()
            for query in queries:
                query.end(at_once=False)
                query.check()
        except BaseException:
            for query in queries:
                query.end(at_once=True)
            raise

    def _queries(self) -> list[Query]:
        from weir.pipeline.ingest import rollup_source, span_source
        from weir.pipeline.ingest.newer import Backlog
        from weir.pipeline.ingest.queries import Query
        from weir.pipeline.ingest.rollup_batches import RollupBatches
        from weir.pipeline.ingest.span_batches import SpanBatches

        queries = []
        if self._options.registries:
            source = {
                rollup_source.REGISTRIES: to_text(self._options.registries),
                rollup_source.MAX_RECORDS: str(self._options.max_records),
                rollup_source.PARALLEL: str(self._session.sparkContext.defaultParallelism),
            }
            backlog = Backlog(self._directory, self._store)
            rollups = RollupBatches(self._directory, self._store, backlog, self._rollups_done)
            queries.append(Query("rollups", rollup_source.NAME, source, rollups, self._stop))
        if self._options.spans:
            source = {
                span_source.PATTERNS: json.dumps([str(Path(each).absolute()) for each in self._options.spans]),
                span_source.MAX_BYTES: str(_SPAN_BYTES),
            }
            spans = SpanBatches(self._directory, self._progress.add)
            queries.append(Query("spans", span_source.NAME, source, spans, self._stop))
        return queries

    def _rollups_done(self, counts: Counts, read: dict[str, Id]) -> None:
        self._progress.add(counts, self._lag(read))
        if time.monotonic() - self._cleaned > _RETENTION:
            self._clean()

    def _lag(self, read: dict[str, Id]) -> float | None:
        """How many seconds are unread. None: Redis does not say."""
        lag = 0.0
        with contextlib.suppress(PipelineError):
            for registry in self._options.registries:
                with open_stream(registry) as stream:
                    extent = stream.extent()
                if extent is not None and registry.name in read:
                    lag = max(lag, (extent.last.ms - read[registry.name].ms) / 1000)
            return lag
        return None

    def _due(self) -> float | None:
        """Spark's batches begin at multiples of their interval."""
        every = self._options.every
        return None if every is None else every - time.time() % every

    def _clean(self) -> None:
        """Delete the days of bronze that `weir pipeline tables` has closed. No other program writes to these tables."""
        from weir.pipeline.tables.retention import delete_closed

        delete_closed(self._store, bronze.TABLES)
        self._cleaned = time.monotonic()


@contextlib.contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on SIGINT and SIGTERM. A second signal ends the run in the middle of a batch, which does no harm."""
    signals = (signal.SIGINT, signal.SIGTERM)

    def on_signal(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(each, on_signal) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
