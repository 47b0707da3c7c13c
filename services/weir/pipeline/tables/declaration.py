"""The words in which tables are declared: columns with type and description, and how numbers of gold are made.

Silver has one row for each edge and minute. Gold has rows for a minute, an hour and a day, told apart by `grain`. `how`
says how a number is made of the edges' numbers of one minute, and then of the minutes of an hour or a day:

    how     over edges   over minutes
    sum     sum          sum            counts
    level   sum          mean           what an edge holds now: connections, memory
    peak    sum          maximum        the same, at its most
    worst   maximum      maximum        the edge and the minute that are worst off
    last    maximum      the last one   what is stored: one edge at a time publishes this number of the fleet
    most    maximum      maximum        the same, at its most
"""

from typing import Final, Literal, NamedTuple

How = Literal["", "sum", "level", "peak", "worst", "last", "most"]

GRAINS: Final = ("minute", "hour", "day")
PERIODS: Final = ("day", "week", "month")
MIN_SAMPLES: Final = 100
"""Fewer values than this have no quantiles."""
MIN_QUEUES: Final = 50
"""A service with fewer queues has no row of its own."""

STRING: Final = "string"
LONG: Final = "bigint"
DOUBLE: Final = "double"
TIMESTAMP: Final = "timestamp"
DATE: Final = "date"
COUNTS: Final = "map<string,bigint>"
BUCKETS: Final = "map<int,bigint>"


class Column(NamedTuple):
    name: str
    type: str
    text: str
    how: How = ""
    of: str = ""
    """The column of silver/edge_minutes that a number of gold is made of."""


class Table(NamedTuple):
    name: str
    """The directory below the directory of tables, e.g. gold/traffic."""
    text: str
    grain: str
    """One sentence that says what a row is."""
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def partitions(self) -> tuple[str, ...]:
        return ("grain", "day") if "grain" in self.names else ("day",)
