"""The streams of rollups as a source of Spark's Structured Streaming.

An offset says for each stream which entry was read last. The streams of an offset stay in it when they are read no
longer, so that they are continued when they come back. Spark writes the offsets of a batch down before it reads the
batch, and reads the same range again if it was killed.

`latestOffset` and `partitions` run in one process beside the driver. `read` runs in the workers: it reads and decodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from weir.pipeline.ingest.entries import SCHEMA, mark_row, read_entry
from weir.pipeline.ingest.ids import ZERO, Extent, Id, Range, next_end, split, to_read
from weir.pipeline.ingest.registry import Registry, from_text, open_stream
from weir.pipeline.ingest.rows import to_arrow
from weir.pipeline.ingest.sequences import Mark

NAME: Final = "weir-rollups"
REGISTRIES: Final = "registries_urls"
"""Spark hides the values of options whose names contain `url`."""
MAX_RECORDS: Final = "max_records"
PARALLEL: Final = "parallel"
_PART: Final = 2_000
"""Entries that are worth a task of their own."""


class RollupSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> RollupReader:
        options = self.options
        return RollupReader(
            from_text(options[REGISTRIES]),
            int(options[MAX_RECORDS]),
            int(options[PARALLEL]),
            to_arrow_schema(schema, timezone="UTC"),
        )


class Part(InputPartition):
    def __init__(self, registry: Registry, part: Range) -> None:
        self.registry = registry
        self.part = part


class RollupReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, registries: Sequence[Registry], max_records: int, parallel: int, schema: Any) -> None:
        self._registries = registries
        self._max_records = max_records
        self._parallel = parallel
        self._schema = schema
        self._target: dict[str, Id] | None = None

    def initialOffset(self) -> dict[str, str]:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_records)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {}
        for registry in self._registries:
            extent = _extent(registry)
            if extent is not None:
                self._target[registry.name] = extent.last

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        most = 2**62 if isinstance(limit, ReadAllAvailable) else self._max_records
        end = dict(start)
        for registry in self._registries:
            name = registry.name
            before = _offset(start, name)
            extent = self._until_target(name, _extent(registry))
            after = next_end(before, extent, most)
            if after != before:
                end[name] = str(after)
        return end

    def _until_target(self, name: str, extent: Extent | None) -> Extent | None:
        """The extent of the stream when a run for what is available began."""
        if self._target is None or extent is None:
            return extent
        target = self._target.get(name)
        if target is None or target < extent.first:
            return None
        return extent._replace(last=min(target, extent.last))

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[Part]:
        parts = []
        for registry in self._registries:
            whole = to_read(_offset(start, registry.name), _offset(end, registry.name))
            extent = None if whole is None else _extent(registry)
            if whole is None or extent is None:
                continue
            count = max(1, min(self._parallel, int(extent.after(whole.start) // _PART)))
            parts += [Part(registry, part) for part in split(whole, extent.first, count)]
        return parts

    def read(self, partition: Part) -> Iterator[Any]:
        registry, part = partition.registry, partition.part
        name = registry.name
        with open_stream(registry) as stream:
            for page in stream.pages(part):
                yield to_arrow((read_entry(name, entry, fields) for entry, fields in page), self._schema)
            extent = stream.extent()
        first = extent.first if extent is not None else part.end.next()
        yield to_arrow([mark_row(Mark(name, part.start, first))], self._schema)


def _offset(offsets: dict[str, str], name: str) -> Id:
    text = offsets.get(name)
    return ZERO if text is None else Id.parse(text)


def _extent(registry: Registry) -> Extent | None:
    with open_stream(registry) as stream:
        return stream.extent()
