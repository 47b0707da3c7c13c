"""Entries of a stream as rows, before they are sorted into tables.

A row is a record, an entry that cannot be read, a record of a newer schema, or a mark: the remark of a reader about
where the stream began when its range had been read (`sequences.Mark`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from weir.pipeline.bronze import ROLLUPS
from weir.pipeline.ingest.ids import Id
from weir.pipeline.ingest.sequences import Mark
from weir.runtime.state.rollups import FIELD
from weir.telemetry.rollups.fields import VERSION
from weir.telemetry.rollups.record import Newer, Rollup, Unreadable, decode

RECORD: Final = "record"
UNREADABLE: Final = "unreadable"
NEWER: Final = "newer"
MARK: Final = "mark"

_DAY: Final = 86_400_000
_EARLIEST: Final = 400 * _DAY
"""A record is at most this much older than its entry. Tables keep nothing for longer."""
_LATEST: Final = _DAY
"""A clock that is ahead by more is wrong, and would make days of the future."""
_LONGEST: Final = _DAY

_OWN: Final = ("kind", "reason", "raw")
_COPIED: Final = tuple(column for column in ROLLUPS.columns if column.name not in ("start", "ingested_at"))
COLUMNS: Final = (*_OWN, *(column.name for column in _COPIED), "start_ms")
SCHEMA: Final = ", ".join(
    ["kind string", "reason string", "raw binary", *(f"{c.name} {c.type}" for c in _COPIED), "start_ms bigint"]
)
"""In Spark's words."""

Row = dict[str, Any]


def read_entry(stream: str, entry: Id, fields: Mapping[bytes, bytes]) -> Row:
    raw = fields.get(FIELD)
    if raw is None:
        return _row(stream, entry, UNREADABLE, reason="the entry has no field r", raw=b"")
    try:
        return record_row(stream, entry, raw)
    except Newer as newer:
        return _row(stream, entry, NEWER, version=newer.version, raw=raw)
    except Unreadable as error:
        return _row(stream, entry, UNREADABLE, reason=str(error), raw=raw)


def record_row(stream: str, entry: Id, raw: bytes) -> Row:
    """Raises Unreadable or Newer."""
    record = decode(raw)
    if not -_EARLIEST <= record.start - entry.ms <= _LATEST:
        raise Unreadable("its time is far from that of its entry: a wrong clock")
    if record.duration > _LONGEST:
        raise Unreadable("its interval is longer than a day")
    return _row(
        stream,
        entry,
        RECORD,
        router=record.router,
        program=record.program,
        edge=record.edge,
        sequence=record.sequence,
        start_ms=record.start,
        duration_ms=record.duration,
        version=VERSION,
        commands=record.commands,
        events=record.events,
        gauges=record.gauges,
        histograms=record.histograms,
        services=_services(record),
        day=_day(record.start),
    )


def _services(record: Rollup) -> list[Row]:
    return [
        {
            "label": service.label,
            "role": service.role,
            "sessions": service.sessions,
            "queues": service.queues,
            "drift": service.drift,
            "delivered": service.delivered,
            "alls": service.alls,
        }
        for service in record.services
    ]


def mark_row(mark: Mark) -> Row:
    return _row(mark.stream, mark.start, MARK, reason=str(mark.first))


def _row(stream: str, entry: Id, kind: str, **values: Any) -> Row:
    return {"stream": stream, "stream_id": str(entry), "kind": kind, "day": _day(entry.ms)} | values


def _day(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000, UTC).date()
