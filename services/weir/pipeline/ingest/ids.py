"""Ids of a Redis stream, and the ranges of ids that a batch reads.

Redis gives each entry an id: the time of its writing in milliseconds, and a number within the millisecond. Ids only
grow. An offset is the id of the last entry that was read, so a batch reads the ids after its start, up to its end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

_LARGEST: Final = 2**64 - 1


class Id(NamedTuple):
    ms: int
    number: int

    def __str__(self) -> str:
        return f"{self.ms}-{self.number}"

    @staticmethod
    def parse(text: str) -> Id:
        ms, _, number = text.partition("-")
        return Id(int(ms), int(number))

    def next(self) -> Id:
        return Id(self.ms, self.number + 1) if self.number < _LARGEST else Id(self.ms + 1, 0)


ZERO: Final = Id(0, 0)
"""The offset before all entries."""


class Range(NamedTuple):
    """The ids after `start`, up to `end`."""

    start: Id
    end: Id


class Extent(NamedTuple):
    """The entries of a stream at present."""

    first: Id
    last: Id
    length: int

    def after(self, start: Id) -> float:
        """How many entries come after `start`, if they are spread evenly over their time."""
        if start >= self.last:
            return 0
        span = self.last.ms - self.first.ms + 1
        return self.length * min(1.0, (self.last.ms - max(start.ms, self.first.ms) + 1) / span)


def next_end(start: Id, stream: Extent | None, limit: int) -> Id:
    """The end of the next batch of about `limit` entries. The result is `start` if there is nothing to read.

    A result before `start` means that the stream was made anew after a loss of data: its ids have begun again.
    """
    if stream is None or stream.last == start:
        return start
    if stream.last < start:
        return stream.last
    waiting = stream.after(start)
    if waiting <= limit:
        return stream.last
    begin = max(start.ms, stream.first.ms)
    end = Id(begin + int((stream.last.ms - begin + 1) * limit / waiting), _LARGEST)
    return min(end, stream.last)


def to_read(start: Id, end: Id) -> Range | None:
    """The range of a batch. A stream that was made anew is read from its beginning."""
    if start == end:
        return None
    return Range(start if start < end else ZERO, end)


def split(whole: Range, first: Id, parts: int) -> list[Range]:
    """Split a range into at most `parts`, of about as many milliseconds each. No entry is before `first`."""
    begin = max(whole.start.ms, first.ms)
    span = whole.end.ms - begin + 1
    cuts = [Id(begin + span * n // parts, 0) for n in range(1, parts)]
    bounds = [whole.start, *(cut for cut in cuts if whole.start < cut < whole.end), whole.end]
    return [Range(a, b) for a, b in pairwise(bounds) if a < b]
