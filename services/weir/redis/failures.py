"""Failures of commands, counted by kind. The log gets one line per kind and minute.

A kind is the code of the error that Redis answered (OOM, MISCONF, NOPERM, ERR for a script that failed …) or one of the
three kinds below. Neither counts nor lines carry anything of the command: no key, no id, no argument.

Errors after which a command is repeated (MOVED, LOADING …) are no failures: the command succeeds later, or times out.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)

TIMEOUT: Final = "timeout"  # no answer within the deadline
DISCONNECTED: Final = "disconnected"  # the connection broke
NOT_DURABLE: Final = "not_durable"  # executed, but not synced to disk or replicated in time

_MEANINGS: Final = {
    TIMEOUT: "Redis does not answer in time",
    DISCONNECTED: "the connection to Redis broke",
    NOT_DURABLE: "Redis does not sync or replicate in time",
    "OOM": "Redis' memory is full",
    "MISCONF": "Redis cannot write to its disk",
    "NOREPLICAS": "Redis has too few replicas",
    "NOPERM": "Redis' access list lacks a right",
    "NOAUTH": "Redis wants a password",
    "damaged": "a record in Redis cannot be read",
    "WRONGTYPE": "Redis has a key of a foreign kind",
}
_INTERVAL: Final = 60.0  # seconds between two lines about one kind; also the time that a failure counts as recent


class Failures:
    """The failures of all connections of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: dict[str, int] = {}
        self._clock = clock
        self._last: dict[str, float] = {}
        self._logged: dict[str, tuple[float, int]] = {}  # time of the last line, and the count that it reported

    def count(self, kind: str, number: int = 1) -> None:
        now = self._clock()
        count = self.counts[kind] = self.counts.get(kind, 0) + number
        self._last[kind] = now
        at, reported = self._logged.get(kind, (now - _INTERVAL, 0))
        if now - at >= _INTERVAL:
            self._logged[kind] = now, count
            _log.error("%s (%s, %d since the last such line)", _meaning(kind), kind, count - reported)

    def recent(self) -> list[str]:
        """A sentence about each kind that occurred within the last minute, the latest first."""
        since = self._clock() - _INTERVAL
        kinds = sorted((kind for kind, at in self._last.items() if at > since), key=lambda kind: -self._last[kind])
        return [f"{_meaning(kind)} ({kind})." for kind in kinds]

    def totals(self) -> dict[str, int]:
        """The counts since the start; kinds that an operator should know of are there even before they occur."""
        return dict.fromkeys(_MEANINGS, 0) | self.counts


def _meaning(kind: str) -> str:
    return _MEANINGS.get(kind, "Redis answers an error")
