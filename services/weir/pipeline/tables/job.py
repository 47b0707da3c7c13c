"""The Spark job behind `weir pipeline tables`.

Days are the unit of work: a day with new input is computed again as a whole, from all of its records, and replaces its
partitions. So late and repeated records leave the same rows as if all had come in order, and a run that was killed is
repaired by the next one.

A gap between two records of an edge may reach into other days. Its missing time counts there, so those days of gold are
computed again as well, from silver. gold/gaps is written last: until then it names the gaps that were there before.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.pipeline.tables import columns, counted, measures, periods, services, silver
from weir.pipeline.tables.critical_path import critical_path
from weir.pipeline.tables.days import SPANS, Inputs, Progress, touched
from weir.pipeline.tables.declaration import Table
from weir.pipeline.tables.gaps import gaps, missing
from weir.pipeline.tables.store import Store
from weir.telemetry.daily import NTF, SMP

_ROLLUPS: Final = "bronze/rollups"
_NOTED: Final = "bronze/gaps"
_SPANS: Final = "bronze/spans"
_A_DAY: Final = timedelta(days=1)


class Job:
    def __init__(
        self, spark: SparkSession, store: Store, inputs: Inputs, before: Progress, say: Callable[[str], None]
    ) -> None:
        self._spark = spark
        self._store = store
        self._inputs = inputs
        self._before = before
        self._say = say

    def records(self, days: list[date]) -> list[date]:
        """Compute silver of these days, and gold of all days that depend on them. Return the days of gold."""
        bronze = self._bronze(_ROLLUPS, days)
        self._say(f"silver: {_named(days)}")
        self._write(columns.EDGE_DAYS, silver.edge_days(bronze), days)
        self._write(columns.EDGE_MINUTES, silver.edge_minutes(bronze), days)
        with _persisted(gaps(self._read(columns.EDGE_DAYS), self._bronze(_NOTED))) as found:
            gold_days = self._gold_days(days, found)
            self._say(f"gold: {_named(gold_days)}")
            self._gold(gold_days, found)
            self._write(columns.SERVICES, services.services(bronze), days)
            self._write(columns.GAPS, _of(found, gold_days), gold_days)
        return gold_days

    def _gold_days(self, days: list[date], found: DataFrame) -> list[date]:
        """The days with new records, and those that share a gap with them, one of now or one of before."""
        bounds = found.select(F.to_date("start").alias("start"), F.to_date("end").alias("end")).distinct()
        now = [(row["start"], row["end"]) for row in bounds.collect()]
        stored = self._store.read(columns.GAPS.name, ("start", "end")).to_pylist()
        before = [(row["start"].date(), row["end"].date()) for row in stored]
        return [day for day in touched(days, [*now, *before]) if not self._before.is_closed("silver", day)]

    def _gold(self, days: list[date], found: DataFrame) -> None:
        rows = self._read(columns.EDGE_MINUTES, days)
        with _persisted(measures.minutes(rows)) as minutes, _persisted(counted.events(rows)) as events:
            lost = _of(missing(found).withColumn("day", F.to_date("at")), days).drop("day")
            self._write(columns.TRAFFIC, measures.traffic(minutes, lost), days)
            self._write(columns.CAPACITY, measures.capacity(minutes), days)
            self._write(columns.NOTIFICATIONS, measures.notifications(minutes, events), days)
            self._write(columns.ACTIVE_QUEUES, periods.active_queues(minutes), days)
            self._write(columns.DAILY_SMP, periods.daily("smp", SMP, minutes, events), days)
            self._write(columns.DAILY_NTF, periods.daily("ntf", NTF, minutes, events), days)
        self._write(columns.COMMANDS, counted.commands(rows), days)
        self._write(columns.LATENCY, counted.latency(rows), days)

    def spans(self, days: list[date]) -> None:
        """Compute the critical path of SUBS that begin on these days, or on the day before each."""
        there = {day for day in self._inputs.hashes[SPANS] if not self._before.is_closed("bronze", day)}
        begun = sorted({each for day in days for each in (day - _A_DAY, day)} & there)
        self._say(f"traces: {_named(begun)}")
        spans = self._bronze(_SPANS, sorted({each for day in begun for each in (day, day + _A_DAY)}))
        self._write(columns.CRITICAL_PATH, _of(critical_path(spans), begun), begun)

    def _bronze(self, name: str, days: Iterable[date] | None = None) -> DataFrame:
        """The table as it was when its files were listed."""
        reader = self._spark.read.format("delta").option("versionAsOf", self._inputs.versions[name])
        return _of(reader.load(self._store.location(name)), days)

    def _read(self, table: Table, days: Iterable[date] | None = None) -> DataFrame:
        return _of(self._spark.read.format("delta").load(self._store.location(table.name)), days)

    def _write(self, table: Table, frame: DataFrame, days: Iterable[date]) -> None:
        """Replace the days of a table."""
        rows = frame.select(*(F.col(column.name).cast(column.type) for column in table.columns))
        if table in columns.GOLD:
            rows = rows.repartition(*table.partitions)  # one file for each
        listed = ", ".join(f"'{day}'" for day in days)
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", f"day in ({listed})")
        writer.save(self._store.location(table.name))


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def _of(frame: DataFrame, days: Iterable[date] | None) -> DataFrame:
    """The rows of these days, or all."""
    return frame if days is None else frame.where(F.col("day").isin(*days))


def _named(days: list[date]) -> str:
    return f"{days[0]}" if len(days) == 1 else f"{len(days)} days, {days[0]} to {days[-1]}"
