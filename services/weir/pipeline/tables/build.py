"""`weir pipeline tables`: brings silver and gold up to date with bronze."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from weir.pipeline.bronze import ROLLUPS as ROLLUPS_TABLE
from weir.pipeline.bronze import TABLES as BRONZE
from weir.pipeline.errors import PipelineError
from weir.pipeline.tables import progress
from weir.pipeline.tables.columns import TABLES
from weir.pipeline.tables.days import ROLLUPS, SPANS
from weir.pipeline.tables.store import Store


@dataclass(frozen=True)
class Updated:
    """The days that a run has computed again."""

    records: tuple[date, ...]
    """Days with new records."""
    gold: tuple[date, ...]
    spans: tuple[date, ...]

    def __bool__(self) -> bool:
        return bool(self.records or self.spans)


def update(store: Store, start_spark: Callable[[], Any], say: Callable[[str], None]) -> Updated:
    """Compute what has new input. Spark is started only if something has. Raises PipelineError."""
    if store.open(ROLLUPS_TABLE.name) is None:
        raise PipelineError(f"no records in {store.root} (weir pipeline ingest)")
    for table in BRONZE.values():
        store.create(table)
    inputs, before = progress.read_inputs(store), progress.load(store)
    days = before.changed(ROLLUPS, inputs.hashes[ROLLUPS])
    span_days = before.changed(SPANS, inputs.hashes[SPANS])
    if not days and not span_days:
        return Updated((), (), ())
    from weir.pipeline.tables.job import Job  # imports Spark

    for table in TABLES.values():
        store.create(table)
    job = Job(start_spark(), store, inputs, before, say)
    gold_days = job.records(days) if days else []
    if span_days:
        job.spans(span_days)
    progress.save(store, replace(before, hashes=inputs.hashes))
    return Updated(tuple(days), tuple(gold_days), tuple(span_days))
