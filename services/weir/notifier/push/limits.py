"""Limits of each push server: the pause that the server asked for (429, Retry-After), and a circuit breaker.

A `Gate` is one server's state. Time is an argument, so that a table can test every step.

    closed      pushes flow. FAILURES in a row open the gate
    open        no push, for a pause that doubles from FIRST_PAUSE to LONGEST_PAUSE
    half open   one push at a time, as a probe. Its success closes the gate, its failure opens the gate again

A server that asks to wait gets what it asks for, up to LONGEST_WAIT: its gate is open for that time. Afterwards the
gate is half open, so that not all waiting pushes arrive at once.
"""

from __future__ import annotations

import email.utils
from collections import OrderedDict
from enum import Enum
from typing import Final

FAILURES: Final = 10
FIRST_PAUSE: Final = 2.0
LONGEST_PAUSE: Final = 120.0
LONGEST_WAIT: Final = 3600.0
PROBE_WAIT: Final = 1.0  # for those behind a probe
PROBE_LIMIT: Final = 30.0  # a probe without a result is over


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Gate:
    __slots__ = ("_failures", "_opened", "_probing", "_until")

    def __init__(self) -> None:
        self._failures = 0  # in a row, while closed
        self._opened = 0  # times in a row
        self._until: float | None = None  # end of the pause; None: closed
        self._probing: float | None = None  # since when a probe is under way

    def state(self, now: float) -> State:
        if self._until is None:
            return State.CLOSED
        return State.OPEN if now < self._until else State.HALF_OPEN

    def wait(self, now: float) -> float:
        """Seconds until a push makes sense; 0: now."""
        if self._until is None:
            return 0.0
        if now < self._until:
            return self._until - now
        return PROBE_WAIT if self._has_probe(now) else 0.0

    def admit(self, now: float) -> bool:
        """Whether a push may be sent; its result must be reported."""
        if self.wait(now) > 0:
            return False
        if self._until is not None:
            self._probing = now
        return True

    def succeeded(self, now: float) -> None:
        """The server answered, whatever it said about this push. A late answer does not end a pause."""
        if self._until is None or now >= self._until:
            self._failures = self._opened = 0
            self._until = self._probing = None

    def failed(self, now: float) -> None:
        """No connection, no answer, or an error of the server's own."""
        if self._until is not None:
            if now >= self._until:  # an earlier result is of a push from before the pause
                self._open(now)
            return
        self._failures += 1
        if self._failures >= FAILURES:
            self._open(now)

    def limited(self, now: float, after: float | None) -> float:
        """The server asked to wait. Return for how long, as the gate understands it."""
        if after is None:
            self._open(now)
            assert self._until is not None
            return self._until - now
        pause = min(after, LONGEST_WAIT)
        self._until = max(self._until or 0.0, now + pause)
        self._probing = None
        return pause

    def _open(self, now: float) -> None:
        self._until = now + min(FIRST_PAUSE * 2.0 ** min(self._opened, 16), LONGEST_PAUSE)
        self._opened += 1
        self._failures = 0
        self._probing = None

    def _has_probe(self, now: float) -> bool:
        return self._probing is not None and now - self._probing < PROBE_LIMIT


class Gates:
    """The gates of many servers. Those without a failure are not kept; of too many others the oldest are forgotten."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._gates: OrderedDict[str, Gate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._gates)

    def wait(self, server: str, now: float) -> float:
        gate = self._gates.get(server)
        return 0.0 if gate is None else gate.wait(now)

    def admit(self, server: str, now: float) -> bool:
        gate = self._gates.get(server)
        return gate is None or gate.admit(now)

    def succeeded(self, server: str, now: float) -> None:
        gate = self._gates.get(server)
        if gate is not None:
            gate.succeeded(now)
            if gate.state(now) is State.CLOSED:
                del self._gates[server]

    def failed(self, server: str, now: float) -> None:
        self._kept(server).failed(now)

    def limited(self, server: str, now: float, after: float | None) -> float:
        return self._kept(server).limited(now, after)

    def numbers(self, now: float) -> dict[str, int]:
        """Gauges: how many servers' gates are open and half open."""
        states = [gate.state(now) for gate in self._gates.values()]
        return {"breaker_open": states.count(State.OPEN), "breaker_half_open": states.count(State.HALF_OPEN)}

    def _kept(self, server: str) -> Gate:
        gate = self._gates.get(server)
        if gate is None:
            if len(self._gates) >= self._most:
                self._gates.popitem(last=False)
            gate = self._gates[server] = Gate()
        self._gates.move_to_end(server)
        return gate


def retry_after(value: bytes | None, now: float) -> float | None:
    """Seconds of a Retry-After header: a number or a date (RFC 9110, 10.2.3). `now` is a Unix time."""
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None
