"""Turns between connections.

Public-key operations run in slices, a few at a time for each connection in turn: a block of 135 SUBs is 6 ms of
verification; run as it came, it would stop every other connection for as long. And this knows whether a connection has
the edge to itself, in which case it may have more under way; if it has not, it rests for as long as it has worked, and
half of the edge is the most that it has.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Coroutine, Generator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from weir.transport.pace import rest, rested_at

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.op import Op

_log = logging.getLogger(__name__)

# Seconds. A message crosses the loop five times on its way, and may wait for a slice each time.
_SLICE = 0.0003
_SLICE_ALONE = 0.00075  # fewer turns of the loop for the same work
_ALONE = 1.0  # seconds without a block of another connection
_TURN = 4  # operations of one connection before the next has its turn


class Charged(Coroutine[Any, Any, None]):
    """Work for a connection that is a task of its own: what it takes of the loop counts as the connection's."""

    __slots__ = ("_client", "_work")

    def __init__(self, client: Client, work: Coroutine[Any, Any, None]) -> None:
        self._client = client
        self._work = work

    def send(self, value: Any) -> Any:
        began = perf_counter()
        try:
            return self._work.send(value)
        finally:
            self._client.router.scheduler.worked(self._client, began, perf_counter())

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()


class Scheduler:
    __slots__ = ("_loop", "_ring", "_scheduled", "_shared_until", "last")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._ring: deque[Client] = deque()
        self._scheduled = False
        self.last = 0  # the connection that a block came from last
        self._shared_until = 0.0

    def heard(self, connection: int) -> None:
        """A block came, from another connection than the one before."""
        self.last = connection
        self._shared_until = self._loop.time() + _ALONE

    @property
    def alone(self) -> bool:
        return self._loop.time() >= self._shared_until

    def worked(self, client: Client, began: float, ended: float) -> None:
        """The loop was the connection's, by `perf_counter`."""
        client.rested_at = rested_at(client.rested_at, began, ended)

    def rest(self, client: Client) -> float:
        """Seconds until the connection may have more begun."""
        return 0.0 if self.alone else rest(client.rested_at, perf_counter())

    def add(self, client: Client, op: Op) -> None:
        client.backlog.append(op)
        if not client.in_ring:
            client.in_ring = True
            self._ring.append(client)
            if not self._scheduled:
                self._scheduled = True
                self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        ring = self._ring
        now = perf_counter()
        end = now + (_SLICE_ALONE if self.alone else _SLICE)
        over = False  # another like the last one would not end in time: NEW costs three times what SUB does
        while ring:
            client = ring.popleft()
            began = now
            backlog = client.backlog
            if client.closed:
                backlog.clear()  # nobody waits for it, and a SUB must not displace the client's next connection
            for _ in range(min(_TURN, len(backlog))):
                op = backlog.popleft()
                try:
                    op.step()
                except Exception:
                    _log.exception("a command could not be verified")
                    client.conn.abort()
                before, now = now, perf_counter()
                over = 2 * now - before > end
                if over or not backlog:
                    break
            self.worked(client, began, now)
            if backlog:
                ring.append(client)
            else:
                client.in_ring = False
            if over:
                break
        if ring:
            self._loop.call_soon(self._slice)
        else:
            self._scheduled = False
