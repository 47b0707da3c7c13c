"""Turns between connections: who may use the event loop, and for how long.

Work that costs a public-key operation does not run where it is found. A connection adds the work to its share:

    Share of connection 1   [v v v v v v]  ─┐
    Share of connection 2   [v]             ├─ Turns._slice: at most 4 of one share, then the next share,
    Share of connection 3   [v v v]        ─┘  until the slice's time is over; then the loop serves sockets

A block of 135 SUBs needs 6 ms of verification. Run at once, it would stop every other connection for 6 ms.

`Turns` also knows whether one connection has the edge to itself (`alone`). A connection that is alone may have more
work in progress. If it is not alone, it is throttled: after using the loop for t seconds it waits for t seconds, so one
busy connection takes at most half of an edge.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from weir.telemetry.errors import log_mistake
from weir.transport.throttle import free_at, pause

_log = logging.getLogger(__name__)

# Seconds. A message crosses the loop five times on its way, and may wait for a slice each time.
_SLICE = 0.0003
_SLICE_ALONE = 0.00075  # a longer slice means fewer turns of the loop for the same work
_ALONE = 1.0  # seconds without a block of another connection
_TURN = 4  # steps of one share before the next share has its turn


class Work(Protocol):
    """A piece of work that runs in its turn."""

    def step(self) -> None: ...


W = TypeVar("W", bound=Work)


class Share(Generic[W]):
    """One connection's part of the loop: the work that waits for its turn, and the time the connection has used."""

    __slots__ = ("_closed", "_failed", "_queued", "_turns", "throttled_until", "waiting")

    def __init__(self, turns: Turns, failed: Callable[[], None]) -> None:
        self._turns = turns
        self._failed = failed
        self._queued = False  # in the turns' ring
        self._closed = False
        self.waiting: deque[W] = deque()
        self.throttled_until = 0.0  # by `perf_counter`

    def add(self, work: W) -> None:
        """Run `work.step()` when it is this share's turn. The steps of one share run in the order they were added."""
        self.waiting.append(work)
        if not self._queued:
            self._queued = True
            self._turns.enqueue(self)

    def charge(self, began: float, ended: float) -> None:
        """Note that the loop worked for this connection between two readings of `perf_counter`."""
        self.throttled_until = free_at(self.throttled_until, began, ended)

    def throttle(self) -> float:
        """Return the seconds until the connection may begin more work. A connection that is alone never waits."""
        return 0.0 if self._turns.alone else pause(self.throttled_until, perf_counter())

    def close(self) -> None:
        """Drop the work that waits: nobody reads the answers, and a SUB must not displace the client's next session."""
        self._closed = True

    def run(self, now: float, end: float) -> tuple[float, bool]:
        """Run a few steps, beginning at `now`. Return the time after them, and whether another step would not fit."""
        waiting = self.waiting
        began = now
        over = False
        if self._closed:
            waiting.clear()
        for _ in range(min(_TURN, len(waiting))):
            work = waiting.popleft()
            try:
                work.step()
            except Exception as error:
                log_mistake(_log, "a step failed; the connection is closed", error)
                self._failed()
            before, now = now, perf_counter()
            over = 2 * now - before > end  # assume that the next step takes as long as this one
            if over or not waiting:
                break
        self.charge(began, now)
        self._queued = bool(waiting)
        return now, over


class Turns:
    """The turns of all connections of one event loop."""

    __slots__ = ("_ring", "_scheduled", "_shared_until", "last", "loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self._ring: deque[Share[Any]] = deque()
        self._scheduled = False
        self._shared_until = 0.0
        self.last: object = None  # the connection whose block came last

    def heard(self, connection: object) -> None:
        """Note that a block came from another connection than the block before."""
        self.last = connection
        self._shared_until = self.loop.time() + _ALONE

    @property
    def alone(self) -> bool:
        """Whether blocks of only one connection have come lately."""
        return self.loop.time() >= self._shared_until

    def enqueue(self, share: Share[Any]) -> None:
        """Put a share that has work into the ring."""
        self._ring.append(share)
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._slice)

    def _slice(self) -> None:
        ring = self._ring
        now = perf_counter()
        end = now + (_SLICE_ALONE if self.alone else _SLICE)
        over = False
        while ring and not over:
            share = ring.popleft()
            now, over = share.run(now, end)
            if share.waiting:
                ring.append(share)
        if ring:
            self.loop.call_soon(self._slice)
        else:
            self._scheduled = False


class Charged(Coroutine[Any, Any, None]):
    """A coroutine whose use of the loop is charged to a share. Time in which the coroutine waits costs nothing."""

    __slots__ = ("_share", "_work")

    def __init__(self, share: Share[Any], work: Coroutine[Any, Any, None]) -> None:
        self._share = share
        self._work = work

    def send(self, value: Any) -> Any:
        began = perf_counter()
        try:
            return self._work.send(value)
        finally:
            self._share.charge(began, perf_counter())

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()
