"""Public-key operations in slices of under a millisecond, a few at a time for each connection in turn.

A block of 135 SUBs is 6 ms of verification; run as it came, it would stop every other connection for as long.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.op import Op

_log = logging.getLogger(__name__)

_SLICE = 0.00075
_TURN = 4  # operations of one connection before the next has its turn


class Scheduler:
    __slots__ = ("_loop", "_ring", "_scheduled")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._ring: deque[Client] = deque()
        self._scheduled = False

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
        end = perf_counter() + _SLICE
        while ring:
            client = ring.popleft()
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
                if not backlog or perf_counter() > end:
                    break
            if backlog:
                ring.append(client)
            else:
                client.in_ring = False
            if perf_counter() > end:
                break
        if ring:
            self._loop.call_soon(self._slice)
        else:
            self._scheduled = False
