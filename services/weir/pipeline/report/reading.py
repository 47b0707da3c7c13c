"""Reads gold with delta-rs, the `deltalake` package: no JVM, no Spark session, a second instead of twenty.

Only what the report uses is read: the span with its histograms and commands, hours of seven weeks to compare with, and
days of four months to forecast from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import compute

from weir.pipeline.errors import PipelineError
from weir.pipeline.report.forecast import MOST_DAYS
from weir.pipeline.report.gold import READ, Gold, Row
from weir.pipeline.report.part import HOURLY_DAYS
from weir.pipeline.report.unusual import WEEKS_BEFORE
from weir.pipeline.tables.columns import COMMANDS, LATENCY, TRAFFIC
from weir.pipeline.tables.declaration import Table

_COMPARED: Final = timedelta(days=(WEEKS_BEFORE + 1) * 7 + 1)
_HISTORY: Final = timedelta(days=MOST_DAYS)


def read(tables: str, days: int, routers: Sequence[str] = (), *, daily: bool = False) -> Gold:
    """The rows for a report about the newest `days` of some routers, or of all. `daily`: it is shown by the day."""
    where = location(tables)
    try:
        newest = _newest(where)
        if newest is None:
            return {}
        span = timedelta(days=days)
        grain = "day" if daily or days > HOURLY_DAYS else "hour"
        return {table.name: _table(where, table, _wanted(table, newest, span, grain), routers) for table in READ}
    except TableNotFoundError:
        raise PipelineError(
            f"no gold tables in {tables}: run weir pipeline ingest and weir pipeline tables first"
        ) from None
    except (DeltaError, OSError) as error:
        raise PipelineError(f"cannot read {tables}: {str(error).splitlines()[0]}") from None


def location(tables: str) -> str:
    """The directory of the tables as delta-rs names it, which calls s3a:// s3://."""
    return tables.replace("s3a://", "s3://", 1).rstrip("/") if "://" in tables else str(Path(tables).resolve())


def _newest(where: str) -> date | None:
    """The newest day that has traffic."""
    days = (
        DeltaTable(f"{where}/{TRAFFIC.name}")
        .to_pyarrow_dataset()
        .to_table(columns=["day"], filter=compute.field("grain") == "day")
    )
    found: date | None = compute.max(days["day"]).as_py()
    return found


def _wanted(table: Table, newest: date, span: timedelta, grain: str) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The part of a table to read: (condition, columns to leave out)."""
    since, of = compute.field("day"), compute.field("grain")
    if "grain" not in table.names:
        yield since > newest - max(span, _HISTORY), ()
    elif table is LATENCY or table is COMMANDS:
        yield (of == grain) & (since >= newest - span), ()
        before = (of == "hour") & (since > newest - _COMPARED)
        if grain == "hour":
            before &= since < newest - span
        if table is COMMANDS:
            before &= compute.field("outcome") != "OK"
        yield before, ("buckets",)
    else:
        for each, least in (("hour", _COMPARED), ("day", _HISTORY)):
            yield (of == each) & (since >= newest - (max(span, least) if each == grain else least)), ()


def _table(
    where: str, table: Table, wanted: Iterator[tuple[Any, tuple[str, ...]]], routers: Sequence[str]
) -> list[Row]:
    """The rows in the order of their key, so that the same tables make the same page. Traffic is that of all routers:
    it says which there are, and when the span ends."""
    chosen = routers and "router" in table.names and table is not TRAFFIC
    found: list[Row] = []
    for condition, without in wanted:
        if chosen:
            condition &= compute.field("router").isin(list(routers))
        found += _rows(where, table, condition, without)
    return sorted(found, key=lambda row: tuple(row[name] for name in table.key))


def _rows(where: str, table: Table, condition: Any, without: Sequence[str]) -> list[Row]:
    names = [name for name in table.names if name not in without]
    found = DeltaTable(f"{where}/{table.name}").to_pyarrow_dataset().to_table(columns=names, filter=condition)
    rows: list[Row] = found.to_pylist()
    return rows
