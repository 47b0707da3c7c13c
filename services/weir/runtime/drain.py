"""Draining: a stopping edge disconnects its clients at a limited rate, within a grace period.

The rate keeps the other edges from receiving all clients at once. No client should lose a command:

- Handshakes that are under way may finish, and the new session gets its first answers.
- A session that was heard a moment ago may have its next command on the way, so it is disconnected when it is quiet. A
  session that is never quiet is disconnected after a while.
- A session is disconnected when all its accepted commands are answered. It is asked again in every step until then.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable, Collection
from time import monotonic
from typing import TypeVar

STEP = 0.05  # seconds
QUIET = 0.5  # seconds without a block, after which no command is expected to be on the way
PATIENCE = 5.0  # seconds that a session which is never quiet may stay
HANDSHAKES = 2.0  # seconds that handshakes under way may take


class Drainable(typing.Protocol):
    """A client's session, as far as draining is concerned."""

    @property
    def draining(self) -> bool: ...

    def drain(self) -> None:
        """Accept no more commands, and disconnect as soon as all accepted commands are answered. May be repeated."""


S = TypeVar("S", bound=Drainable)


class DrainSchedule:
    """How many clients may be disconnected now, and which: a function of times, without a clock of its own."""

    def __init__(self, rate: float, grace: float, now: float) -> None:
        """`rate` is in clients per second."""
        self._rate = rate
        self._start = now
        self._grace = grace
        self._last = now - STEP  # the first step has clients to disconnect, too
        self._budget = 0.0

    def ended(self, now: float, sessions: int, handshakes: int) -> bool:
        """Whether nobody is left, or nobody may stay."""
        if now >= self._start + self._grace:
            return True
        return not sessions and not (handshakes and now < self._start + HANDSHAKES)

    def may_leave(self, now: float, last_heard: float) -> bool:
        """Whether a session that was last heard at that time may be disconnected."""
        return now - last_heard >= QUIET or now >= self._start + min(PATIENCE, self._grace / 2)

    def due(self, now: float, waiting: int) -> int:
        """The number of clients to disconnect now, of `waiting`. Unused budget of idle times is not saved up."""
        self._budget += self._rate * (now - self._last)
        self._last = now
        count = min(int(self._budget), waiting)
        self._budget = min(self._budget - count, 1.0)
        return count


async def drain(
    sessions: Callable[[], Collection[S]],
    last_heard: Callable[[S], float],
    handshakes: Callable[[], int],
    *,
    rate: float,
    grace: float,
) -> None:
    """Disconnect all clients. Return when none is left or the grace period is over. Times are those of `monotonic`."""
    schedule = DrainSchedule(rate, grace, monotonic())
    while True:
        present, now = list(sessions()), monotonic()
        if schedule.ended(now, len(present), handshakes()):
            return
        waiting = [one for one in present if not one.draining and schedule.may_leave(now, last_heard(one))]
        for session in waiting[: schedule.due(now, len(waiting))]:
            session.drain()
        await asyncio.sleep(STEP)
        for session in list(sessions()):
            if session.draining:
                session.drain()
