"""The soak's judge: what it lets pass and what it does not."""

from pathlib import Path

import pytest

from tests.chaos.journal import Journal, Writer

FINE = ["T 0 0 0", "O 0 0 0", "T 0 1 0", "O 0 1 0", "S 0 0", "M 0 0 aa 0 0", "A 0 0 aa", "M 0 0 bb 1 0", "A 0 0 bb"]

RUNS = {
    "all is well": (FINE, []),
    "again after a reconnect, for its ACK was not answered": (
        [*FINE[:-1], "S 0 1", "M 0 1 bb 1 0", "A 0 1 bb"],
        [],
    ),
    "an attempt that was not answered may have been stored": (
        [*FINE, "T 0 2 0", "T 0 2 1", "O 0 2 1", "M 0 0 cc 2 1", "A 0 0 cc", "M 0 0 dd 2 0", "A 0 0 dd"],
        [],
    ),
    "an attempt that was not answered may be late": (
        [
            *("T 0 0 0", "T 0 0 1", "O 0 0 1", "T 0 1 0", "O 0 1 0", "S 0 0"),
            *("M 0 0 aa 0 1", "A 0 0 aa", "M 0 0 bb 1 0", "A 0 0 bb", "M 0 0 cc 0 0", "A 0 0 cc"),
        ],
        [],
    ),
    "lost": (FINE[:-2], ["lost: (1, 0)"]),
    "delivered twice": ([*FINE[:-1], "M 0 0 bb 1 0", "A 0 0 bb"], ["delivered twice", "delivered again"]),
    "delivered after its ACK": ([*FINE, "S 0 1", "M 0 1 bb 1 0"], ["delivered after its ACK was answered"]),
    "stored twice": ([*FINE, "M 0 0 cc 1 0", "A 0 0 cc"], ["stored twice"]),
    "out of order": (
        [*FINE[:4], "S 0 0", "M 0 0 bb 1 0", "A 0 0 bb", "M 0 0 aa 0 0", "A 0 0 aa"],
        ["out of order", "out of order"],
    ),
    "an unanswered one before an earlier one": (
        ["T 0 0 0", "O 0 0 0", "T 0 1 0", "S 0 0", "M 0 0 bb 1 0", "A 0 0 bb", "M 0 0 aa 0 0", "A 0 0 aa"],
        ["out of order"],
    ),
    "refused and delivered": (
        [*FINE, "T 0 2 0", "Q 0 2 0", "M 0 0 cc 2 0", "A 0 0 cc"],
        ["refused with QUOTA and delivered"],
    ),
    "ACK refused": ([*FINE[:-1], "X 0 0 bb"], ["confirmed, delivered, and its ACK refused"]),
    "redelivered in the middle": (
        ["T 0 0 0", "O 0 0 0", "T 0 1 0", "O 0 1 0", "S 0 0", "M 0 0 aa 0 0", "S 0 1", "M 0 1 bb 1 0", "M 0 1 aa 0 0"],
        ["delivered again, but not first"],
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_judge(tmp_path: Path, name: str) -> None:
    lines, expected = RUNS[name]
    writer = Writer(tmp_path / "one.journal")
    for line in lines:
        kind, *rest = line.split()
        writer.write(kind, *rest)
    journal = Journal(tmp_path)
    journal.update()
    problems = journal.problems()
    assert len(problems) == len(expected), problems
    for problem, start in zip(problems, expected, strict=True):
        assert start in problem


def test_where_a_sender_goes_on(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "one.journal")
    journal = Journal(tmp_path)
    journal.update()
    assert journal.pairs[0].next_attempt() == (0, 0)
    for line in ("T 0 0", "O 0 0", "T 1 0", "U 1 0", "T 1 1"):
        kind, n, a = line.split()
        writer.write(kind, 0, n, a)
    journal.update()
    assert journal.pairs[0].next_attempt() == (1, 2)
    assert journal.confirmed == 1
