"""The statistics file: aligned to the clock, with the reference's columns."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weir.notifier.config import Statistics
from weir.notifier.statistics import StatisticsFile, line, next_line
from weir.surface.fleet import FleetNumbers

DAY = 86400


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("now", "start", "interval", "due"),
    [
        ("2026-11-19 03:00:00", 0, DAY, "2026-11-20 00:00:00"),
        ("2026-11-19 03:00:00", 4 * 3600, DAY, "2026-11-19 04:00:00"),
        ("2026-11-19 04:00:00", 4 * 3600, DAY, "2026-11-20 04:00:00"),
        ("2026-11-19 03:10:00", 0, 3600, "2026-11-19 04:00:00"),
        ("2026-11-19 03:10:00", 1800, 3600, "2026-11-19 03:30:00"),
    ],
)
def test_behaviour_21_lines_are_aligned_to_the_clock(now: str, start: float, interval: float, due: str) -> None:
    assert next_line(at(now), start, interval) == at(due)


def test_the_22_columns_of_the_reference() -> None:
    names = ["tknCreated", "tknVerified", "tknDeleted", "subCreated", "subDeleted", "ntfReceived", "ntfDelivered"]
    active = [f"{what}_{period}" for what in ("tokens", "subscriptions") for period in ("day", "week", "month")]
    names += [*active, "tknReplaced", "ntfFailed", "ntfCronDelivered", "ntfCronFailed", "ntfVrfQueued"]
    names += ["ntfVrfDelivered", "ntfVrfFailed", "ntfVrfInvalidTkn"]
    numbers = {name: n for n, name in enumerate(names, 1)}
    written = line("2026-11-19", numbers, {}, numbers)
    assert written == "2026-11-19," + ",".join(map(str, range(1, 22)))
    assert len(written.split(",")) == 22


async def test_a_line_has_the_counts_since_the_line_before(tmp_path: Path) -> None:
    counted = {"tknCreated": 5, "ntfReceived": 7}

    async def numbers() -> FleetNumbers:
        return FleetNumbers(dict(counted), {"tokens_day": 3}, {}, {})

    path = tmp_path / "stats.csv"
    (tmp_path / "stats.csv.totals").write_text(json.dumps({"tknCreated": 4}))
    file = StatisticsFile(path, Statistics(path), numbers)
    await file.write(at("2026-11-20 00:00:00"))
    counted["tknCreated"] = 9
    await file.write(at("2026-11-21 00:00:00"))
    first, second = (row.split(",") for row in path.read_text().splitlines())
    assert (first[0], first[1], first[6], first[8]) == ("2026-11-19", "1", "7", "3")
    assert (second[0], second[1], second[6], second[8]) == ("2026-11-20", "4", "0", "3")
