"""TLS handshakes, in turns.

A handshake takes OpenSSL 0.4 to 1.5 ms in one piece. Done as they come, a hundred clients that reconnect together would
stop all others for as long; so one is done in a turn of the loop, and they rest while others are heard of.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from time import monotonic, perf_counter

from weir.transport.pace import rest, rested_at

_ALONE = 1.0  # seconds without a block of a client that has its session


class Handshakes:
    __slots__ = ("_loop", "_rested_at", "_running", "_waiting", "heard_at")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = False
        self._rested_at = 0.0
        self.heard_at = 0.0  # by `monotonic`

    def add(self, step: Callable[[], None]) -> None:
        self._waiting.append(step)
        if not self._running:
            self._running = True
            self._go_on()

    def _go_on(self) -> None:
        alone = monotonic() - self.heard_at >= _ALONE
        pause = 0.0 if alone else rest(self._rested_at, perf_counter())
        if pause:
            self._loop.call_later(pause, self._turn)
        else:
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        began = perf_counter()
        try:
            self._waiting.popleft()()
        finally:  # a mistake with one of them stops nobody else's
            self._rested_at = rested_at(self._rested_at, began, perf_counter())
            if self._waiting:
                self._go_on()
            else:
                self._running = False
