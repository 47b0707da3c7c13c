"""Entries of a stream become rows, whatever they hold."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.pipeline.ingest.entries import COLUMNS, mark_row, read_entry
from weir.pipeline.ingest.ids import Id
from weir.pipeline.ingest.sequences import Mark
from weir.telemetry.rollups.record import Rollup, encode

DAY = 86_400_000
NOW = 20_000 * DAY + 5
RECORD = Rollup("main", "smp", "a", 7, NOW - 60_000, 60_000, {"SEND.OK": 2})


def kind(record: Rollup) -> tuple[str, str | None]:
    row = read_entry("s", Id(NOW, 0), {b"r": encode(record)})
    return row["kind"], row.get("reason")


def test_a_record() -> None:
    row = read_entry("s", Id(NOW, 3), {b"r": encode(RECORD)})
    assert (row["kind"], row["stream"], row["stream_id"]) == ("record", "s", f"{NOW}-3")
    assert (row["edge"], row["sequence"], row["start_ms"], row["commands"]) == ("a", 7, NOW - 60_000, {"SEND.OK": 2})
    assert str(row["day"]) == "2024-10-03", "the day of the record's start"


@pytest.mark.parametrize(
    ("start", "duration", "expected"),
    [
        (NOW - 399 * DAY, 1000, "record"),
        (NOW - 401 * DAY, 1000, "unreadable"),
        (NOW + DAY // 2, 1000, "record"),
        (NOW + 2 * DAY, 1000, "unreadable"),
        (2**53 - 1, 1000, "unreadable"),
        (NOW, DAY, "record"),
        (NOW, DAY + 1, "unreadable"),
    ],
)
def test_clocks(start: int, duration: int, expected: str) -> None:
    assert kind(replace(RECORD, start=start, duration=duration))[0] == expected


@given(st.dictionaries(st.sampled_from([b"r", b"x"]), st.binary(max_size=60)))
def test_anything_is_a_row(fields: dict[bytes, bytes]) -> None:
    row = read_entry("s", Id(NOW, 0), fields)
    assert row.keys() <= set(COLUMNS)
    assert row["kind"] == "unreadable"
    assert row["reason"]
    assert row["raw"] == fields.get(b"r", b"")


def test_a_mark() -> None:
    row = mark_row(Mark("s", Id(1, 2), Id(3, 4)))
    assert (row["kind"], row["stream_id"], row["reason"]) == ("mark", "1-2", "3-4")
