"""The section about growth: what grows, until when, and what that needs."""

from typing import Any

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import growth


def test_what_is_found(part: Make) -> None:
    section = growth.section(part())
    assert section is not None
    memory, stored, needs = section.figures
    assert memory.finding.startswith("Redis uses 3.") and " of 8 GiB, " in memory.finding
    assert memory.finding.endswith(" MiB more each week")
    assert "Redis is full at the earliest on " in memory.summary and " 2027" in memory.summary
    assert stored.finding.startswith("259k queues, 1") and stored.finding.endswith("k more each week")
    assert "One takes 14." in stored.summary
    assert needs.finding.startswith("In 90 days: ") and needs.finding.endswith(" GiB for Redis")
    assert [row[0] for row in needs.table.rows] == ["now", "in 30 days", "in 90 days"]
    assert "at most 60 % of a core" in needs.summary and "25 % of it stays free" in needs.summary


def test_measured_and_expected_days_are_in_the_table(part: Make) -> None:
    section = growth.section(part())
    assert section is not None
    table = section.figures[0].table
    assert len(table.rows) == 28 + 30
    assert table.rows[27][1] and not table.rows[27][2]
    assert table.rows[28][2] and " to " in table.rows[28][3] and not table.rows[28][1]


def test_a_long_history_is_continued_for_90_days() -> None:
    section = growth.section(part_of(Given(70).rows()))
    assert section is not None
    assert len(section.figures[0].table.rows) == 70 + 90


def test_a_near_limit_is_drawn_and_a_far_one_is_not() -> None:
    def marks(limit: int | None) -> str:
        rows = Given(20).rows()
        for row in rows["gold/capacity"]:
            row["redis_max_bytes"] = limit
        section = growth.section(part_of(rows))
        assert section is not None
        spec: Any = section.figures[0].spec
        return str(spec)

    assert "limit: 8 GiB" in marks(8 * 2**30)
    assert "limit: " not in marks(800 * 2**30)
    assert "limit: " not in marks(None)


def test_short_histories_and_missing_limits_are_said() -> None:
    rows = Given(3).rows()
    section = growth.section(part_of(rows))
    assert section is not None
    assert section.figures[0].summary == "A forecast needs 7 days of history."
    assert section.figures[2].finding == "A forecast needs 7 days of history"
    for row in rows["gold/capacity"]:
        row |= {"redis_max_bytes": None, "queues": None}
    section = growth.section(part_of(rows))
    assert section is not None
    assert [figure.name for figure in section.figures] == ["memory", "needs"]
    assert "has no limit" in section.figures[0].summary


def test_a_steady_router() -> None:
    rows = Given(20).rows()
    for row in rows["gold/capacity"]:
        row["redis_used_bytes"] = 3 * 2**30
    section = growth.section(part_of(rows))
    assert section is not None
    assert section.figures[0].finding == "Redis uses 3 GiB of 8 GiB, about constant"
    assert section.figures[0].summary == "At this rate Redis is not full within three years."


def test_nothing_is_known_of_redis() -> None:
    rows = Given(3).rows()
    rows["gold/capacity"] = []
    assert growth.section(part_of(rows)) is None
