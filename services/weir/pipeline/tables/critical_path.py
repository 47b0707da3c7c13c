"""gold/critical_path: where traced SUBS spend their time until ALLS.

The steps of a SUBS follow each other: the takeover, then pages of the fold. Between a page and the next, or ALLS, the
fold waits until the client has read the messages. A trace counts in the hour in which its SUBS begins, with spans from
any day.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_TIME: Final = ("service", "grain", "at", "day")
_STEPS: Final = {"takeover": "takeover", "fold.page": "pages", "client": "client", "other": "other"}


def critical_path(spans: DataFrame) -> DataFrame:
    once = spans.where(F.col("name").isin("SUBS", "takeover", "fold.page", "ALLS")).dropDuplicates(
        ["trace_id", "span_id"]
    )
    traces = once.groupBy("trace_id").agg(
        F.sum(_of("SUBS", "duration_us")).alias("subs"),
        F.coalesce(F.sum(_of("takeover", "duration_us")), F.lit(0)).alias("takeover"),
        F.coalesce(F.sum(_of("fold.page", "duration_us")), F.lit(0)).alias("pages"),
        F.count(_of("SUBS", "start")).alias("roots"),
        F.count(_of("ALLS", "start")).alias("ends"),
        F.max(_of("SUBS", "service")).alias("service"),
        F.max(_of("SUBS", "start")).alias("start"),
        F.min(_of("fold.page", "start")).alias("first_page"),
        F.max(_of("ALLS", "start")).alias("alls"),
    )
    whole = traces.where("roots = 1 and ends = 1")
    folded = F.coalesce(F.unix_micros("alls") - F.unix_micros("first_page"), F.lit(0))
    client = F.greatest(F.lit(0), folded - F.col("pages"))
    other = F.greatest(F.lit(0), F.col("subs") - F.col("takeover") - F.col("pages") - F.col("client"))
    spent = F.array(*(F.struct(F.lit(step).alias("step"), F.col(name).alias("us")) for step, name in _STEPS.items()))
    starts = F.array(
        *(F.struct(F.lit(grain).alias("grain"), F.date_trunc(grain, "start").alias("at")) for grain in ("hour", "day"))
    )
    steps = (
        whole.withColumn("client", client)
        .withColumn("other", other)
        .select("service", "start", F.inline(spent))
        .select("service", "step", "us", F.inline(starts))
        .withColumn("day", F.to_date("at"))
    )
    summed = steps.groupBy(*_TIME, "step").agg(
        F.count("*").alias("traces"), F.sum("us").alias("total_us"), F.max("us").alias("longest_us")
    )
    totals = summed.groupBy(*_TIME).agg(F.sum("total_us").alias("whole"))
    share = F.expr("coalesce(total_us / nullif(whole, 0), 0D)")
    return summed.join(totals, list(_TIME)).withColumn("share", share)


def _of(name: str, column: str) -> Column:
    return F.when(F.col("name") == name, F.col(column))
