"""The line about progress, on a terminal and elsewhere."""

import io
import os
import pty

import pytest

from weir.pipeline.ingest.progress import Counts, Progress, line


@pytest.mark.parametrize(
    ("counts", "lag", "due", "expected"),
    [
        (Counts(batches=0), None, None, "0 records in 0 batches"),
        (Counts(1), 0.2, None, "1 record in 1 batch, lag 0s"),
        (Counts(48120, batches=12), 61.0, 59.7, "48,120 records in 12 batches, lag 61s, next in 60s"),
        (Counts(5, 2, 1, 3, 4), None, None, "5 records in 1 batch, 2 repeated, 4 missing, 1 unreadable, 3 newer"),
        (Counts(spans=1500), None, None, "0 records and 1,500 spans in 1 batch"),
    ],
)
def test_the_line(counts: Counts, lag: float | None, due: float | None, expected: str) -> None:
    assert line(counts, lag, due) == expected


def test_a_line_for_each_batch_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    progress = Progress(out)
    progress.wait(5)
    progress.add(Counts(3), 1.0)
    progress.wait(5)
    progress.add(Counts(4))
    progress.end()
    assert out.getvalue() == "3 records in 1 batch, lag 1s\n7 records in 2 batches, lag 1s\n"


def test_a_run_that_finds_nothing_says_so() -> None:
    out = io.StringIO()
    Progress(out).end()
    assert out.getvalue() == "0 records in 0 batches\n"


def test_one_line_that_changes_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w") as out:
        progress = Progress(out)
        progress.add(Counts(3))
        progress.wait(5)
        progress.wait(4)
        progress.say("Redis is away")
        progress.end()
        seen = ""
        while not seen.endswith("1 batch\r\n"):
            seen += os.read(ours, 10_000).decode()
    os.close(ours)
    shown = "\r\x1b[K3 records in 1 batch, next in "
    assert seen == f"{shown}5s{shown}4s\r\x1b[KRedis is away\r\n3 records in 1 batch\r\n"
