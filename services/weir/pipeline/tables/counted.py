"""Gold from silver's maps: commands, counters, histograms. Each map is taken apart once, and added up by minute."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.pipeline.tables.columns import HISTOGRAM_COLUMNS
from weir.pipeline.tables.declaration import MIN_SAMPLES
from weir.pipeline.tables.measures import ROUTER, TIME, times
from weir.telemetry.rollups.histogram import PER_OCTAVE

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


def commands(silver: DataFrame) -> DataFrame:
    counted = silver.select(*ROUTER, "at", F.explode("commands").alias("name", "count"))
    by_minute = counted.groupBy(*ROUTER, "at", "name").agg(F.sum("count").alias("count"))
    return (
        times(by_minute)
        .groupBy(*TIME, "name")
        .agg(F.sum("count").alias("count"))
        .withColumn("command", F.substring_index("name", ".", 1))
        .withColumn("outcome", F.substring_index("name", ".", -1))
    )


def events(silver: DataFrame) -> DataFrame:
    """The counters of each router and time, as a map."""
    counted = silver.select(*ROUTER, "at", F.explode("events").alias("name", "count"))
    by_minute = counted.groupBy(*ROUTER, "at", "name").agg(F.sum("count").alias("count"))
    summed = times(by_minute).groupBy(*TIME, "name").agg(F.sum("count").alias("count"))
    return summed.groupBy(*TIME).agg(_as_map("name", "count").alias("events"))


def latency(silver: DataFrame) -> DataFrame:
    named = F.array(
        *(F.struct(F.lit(name).alias("histogram"), F.col(name).alias("buckets")) for name in HISTOGRAM_COLUMNS)
    )
    filled = silver.select(*ROUTER, "at", F.inline(named)).where("buckets is not null")
    counted = filled.select(*ROUTER, "at", "histogram", F.explode("buckets").alias("bucket", "count"))
    by_minute = counted.groupBy(*ROUTER, "at", "histogram", "bucket").agg(F.sum("count").alias("count"))
    summed = times(by_minute).groupBy(*TIME, "histogram", "bucket").agg(F.sum("count").alias("count"))
    merged = summed.groupBy(*TIME, "histogram").agg(
        F.sum("count").alias("count"), _as_map("bucket", "count").alias("buckets")
    )
    units = F.create_map(*(F.lit(each) for name, field in HISTOGRAM_COLUMNS.items() for each in (name, field.unit)))
    return merged.withColumns(
        {"unit": units[F.col("histogram")]}
        | {name: quantile("buckets", "count", share) for name, share in QUANTILES.items()}
    )


def _as_map(key: str, value: str) -> Column:
    """An aggregate: rows as a map, sorted by key, so that equal rows make an equal map."""
    return F.map_from_entries(F.sort_array(F.collect_list(F.struct(key, value))))


def quantile(buckets: str, count: str, share: float) -> Column:
    """The value that this share of all values does not exceed, as weir.telemetry.rollups.histogram computes it."""
    step = (
        f"if(at.bucket is null and at.seen + each.value >= greatest(1L, ceil({share}D * {count})), each.key, at.bucket)"
    )
    bucket = (
        f"aggregate(array_sort(map_entries({buckets})), named_struct('seen', 0L, 'bucket', cast(null as int)),"
        f" (at, each) -> named_struct('seen', at.seen + each.value, 'bucket', {step})).bucket"
    )
    middle = f"transform(array({bucket}), b -> if(b < 0, 0D, pow(2D, (b + 0.5D) / {PER_OCTAVE})))[0]"
    return F.expr(f"if({count} >= {MIN_SAMPLES}, {middle}, null)")
