"""Draining: a stopping edge disconnects its clients at a limited rate, within a grace period.

    stop accepting, end handshakes ──► QUIET ──► clients that are quiet leave, at a limited rate ──► … ──► grace is over

The rate keeps the other edges from receiving all clients at once. No client should lose a command, and no client should
be let in only to be disconnected again:

- The edge has stopped accepting before draining begins, and handshakes under way have ended without a session. A client
  that connects again at once finds another edge.
- Nobody is disconnected in the first moment. Edges that are told to stop together have then all stopped accepting, so
  that a client of the first edge does not move to the next one that stops.
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
QUIET = 0.5  # seconds without a block while the edge drains, after which no command is expected to be on the way
PATIENCE = 5.0  # seconds that a session which is never quiet may stay


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

    def ended(self, now: float, sessions: int) -> bool:
        """Whether nobody is left, or nobody may stay."""
        return not sessions or now >= self._start + self._grace

    def may_leave(self, now: float, last_heard: float) -> bool:
        """Whether a session that was last heard at that time may be disconnected."""
        quiet = now - max(last_heard, self._start) >= QUIET
        return quiet or now >= self._start + min(PATIENCE, self._grace / 2)

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
    *,
    rate: float,
    grace: float,
) -> None:
    """Disconnect all clients. Return when none is left or the grace period is over. Times are those of `monotonic`."""
    schedule = DrainSchedule(rate, grace, monotonic())
    while True:
        present, now = list(sessions()), monotonic()
        if schedule.ended(now, len(present)):
            return
        waiting = [one for one in present if not one.draining and schedule.may_leave(now, last_heard(one))]
        for session in waiting[: schedule.due(now, len(waiting))]:
            session.drain()
        await asyncio.sleep(STEP)
        for session in list(sessions()):
            if session.draining:
                session.drain()
