"""How far ingest is, on one line: a line that changes on a terminal, and a line for each batch elsewhere."""

from __future__ import annotations

import sys
import threading
from dataclasses import astuple, dataclass
from typing import Final, TextIO

_CLEAR: Final = "\r\x1b[K"


@dataclass(frozen=True)
class Counts:
    """The numbers that batches brought."""

    records: int = 0
    duplicates: int = 0
    unreadable: int = 0
    newer: int = 0
    missing: int = 0
    """Records that became gaps, less those that came after all."""
    spans: int = 0
    batches: int = 1

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def line(total: Counts, lag: float | None = None, due: float | None = None) -> str:
    """The line. `lag` and `due` are seconds: from the last entry read to the stream's last; until the next batch."""
    read = _count(total.records, "record") + (f" and {_count(total.spans, 'span')}" if total.spans else "")
    parts = [f"{read} in {_count(total.batches, 'batch', 'batches')}"]
    remarkable = {
        "repeated": total.duplicates,
        "missing": total.missing,
        "unreadable": total.unreadable,
        "newer": total.newer,
    }
    parts += [f"{number:,} {name}" for name, number in remarkable.items() if number]
    if lag is not None:
        parts.append(f"lag {lag:.0f}s")
    if due is not None:
        parts.append(f"next in {due:.0f}s")
    return ", ".join(parts)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


class Progress:
    """Several threads tell it what happens."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._total = Counts(batches=0)
        self._lag: float | None = None
        self._shown = False

    def add(self, counts: Counts, lag: float | None = None) -> None:
        """A batch is done."""
        with self._lock:
            self._total += counts
            self._lag = self._lag if lag is None else lag
        if not self._out.isatty():
            self.say(line(self._total, self._lag, None))

    def wait(self, due: float | None) -> None:
        """Nothing new. `due` are the seconds until the next batch."""
        if self._out.isatty():
            self._write(_CLEAR + line(self._total, self._lag, due), shown=True)

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._write(f"{_CLEAR if self._shown else ''}{text}\n", shown=False)

    def end(self) -> None:
        """The last line."""
        if self._out.isatty() or not self._total.batches:
            self.say(line(self._total, self._lag, None))

    def _write(self, text: str, *, shown: bool) -> None:
        with self._lock:
            self._out.write(text)
            self._out.flush()
            self._shown = shown
