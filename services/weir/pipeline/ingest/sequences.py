"""Keeps note of the records of each edge that were read: finds records that come again, and gaps.

An edge numbers its records 1, 2, 3 … A number that was read before is a duplicate. Numbers that are skipped are a hole.
A hole can still be filled, because a record may arrive late. It is reported as a gap

- at once as "trimmed", if Redis removed entries from the stream between the record before the hole and the one after,
  and they had not been read;
- as "missing" when the edge has had time for ten more records.

A reported gap whose records arrive after all is taken back, or becomes smaller. An edge that was running before the
first entry of a stream that ingest ever saw has no gap at its beginning: history begins with that entry.

Time is that of the stream's ids, so the same entries always give the same gaps, whenever they are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weir.pipeline.ingest.ids import Id

TRIMMED: Final = "trimmed"
MISSING: Final = "missing"
_EARLIER: Final = "earlier"
"""Before history: never reported."""
_PATIENCE: Final = 10  # intervals
_SLACK: Final = 2  # intervals
_DAY: Final = 86_400_000


class Entry(NamedTuple):
    """A record and where it was read."""

    stream: str
    id: Id
    router: str
    program: str
    edge: str
    sequence: int
    start: int
    duration: int


class Mark(NamedTuple):
    """A reader's remark: it read the entries after `start`, and then the stream's first entry was `first`."""

    stream: str
    start: Id
    first: Id


class Gap(NamedTuple):
    """A row of bronze/gaps. `start` and `end` are milliseconds."""

    router: str
    program: str
    edge: str
    first_missing: int
    last_missing: int
    start: int
    end: int
    reason: str


@dataclass
class Changes:
    duplicates: list[tuple[str, Id]] = field(default_factory=list)
    added: list[Gap] = field(default_factory=list)
    removed: list[Gap] = field(default_factory=list)


@dataclass(slots=True)
class _Hole:
    first: int
    last: int
    start: int
    end: int
    after: Id
    """The entry before the hole."""
    before: Id
    """The entry after the hole."""
    reason: str = ""
    """Empty while the hole is not reported."""


@dataclass(slots=True)
class _Edge:
    stream: str
    router: str
    program: str
    last: int
    end: int
    id: Id
    duration: int
    holes: list[_Hole] = field(default_factory=list)


@dataclass(slots=True)
class _Stream:
    begin: Id
    """The first entry when the stream was first read."""
    first: Id
    now: int = 0
    trimmed: list[tuple[Id, Id]] = field(default_factory=list)
    """Between these ids, entries may have been removed unread."""


class Sequences:
    def __init__(self) -> None:
        self._edges: dict[str, _Edge] = {}
        self._streams: dict[str, _Stream] = {}

    def advance(self, entries: Iterable[Entry], marks: Iterable[Mark]) -> Changes:
        """Take what a batch has read."""
        changes = Changes()
        for mark in sorted(marks):
            self._mark(mark)
        for entry in sorted(entries, key=lambda each: (each.stream, each.id)):
            stream = self._streams.setdefault(entry.stream, _Stream(entry.id, entry.id))
            stream.now = max(stream.now, entry.id.ms)
            if not self._take(entry, stream, changes):
                changes.duplicates.append((entry.stream, entry.id))
        for name, edge in list(self._edges.items()):
            stream = self._streams[edge.stream]
            self._report(name, edge, stream, changes)
            if edge.id < stream.first and edge.id.ms < stream.now - _DAY:
                del self._edges[name]  # None of its records can be read again.
        return _without_detours(changes)

    def _mark(self, mark: Mark) -> None:
        stream = self._streams.get(mark.stream)
        if stream is None:
            self._streams[mark.stream] = _Stream(mark.first, mark.first)
            return
        stream.first = mark.first
        stream.trimmed = [each for each in stream.trimmed if each[1].ms > stream.now - _DAY]
        if mark.first > mark.start and (mark.start, mark.first) not in stream.trimmed:
            stream.trimmed.append((mark.start, mark.first))

    def _take(self, entry: Entry, stream: _Stream, changes: Changes) -> bool:
        """Whether the record is new."""
        edge = self._edges.get(entry.edge)
        if edge is None:
            edge = self._edges[entry.edge] = self._new_edge(entry, stream)
        elif entry.sequence <= edge.last and not _fill(entry, edge, changes):
            return False
        elif entry.sequence > edge.last + 1:
            edge.holes.append(
                _Hole(edge.last + 1, entry.sequence - 1, edge.end, entry.start, after=edge.id, before=entry.id)
            )
        if entry.sequence > edge.last:
            edge.last, edge.end, edge.duration = entry.sequence, entry.start + entry.duration, entry.duration
        edge.id, edge.stream = max(edge.id, entry.id) if edge.stream == entry.stream else entry.id, entry.stream
        return True

    def _new_edge(self, entry: Entry, stream: _Stream) -> _Edge:
        edge = _Edge(entry.stream, entry.router, entry.program, 0, entry.start, entry.id, entry.duration)
        if entry.sequence > 1:
            before = (entry.sequence - 1) * entry.duration
            born = Id(max(0, entry.id.ms - before - entry.duration), 0)
            hole = _Hole(1, entry.sequence - 1, max(0, entry.start - before), entry.start, after=born, before=entry.id)
            if born.ms <= stream.begin.ms + _SLACK * entry.duration:
                hole.reason = _EARLIER
            edge.holes.append(hole)
        return edge

    def _report(self, name: str, edge: _Edge, stream: _Stream, changes: Changes) -> None:
        for hole in edge.holes:
            if hole.reason:
                continue
            if any(max(a, hole.after) < min(b, hole.before) for a, b in stream.trimmed):
                hole.reason = TRIMMED
            elif stream.now - hole.before.ms >= _PATIENCE * edge.duration:
                hole.reason = MISSING
            else:
                continue
            changes.added.append(_gap(name, edge, hole))

    def to_json(self) -> str:
        """The state as text, which `from_json` reads."""
        streams = {
            name: [str(each.begin), str(each.first), each.now, [[str(a), str(b)] for a, b in each.trimmed]]
            for name, each in self._streams.items()
        }
        edges = {
            name: [
                *(each.stream, each.router, each.program, each.last, each.end, str(each.id), each.duration),
                [[h.first, h.last, h.start, h.end, str(h.after), str(h.before), h.reason] for h in each.holes],
            ]
            for name, each in self._edges.items()
        }
        return json.dumps({"streams": streams, "edges": edges}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Sequences:
        state, content = Sequences(), json.loads(text)
        for name, (begin, first, now, trimmed) in content["streams"].items():
            pairs = [(Id.parse(a), Id.parse(b)) for a, b in trimmed]
            state._streams[name] = _Stream(Id.parse(begin), Id.parse(first), now, pairs)
        for name, (stream, router, program, last, end, entry, duration, holes) in content["edges"].items():
            state._edges[name] = _Edge(
                *(stream, router, program, last, end, Id.parse(entry), duration),
                [
                    _Hole(a, b, from_, to, Id.parse(after), Id.parse(before), why)
                    for a, b, from_, to, after, before, why in holes
                ],
            )
        return state


def _fill(entry: Entry, edge: _Edge, changes: Changes) -> bool:
    """Take a late record out of the hole that it is missing in. False: it is in none, so it was read before."""
    hole = next((hole for hole in edge.holes if hole.first <= entry.sequence <= hole.last), None)
    if hole is None:
        return False
    n, end = entry.sequence, entry.start + entry.duration
    parts = [
        _Hole(hole.first, n - 1, hole.start, entry.start, hole.after, hole.before, hole.reason),
        _Hole(n + 1, hole.last, end, hole.end, hole.after, hole.before, hole.reason),
    ]
    left = [part for part in parts if part.first <= part.last]
    index = edge.holes.index(hole)
    edge.holes[index : index + 1] = left
    if hole.reason in (TRIMMED, MISSING):
        changes.removed.append(_gap(entry.edge, edge, hole))
        changes.added += [_gap(entry.edge, edge, part) for part in left]
    return True


def _gap(name: str, edge: _Edge, hole: _Hole) -> Gap:
    end = max(hole.start, hole.end)  # clocks may be set back
    return Gap(edge.router, edge.program, name, hole.first, hole.last, hole.start, end, hole.reason)


def _without_detours(changes: Changes) -> Changes:
    """Leave out gaps that were added and removed again."""
    passing = set(changes.added) & set(changes.removed)
    changes.added = [gap for gap in changes.added if gap not in passing]
    changes.removed = [gap for gap in changes.removed if gap not in passing]
    return changes
