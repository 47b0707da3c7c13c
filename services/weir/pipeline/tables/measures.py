"""Numbers of gold, made as their declaration says: first over the edges of a minute, then over the minutes.

Every sum is of whole numbers, so the order in which rows come changes nothing, not even a last digit.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.pipeline.tables import columns
from weir.pipeline.tables.declaration import GRAINS, How
from weir.pipeline.tables.declaration import Column as Declared

ROUTER: Final = ("router", "program")
TIME: Final = (*ROUTER, "grain", "at", "day")
_MAXIMUM: Final = ("worst", "last", "most")
_FLEET: Final = tuple(name for name, field in columns.GAUGE_COLUMNS.items() if field.fleet)
_MEASURED: Final = (columns.TRAFFIC, columns.CAPACITY, columns.NOTIFICATIONS)


def minutes(silver: DataFrame) -> DataFrame:
    """One row for each router and minute: all numbers that gold is made of, over edges."""
    declared = [column for table in _MEASURED for column in table.columns if column.how]
    wanted = {_over_edges(column.how, column.of): column for column in declared}
    aggregates = [
        (F.max if column.how in _MAXIMUM else F.sum)(column.of).alias(name) for name, column in wanted.items()
    ]
    aggregates += [F.max(name).alias(f"max_{name}") for name in _FLEET if f"max_{name}" not in wanted]
    aggregates += [
        F.sum("observed_ms").alias("observed_ms"),
        F.sum("cpu_us").alias("cpu_us"),
        F.max(F.expr("cpu_us / nullif(observed_ms, 0) / 1000")).alias("max_cpu_share"),
    ]
    return silver.withColumn("reported", F.lit(1)).groupBy(*ROUTER, "at").agg(*aggregates)


def _over_edges(how: How, of: str) -> str:
    return f"{'max' if how in _MAXIMUM else 'sum'}_{of}"


def times(frame: DataFrame) -> DataFrame:
    """Each row three times, with the grain and the start of its minute, hour and day. `minute` keeps the minute."""
    starts = F.array(
        *(F.struct(F.lit(grain).alias("grain"), F.date_trunc(grain, "at").alias("at")) for grain in GRAINS)
    )
    others = [F.col(name) for name in frame.columns if name != "at"]
    return frame.select(*others, F.col("at").alias("minute"), F.inline(starts)).withColumn("day", F.to_date("at"))


def over_minutes(declared: Iterable[Declared]) -> list[Column]:
    """Aggregates over rows of `minutes`."""
    return [_over_minutes(column).alias(column.name) for column in declared if column.how]


def _over_minutes(column: Declared) -> Column:
    value = F.col(_over_edges(column.how, column.of))
    if column.how == "sum":
        return F.sum(value)
    if column.how == "level":
        return F.sum(value) / F.nullif(F.count(value), F.lit(0))
    return last(value) if column.how == "last" else F.max(value)


def last(value: Column) -> Column:
    """An aggregate: the value of the last minute that has one."""
    return F.max_by(value, F.when(value.isNotNull(), F.col("minute")))


def traffic(minutes: DataFrame, missing: DataFrame) -> DataFrame:
    """`missing` has the missing time of each router and minute, in ms."""
    seconds = [
        (F.coalesce(F.sum(name), F.lit(0)) / 1000).alias(to)
        for name, to in (("observed_ms", "seconds_observed"), ("missing_ms", "seconds_missing"))
    ]
    both = minutes.unionByName(missing, allowMissingColumns=True)
    return times(both).groupBy(*TIME).agg(*seconds, *over_minutes(columns.TRAFFIC.columns))


def capacity(minutes: DataFrame) -> DataFrame:
    share = F.expr("sum(cpu_us) / nullif(sum(observed_ms), 0) / 1000").alias("cpu_share")
    worst = F.max("max_cpu_share").alias("cpu_share_max")
    return times(minutes).groupBy(*TIME).agg(share, worst, *over_minutes(columns.CAPACITY.columns))


def notifications(minutes: DataFrame, events: DataFrame) -> DataFrame:
    """`events` has the router's counters of each time, as a map."""
    measured = times(minutes).groupBy(*TIME).agg(*over_minutes(columns.NOTIFICATIONS.columns))
    kept = F.col("notifications_received") - F.col("notifications_refused")
    return (
        measured.join(events, list(TIME), "left")
        .withColumn("notifications_kept", kept)
        .withColumn("pushes", _named("pushes_"))
        .withColumn("limited", _named("pushLimited_"))
    )


def _named(prefix: str) -> Column:
    """The counters whose names begin so, without the beginning. Null: there are none."""
    found = f"map_filter(events, (name, count) -> startswith(name, '{prefix}'))"
    short = f"transform_keys({found}, (name, count) -> substring(name, {len(prefix) + 1}))"
    return F.expr(f"if(size({found}) > 0, {short}, null)")
