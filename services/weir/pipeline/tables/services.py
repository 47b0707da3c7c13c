"""gold/services, from bronze: hours and days of services that are large enough to be named.

The rule is decided for each hour, by the highest number of queues that any edge reported. A day adds up only the hours
that have a row, so the difference between the two tells nothing of the others.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weir.pipeline.tables.counted import QUANTILES, quantile
from weir.pipeline.tables.declaration import MIN_QUEUES
from weir.pipeline.tables.measures import ROUTER, TIME
from weir.telemetry.rollups.fields import DRIFT

_SERVICE: Final = ("label", "role")
_NUMBERS: Final = ("queues", "delivered", *(f"drift_{kind}" for kind in DRIFT))


def services(bronze: DataFrame) -> DataFrame:
    reported = (
        bronze.where("size(services) > 0")
        .select(*ROUTER, "edge", "sequence", F.date_trunc("minute", "start").alias("minute"), F.inline("services"))
        .withColumns({f"drift_{kind}": F.coalesce(F.col("drift")[kind], F.lit(0)) for kind in DRIFT})
    )
    # Repeated records are equal, so the maximum of their numbers takes each once.
    once = reported.groupBy(*ROUTER, "edge", "sequence", "minute", *_SERVICE).agg(
        *(F.max(name).alias(name) for name in ("sessions", *_NUMBERS)), F.first("alls").alias("alls")
    )
    hour = F.date_trunc("hour", "minute")
    large = once.groupBy(*ROUTER, *_SERVICE, hour.alias("hour")).agg(F.max("queues").alias("queues"))
    large = large.where(F.col("queues") >= MIN_QUEUES).drop("queues")
    kept = _times(once.withColumn("hour", hour).join(large, [*ROUTER, *_SERVICE, "hour"], "left_semi")).persist()
    by_edge = kept.groupBy(*TIME, *_SERVICE, "minute", "edge").agg(
        F.max("sessions").alias("sessions"),
        F.max("queues").alias("queues"),
        *(F.sum(name).alias(name) for name in _NUMBERS if name != "queues"),
    )
    by_minute = by_edge.groupBy(*TIME, *_SERVICE, "minute").agg(
        F.sum("sessions").alias("sessions"),
        F.max("queues").alias("queues"),
        *(F.sum(name).alias(name) for name in _NUMBERS if name != "queues"),
    )
    numbers = by_minute.groupBy(*TIME, *_SERVICE).agg(
        F.max("sessions").alias("sessions"),
        F.max("queues").alias("queues"),
        *(F.sum(name).alias(name) for name in _NUMBERS if name != "queues"),
    )
    joined = numbers.join(_folds(kept), [*TIME, *_SERVICE], "left")
    alls = F.coalesce("alls", F.lit(0))
    quantiles = {f"alls_{name}": quantile("buckets", "alls", QUANTILES[name]) for name in ("p50", "p90", "p99")}
    return joined.withColumns(quantiles | {"alls": alls})


def _folds(kept: DataFrame) -> DataFrame:
    """How many folds ended, and their histogram."""
    counted = kept.select(*TIME, *_SERVICE, F.explode("alls").alias("bucket", "count"))
    summed = counted.groupBy(*TIME, *_SERVICE, "bucket").agg(F.sum("count").alias("count"))
    return summed.groupBy(*TIME, *_SERVICE).agg(
        F.sum("count").alias("alls"),
        F.map_from_entries(F.sort_array(F.collect_list(F.struct("bucket", "count")))).alias("buckets"),
    )


def _times(frame: DataFrame) -> DataFrame:
    starts = F.array(
        *(F.struct(F.lit(grain).alias("grain"), F.date_trunc(grain, "hour").alias("at")) for grain in ("hour", "day"))
    )
    return frame.select("*", F.inline(starts)).withColumn("day", F.to_date("at"))
