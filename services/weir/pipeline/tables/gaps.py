"""gold/gaps: records that are missing, found by the numbers of those that are there.

An edge numbers its records 1, 2, 3 … A hole between two records of one day is in silver/edge_days; a hole between two
days is found by comparing neighbouring days of an edge. What ingest noted while it read (bronze/gaps) tells why.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from weir.pipeline.tables.measures import ROUTER
from weir.pipeline.tables.silver import EDGE

_GAP: Final = (*EDGE, "first_missing")


def gaps(edge_days: DataFrame, noted: DataFrame) -> DataFrame:
    """All gaps of all days. `noted` is bronze/gaps."""
    found = _inside(edge_days).unionByName(_between(edge_days)).unionByName(_before(edge_days, noted))
    dropped = noted.where("reason = 'trimmed'").select("edge", F.struct("first_missing", "last_missing").alias("noted"))
    overlap = (F.col("noted.first_missing") <= F.col("last_missing")) & (
        F.col("noted.last_missing") >= F.col("first_missing")
    )
    reasons = found.join(dropped, ["edge"]).where(overlap).select(*_GAP, F.lit("trimmed").alias("reason")).distinct()
    return (
        found.join(reasons, list(_GAP), "left")
        .withColumn("reason", F.coalesce("reason", F.lit("missing")))
        .withColumn("day", F.to_date("end"))
    )


def _inside(edge_days: DataFrame) -> DataFrame:
    return edge_days.select(*EDGE, F.inline("holes").alias("first_missing", "last_missing", "start", "end"))


def _between(edge_days: DataFrame) -> DataFrame:
    before = F.lag(F.struct("last_sequence", "last_end")).over(Window.partitionBy(*EDGE).orderBy("first_sequence"))
    return (
        edge_days.withColumn("before", before)
        .where("first_sequence > before.last_sequence + 1")
        .select(
            *EDGE,
            (F.col("before.last_sequence") + 1).alias("first_missing"),
            (F.col("first_sequence") - 1).alias("last_missing"),
            F.col("before.last_end").alias("start"),
            F.col("first_start").alias("end"),
        )
    )


def _before(edge_days: DataFrame, noted: DataFrame) -> DataFrame:
    """Missing beginnings of edges that ingest knows to have started since it reads: others began before it."""
    first = edge_days.groupBy(*EDGE).agg(
        F.min("first_sequence").alias("sequence"),
        F.min_by("first_start", "first_sequence").alias("end"),
        F.min_by("first_ms", "first_sequence").alias("ms"),
    )
    started = noted.where("first_missing = 1").select("edge").distinct()
    return (
        first.where("sequence > 1")
        .join(started, ["edge"], "left_semi")
        .select(
            *EDGE,
            F.lit(1).alias("first_missing"),
            (F.col("sequence") - 1).alias("last_missing"),
            F.expr("timestampadd(MILLISECOND, (1 - sequence) * ms, end)").alias("start"),
            "end",
        )
    )


def missing(gaps: DataFrame) -> DataFrame:
    """The missing time of each router and minute, in ms."""
    minutes = F.sequence(F.date_trunc("minute", "start"), "end", F.expr("interval 1 minute"))
    end = F.least("end", F.col("at") + F.expr("interval 1 minute"))
    spent = F.unix_millis(end) - F.unix_millis(F.greatest("start", "at"))
    return (
        gaps.where("start < end")
        .select(*ROUTER, "start", "end", F.explode(minutes).alias("at"))
        .where("at < end")
        .groupBy(*ROUTER, "at")
        .agg(F.sum(spent).alias("missing_ms"))
    )
