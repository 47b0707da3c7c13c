"""Rows of gold tables as the report uses them: plain dictionaries, the rows of one router together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

from weir.pipeline.tables.columns import DAILY_NTF, DAILY_SMP, GOLD, TRAFFIC
from weir.pipeline.tables.declaration import Table

Row = Mapping[str, Any]
Gold = Mapping[str, Sequence[Row]]
"""Rows by the name of their table."""

READ: Final[tuple[Table, ...]] = tuple(table for table in GOLD if table not in (DAILY_SMP, DAILY_NTF))
HOUR: Final = 3_600
_EPOCH: Final = date(1970, 1, 1).toordinal()


def hour(at: datetime) -> int:
    """A time as whole hours since the epoch. Times of tables are UTC, with or without saying so."""
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) // HOUR


def moment(hours: int) -> datetime:
    return datetime.fromtimestamp(hours * HOUR, UTC)


def day(hours: int) -> date:
    return moment(hours).date()


def ordinal(hours: int) -> int:
    """The number of the day, as `date.toordinal` counts."""
    return hours // 24 + _EPOCH


def hour_of(ordinal: int) -> int:
    """The first hour of a day."""
    return (ordinal - _EPOCH) * 24


def routers(gold: Gold) -> list[tuple[str, str]]:
    """(router, program) of all routers that have traffic: SMP routers first, then by name."""
    found = {(str(row["router"]), str(row["program"])) for row in gold.get(TRAFFIC.name, ())}
    return sorted(found, key=lambda each: (each[1] != "smp", each[0]))


def of(rows: Iterable[Row], **values: object) -> Iterator[Row]:
    """The rows that have these values."""
    for row in rows:
        if all(row[name] == value for name, value in values.items()):
            yield row
