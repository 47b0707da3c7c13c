"""Numbers of days, weeks and months: queues in use, and the reference's daily statistics.

Redis estimates what was in use since the start of a day, week and month. The estimates only grow until their period
ends, so the highest of a day is the one at its end.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.pipeline.tables.declaration import PERIODS
from weir.pipeline.tables.measures import ROUTER, last
from weir.telemetry.daily import DailyColumn

_ACTIVE: Final = {
    "queues": "active_queues",
    "notifiers": "active_ntf",
    "tokens": "active_tokens",
    "subscriptions": "active_subscriptions",
}


def active_queues(minutes: DataFrame) -> DataFrame:
    estimates = F.array(
        *(
            F.struct(
                F.lit(what).alias("what"), F.lit(period).alias("period"), F.col(f"{what}_{period}").alias("active")
            )
            for what in _ACTIVE
            for period in PERIODS
        )
    )
    highest = (_highest(what, period).alias(f"{what}_{period}") for what in _ACTIVE for period in PERIODS)
    days = _days(minutes).groupBy(*ROUTER, "day").agg(*highest)
    rows = days.select(*ROUTER, "day", F.inline(estimates)).where("active is not null")
    return rows.withColumn("at", F.expr("date_trunc(period, day)"))


def _highest(what: str, period: str) -> Column:
    return F.max(f"max_fleet_{_ACTIVE[what]}_{period}")


def _days(minutes: DataFrame) -> DataFrame:
    return minutes.withColumn("day", F.to_date("at")).withColumnRenamed("at", "minute")


def daily(program: str, listed: Iterable[DailyColumn], minutes: DataFrame, events: DataFrame) -> DataFrame:
    """The reference's columns. `events` has the counters of each time, as a map."""
    listed = tuple(listed)
    stored = _days(minutes).where(F.col("program") == program).groupBy("router", "day")
    found = stored.agg(*(_stored(column).alias(column.name) for column in listed if column.how in ("last", "active")))
    counted = events.where((F.col("program") == program) & (F.col("grain") == "day")).select("router", "day", "events")
    joined = found.join(counted, ["router", "day"], "left")
    return joined.select("router", "day", *(_cell(column).alias(column.name) for column in listed))


def _stored(column: DailyColumn) -> Column:
    if column.how == "last":
        return last(F.col(f"max_fleet_{column.of}"))
    return _highest(*column.of.rsplit("_", 1))


def _cell(column: DailyColumn) -> Column:
    if column.how == "zero":
        return F.lit(0)
    if column.how == "sum":
        return F.coalesce(F.col("events")[column.of], F.lit(0))
    value = F.coalesce(column.name, F.lit(0))
    if column.of.endswith("_week"):
        return F.when(F.dayofweek("day") == 1, value)
    if column.of.endswith("_month"):
        return F.when(F.col("day") == F.last_day("day"), value)
    return value
