"""Streams of records, and what the bronze tables have."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.pipeline.conftest import SPARK
from weir.pipeline.directory import Directory
from weir.pipeline.ingest.progress import Counts, Progress
from weir.pipeline.ingest.registry import Registry
from weir.pipeline.ingest.run import Ingest, IngestOptions
from weir.runtime.state.rollups import FIELD
from weir.telemetry.rollups.record import Rollup, ServiceRollup, encode

SECOND = 1000
NOW = int(time.time() * 1000)


def record(edge: str, sequence: int, start: int = NOW) -> Rollup:
    return Rollup(
        "main",
        "smp",
        edge,
        sequence,
        start + sequence * SECOND,
        SECOND,
        {"SEND.OK": sequence},
        {"msgSent": sequence},
        {"connections": 3},
        {"send_msg": {1: 2, 5: sequence}},
        (ServiceRollup("shop", "messages", 1, 60, {"ok": 1}, sequence, {7: 8}),),
    )


def publish(client: Any, registry: Registry, *records: Rollup | bytes, at: int | None = None) -> None:
    """Append to the stream. With `at`, ids count up from this millisecond, one for each entry."""
    for n, each in enumerate(records):
        data = each if isinstance(each, bytes) else encode(each)
        client.xadd(registry.key, {FIELD: data}, id="*" if at is None else f"{at + n}-0")


def options(tables: Path, *registries: Registry, **changes: Any) -> IngestOptions:
    return replace(IngestOptions(Directory(str(tables)), registries, spark=SPARK), **changes)


class Quiet(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.batches: list[Counts] = []

    def add(self, counts: Counts, lag: float | None = None) -> None:
        self.batches.append(counts)

    def wait(self, due: float | None) -> None:
        pass

    def say(self, text: str) -> None:
        self.lines.append(text)

    @property
    def total(self) -> Counts:
        return sum(self.batches, Counts(batches=0))


def run(spark: Any, given: IngestOptions) -> Quiet:
    """One run in the tests' own session."""
    progress = Quiet()
    given.directory.claim()
    with given.directory.locked("ingest"):
        assert Ingest(given, spark, progress).run()
    return progress


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    found: list[dict[str, Any]] = DeltaTable(str(tables / name)).to_pyarrow_table().to_pylist()
    return found


def sequences(tables: Path) -> Counter[tuple[str, int]]:
    """How often each record is in bronze/rollups."""
    return Counter((row["edge"], row["sequence"]) for row in rows(tables, "bronze/rollups"))


def each_once(*records: tuple[str, int]) -> Counter[tuple[str, int]]:
    return Counter(dict.fromkeys(records, 1))


def gaps(tables: Path) -> set[tuple[str, int, int, str]]:
    return {(r["edge"], r["first_missing"], r["last_missing"], r["reason"]) for r in rows(tables, "bronze/gaps")}
