"""Bronze → silver: one row for each edge and minute, and what is needed to find missing records.

Nearly every minute of an edge has exactly one record, which is taken as it is: its row needs no shuffle. Only crowded
minutes, with a repeated record or several short intervals, are grouped. A record is named by its edge and sequence, and
belongs to the minute in which its interval starts.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weir.pipeline.tables.columns import EDGE_MINUTES, EVENT_COLUMNS, GAUGE_COLUMNS, HISTOGRAM_COLUMNS
from weir.pipeline.tables.declaration import BUCKETS, COUNTS

EDGE: Final = ("router", "program", "edge")
_MINUTE: Final = (*EDGE, "at")
_SUMMED: Final = "cpu_us"
"""The gauge that tells of the whole interval: CPU time is added up."""
_HIGHEST: Final = "loop_delay_max_us"


def edge_minutes(bronze: DataFrame) -> DataFrame:
    """The rows of silver/edge_minutes. `bronze` has whole days."""
    records = bronze.withColumn("at", F.date_trunc("minute", "start"))
    crowded = records.groupBy(*_MINUTE).count().where("count > 1").select(*_MINUTE).persist()
    if crowded.isEmpty():
        return _rows(_alone(records))
    alone = _alone(records.join(crowded, list(_MINUTE), "left_anti"))
    grouped = _grouped(records.join(crowded, list(_MINUTE), "left_semi"))
    return _rows(alone).unionByName(_rows(grouped))


def _alone(records: DataFrame) -> DataFrame:
    return records.select(
        *_MINUTE,
        F.lit(1).alias("records"),
        F.col("sequence").alias("first_sequence"),
        F.col("sequence").alias("last_sequence"),
        F.col("duration_ms").alias("observed_ms"),
        *("commands", "events", "gauges", "histograms"),
        F.coalesce(F.col("gauges")[_SUMMED], F.lit(0)).alias(_SUMMED),
        F.coalesce(F.col("gauges")[_HIGHEST], F.lit(0)).alias(_HIGHEST),
    )


def _grouped(records: DataFrame) -> DataFrame:
    """Minutes with several records, each record once."""
    once = records.dropDuplicates([*EDGE, "sequence"])
    histograms = reduce(
        lambda maps, name: F.map_concat(maps, _unless_empty(name)),
        HISTOGRAM_COLUMNS,
        F.expr(f"cast(map() as map<string,{BUCKETS}>)"),
    )
    return (
        once.groupBy(*_MINUTE)
        .agg(
            F.count("*").alias("records"),
            F.min("sequence").alias("first_sequence"),
            F.max("sequence").alias("last_sequence"),
            F.sum("duration_ms").alias("observed_ms"),
            _added("commands", COUNTS).alias("commands"),
            _added("events", COUNTS).alias("events"),
            F.max_by("gauges", "sequence").alias("gauges"),
            F.sum(F.coalesce(F.col("gauges")[_SUMMED], F.lit(0))).alias(_SUMMED),
            F.max(F.coalesce(F.col("gauges")[_HIGHEST], F.lit(0))).alias(_HIGHEST),
            *(_added(f"histograms['{name}']", BUCKETS).alias(name) for name in HISTOGRAM_COLUMNS),
        )
        .withColumn("histograms", histograms)
    )


def _added(maps: str, kind: str) -> Column:
    """An aggregate: the maps of all rows added up, key by key."""
    return F.expr(
        f"aggregate(collect_list({maps}), cast(map() as {kind}),"
        " (total, each) -> map_zip_with(total, each, (k, a, b) -> coalesce(a, 0L) + coalesce(b, 0L)))"
    )


def _unless_empty(name: str) -> Column:
    return F.expr(f"if(size({name}) = 0, cast(map() as map<string,{BUCKETS}>), map('{name}', {name}))")


def _rows(minutes: DataFrame) -> DataFrame:
    """The declared columns, from the maps."""
    return minutes.select(*(_column(name).alias(name) for name in EDGE_MINUTES.names))


def _column(name: str) -> Column:
    if name == "day":
        return F.to_date("at")
    if name == "commands_total":
        return _total("commands")
    if name == "errors_total":
        return _total("map_filter(commands, (key, count) -> not endswith(key, '.OK'))")
    if name in EVENT_COLUMNS:
        return F.coalesce(F.col("events")[EVENT_COLUMNS[name]], F.lit(0))
    if name in GAUGE_COLUMNS and name not in (_SUMMED, _HIGHEST):
        value = F.col("gauges")[name]
        return value if GAUGE_COLUMNS[name].fleet else F.coalesce(value, F.lit(0))
    return F.col("histograms")[name] if name in HISTOGRAM_COLUMNS else F.col(name)


def _total(counts: str) -> Column:
    return F.expr(f"aggregate(map_values({counts}), 0L, (total, each) -> total + each)")


def edge_days(bronze: DataFrame) -> DataFrame:
    """The rows of silver/edge_days. A repeated record changes nothing here."""
    end = F.expr("timestampadd(MILLISECOND, duration_ms, start)")
    order = Window.partitionBy(*EDGE, "day").orderBy("sequence")
    records = bronze.select(*EDGE, "day", "sequence", "start", "duration_ms", end.alias("end"))
    before = F.lag(F.struct("sequence", "end")).over(order)
    hole = F.struct(
        (F.col("before.sequence") + 1).alias("first"),
        (F.col("sequence") - 1).alias("last"),
        F.col("before.end").alias("start"),
        F.col("start").alias("end"),
    )
    return (
        records.withColumn("before", before)
        .groupBy(*EDGE, "day")
        .agg(
            F.min("sequence").alias("first_sequence"),
            F.max("sequence").alias("last_sequence"),
            F.min_by("start", "sequence").alias("first_start"),
            F.min_by("duration_ms", "sequence").alias("first_ms"),
            F.max_by("end", "sequence").alias("last_end"),
            F.sort_array(F.collect_list(F.when(F.col("sequence") > F.col("before.sequence") + 1, hole))).alias("holes"),
        )
    )
