"""The round trip of Redis: the time from a write to the answer of its last command, measured ten times a second.

A mux asks for a measurement at every tick, and the next write is measured. That costs nothing per command, and a busy
second counts no more than a quiet one.
"""

from collections.abc import Callable, Iterable
from time import perf_counter

from weir.redis.operations import Op


class RoundTrip:
    __slots__ = ("_began", "_on_measured", "due", "op")

    def __init__(self, on_measured: Callable[[float], None]) -> None:
        """`on_measured` gets seconds."""
        self._on_measured = on_measured
        self._began = 0.0
        self.due = False
        self.op: Op | None = None  # the operation that is waited for

    def ask(self) -> None:
        """Measure the next write, unless a measurement is under way."""
        self.due = self.op is None

    def begin(self, op: Op) -> None:
        """A write leaves; `op` is its last operation."""
        self.due, self.op, self._began = False, op, perf_counter()

    def check(self, pending: Iterable[Op]) -> None:
        """Answers have come, and `pending` operations have none yet."""
        if not any(op is self.op for op in pending):
            self.op = None
            self._on_measured(perf_counter() - self._began)

    def drop(self) -> None:
        """The connection is another one."""
        self.op = None
