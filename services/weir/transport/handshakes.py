"""TLS handshakes, in turns.

OpenSSL needs 0.4 to 1.5 ms for one step of a handshake and cannot be interrupted. If a hundred clients reconnect at the
same time, running every step as it arrives would stop all other clients for as long. So one turn of the loop runs one
step, and handshakes are throttled while clients with sessions are active.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from time import monotonic, perf_counter

from weir.transport.throttle import free_at, pause

_ALONE = 1.0  # seconds without a block of a client with a session


class Handshakes:
    __slots__ = ("_free_at", "_loop", "_running", "_waiting", "heard_at")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = False
        self._free_at = 0.0
        self.heard_at = 0.0  # time of the last block of a client with a session, by `monotonic`

    def add(self, step: Callable[[], None]) -> None:
        self._waiting.append(step)
        if not self._running:
            self._running = True
            self._schedule()

    def _schedule(self) -> None:
        alone = monotonic() - self.heard_at >= _ALONE
        seconds = 0.0 if alone else pause(self._free_at, perf_counter())
        if seconds:
            self._loop.call_later(seconds, self._turn)
        else:
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        began = perf_counter()
        try:
            self._waiting.popleft()()
        finally:  # a failed step must not stop the other handshakes
            self._free_at = free_at(self._free_at, began, perf_counter())
            if self._waiting:
                self._schedule()
            else:
                self._running = False
