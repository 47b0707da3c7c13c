"""The collector's files as a source of Spark's Structured Streaming.

An offset says how many bytes of each file were read. Files that are gone are left out of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from weir.pipeline.bronze import SPANS
from weir.pipeline.ingest.files import File, cut, find, lines
from weir.pipeline.ingest.otlp import UnreadableLine, read_line
from weir.pipeline.ingest.rows import to_arrow

NAME: Final = "weir-spans"
PATTERNS: Final = "patterns"
MAX_BYTES: Final = "max_bytes"
SCHEMA: Final = ", ".join(
    ["reason string, raw binary, stream string, stream_id string, start_us bigint"]
    + [f"{column.name} {column.type}" for column in SPANS.columns if column.name != "start"]
)
_ROWS: Final = 2_000
_GONE: Final = "gone"


class SpanSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> SpanReader:
        patterns = json.loads(self.options[PATTERNS])
        return SpanReader(patterns, int(self.options[MAX_BYTES]), to_arrow_schema(schema, timezone="UTC"))


class Part(InputPartition):
    def __init__(self, file: File, start: int) -> None:
        self.file = file
        self.start = start


class SpanReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, patterns: Sequence[str], max_bytes: int, schema: Any) -> None:
        self._patterns = patterns
        self._max_bytes = max_bytes
        self._schema = schema
        self._target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {file.identity: file.end for file in find(self._patterns)}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        left = 2**62 if isinstance(limit, ReadAllAvailable) else self._max_bytes
        end = {}
        for file in find(self._patterns):
            before = start.get(file.identity, 0)
            if self._target is not None:
                file = file._replace(end=min(file.end, self._target.get(file.identity, 0)))
            after = cut(file, before, left) if file.end > before and left > 0 else before
            left -= after - before
            if after:
                end[file.identity] = after
        return end if any(start.get(name) != position for name, position in end.items()) else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Part]:
        there = {file.identity: file.path for file in find(self._patterns)}
        return [
            Part(File(there.get(name, Path(_GONE)), name, position), start.get(name, 0))
            for name, position in end.items()
            if start.get(name, 0) < position
        ]

    def read(self, partition: Part) -> Iterator[Any]:
        file, rows = partition.file, list[dict[str, Any]]()
        try:
            for position, line in lines(file, partition.start, self._patterns):
                try:
                    rows += read_line(line)
                except UnreadableLine as error:
                    rows.append(_unreadable(file, position, str(error)))
                if len(rows) >= _ROWS:
                    yield to_arrow(rows, self._schema)
                    rows = []
        except FileNotFoundError:
            rows.append(_unreadable(file, partition.start, "the file was removed before it was read"))
        yield to_arrow(rows, self._schema)


def _unreadable(file: File, position: int, reason: str) -> dict[str, Any]:
    place = {"stream": file.path.name, "stream_id": f"{file.identity}:{position}"}
    return place | {"reason": reason, "raw": b"", "day": datetime.now(UTC).date()}
