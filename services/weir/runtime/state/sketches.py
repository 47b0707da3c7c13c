"""How many queues, tokens or subscriptions were in use in a day, a week, a month: estimates, and no lists.

A sketch (HyperLogLog) gets keyed hashes instead of ids. Each sketch has a random key of its own, which the first edge
draws that needs it. The key stays in Redis while the period lasts, and an hour longer, as edges' clocks differ. Then
Redis deletes key and sketch, and edges forget the key. From then on nobody can find out whether an id was counted: not
with Redis' data, and not with the deployment's secrets, from which the key does not derive. (Redis' append-only file
has both until it is rewritten, and a backup that was made within the period has both.)
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from weir.redis.partitions import REGISTRY
from weir.runtime.state.calls import Calls
from weir.runtime.state.keys import CommonKeys

PERIODS: Final = ("day", "week", "month")
_LONGER: Final = 3600  # seconds
_HASHED: Final = 500  # ids of one script call


class Period(NamedTuple):
    name: str
    start: int  # day, as an ordinal
    expires: int  # Unix time


def periods(now: datetime) -> list[Period]:
    """The present day, week and month (UTC)."""
    today = now.date()
    month = today.replace(day=1)
    spans = {
        "day": (today, today + timedelta(days=1)),
        "week": (monday := today - timedelta(days=today.weekday()), monday + timedelta(days=7)),
        "month": (month, (month + timedelta(days=31)).replace(day=1)),
    }
    return [Period(name, *_ends(*spans[name])) for name in PERIODS]


def _ends(start: date, following: date) -> tuple[int, int]:
    return start.toordinal(), int(datetime.combine(following, time(), UTC).timestamp()) + _LONGER


class Sketches:
    def __init__(self, calls: Calls, keys: CommonKeys) -> None:
        self._calls = calls
        self._keys = keys
        self._secrets: dict[bytes, bytes] = {}  # the random key of each present sketch
        self.now: Callable[[], datetime] = partial(datetime.now, UTC)
        self.draw: Callable[[], bytes] = partial(os.urandom, 32)

    async def add(self, used: Mapping[str, Iterable[bytes]]) -> None:
        """Add ids in use, by what they are, to the sketches of today, this week and this month. Raises Unavailable."""
        present = periods(self.now())
        listed = {what: list(ids) for what, ids in used.items()}
        sketches = {
            self._keys.sketch(f"{what}:{period.name}", period.start): (what, period)
            for what, ids in listed.items()
            for period in present
            if ids
        }
        await self._find_secrets(present, sketches)
        asked: list[asyncio.Future[Any]] = []
        for key, (what, period) in sketches.items():
            secret = self._secrets[key]
            hashes = [blake2b(each, key=secret, digest_size=8).digest() for each in listed[what]]
            for at in range(0, len(hashes), _HASHED):
                some = hashes[at : at + _HASHED]
                asked.append(self._calls.call(REGISTRY, "add_active", [key], [period.expires, *some]))
        await asyncio.gather(*asked)

    async def _find_secrets(self, present: list[Period], sketches: Mapping[bytes, tuple[str, Period]]) -> None:
        """Learn the keys of these sketches, and forget those of periods that are over."""
        starts = {(period.name, period.start) for period in present}
        self._secrets = {key: secret for key, secret in self._secrets.items() if self._keys.period_of(key) in starts}
        missing = {key: period for key, (_, period) in sketches.items() if key not in self._secrets}
        found = await asyncio.gather(
            *(
                self._calls.call(REGISTRY, "sketch_key", [self._keys.sketch_key(key)], [self.draw(), period.expires])
                for key, period in missing.items()
            )
        )
        self._secrets |= zip(missing, found, strict=True)

    async def count(self, *what: str) -> dict[str, int]:
        """How many were in use: `queues_day`, `queues_week`, …"""
        wanted = [(each, period) for each in what for period in periods(self.now())]
        counts = await asyncio.gather(
            *(
                self._calls.read_registry(b"PFCOUNT", self._keys.sketch(f"{each}:{period.name}", period.start))
                for each, period in wanted
            )
        )
        return {f"{each}_{period.name}": count for (each, period), count in zip(wanted, counts, strict=True)}
