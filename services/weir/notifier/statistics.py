"""The statistics file: one line of the fleet's counters for every interval, with the reference's columns.

The lines are aligned to the clock: with an interval of a day, one is written every day at the configured time. Each
edge that has a file configured writes all numbers of the fleet. The totals at the last line are kept beside the file,
so a restart loses no counts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import time

from weir.notifier.config import Statistics
from weir.redis.errors import Unavailable
from weir.surface.fleet import FleetNumbers
from weir.telemetry.daily import NTF

_LONGEST_SLEEP = 60.0  # seconds: the clock may be set
_RETRY = 1.0
_DAY = 86400


def next_line(now: float, start: float, interval: float) -> float:
    """The time of the next line: the first after `now` that is a multiple of the interval away from `start`."""
    first = now - now % _DAY + start
    return first + ((now - first) // interval + 1) * interval


def line(date: str, counted: Mapping[str, int], before: Mapping[str, int], stored: Mapping[str, int]) -> str:
    """The 22 columns of the reference: counts of the interval, and tokens and subscriptions active at its end."""
    cells = (
        counted.get(column.of, 0) - before.get(column.of, 0) if column.how == "sum" else stored.get(column.of, 0)
        for column in NTF
    )
    return ",".join([date, *map(str, cells)])


class StatisticsFile:
    def __init__(self, path: Path, settings: Statistics, numbers: Callable[[], Awaitable[FleetNumbers]]) -> None:
        self._path = path
        self._totals = path.with_name(path.name + ".totals")
        self._settings = settings
        self._numbers = numbers

    async def run(self) -> None:
        if not self._totals.exists():
            self._save((await self._numbers()).stats)
        while True:
            due = next_line(time(), self._settings.start, self._settings.interval)
            while (left := due - time()) > 0:
                await asyncio.sleep(min(left, _LONGEST_SLEEP))
            while not await self._written(due):
                await asyncio.sleep(_RETRY)

    async def _written(self, due: float) -> bool:
        try:
            await self.write(due)
        except Unavailable:
            return False
        return True

    async def write(self, due: float) -> None:
        """Add the line of the interval that ends now."""
        numbers = await self._numbers()
        before = json.loads(self._totals.read_text())
        date = datetime.fromtimestamp(due - self._settings.interval, UTC).strftime("%Y-%m-%d")
        with self._path.open("a") as file:
            file.write(line(date, numbers.stats, before, numbers.counts) + "\n")
        self._save(numbers.stats)

    def _save(self, totals: Mapping[str, int]) -> None:
        temporary = self._totals.with_name(f".{self._totals.name}")
        temporary.write_text(json.dumps(dict(totals)))
        temporary.replace(self._totals)
