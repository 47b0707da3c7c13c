"""Times and rows of gold; the report names only tables and columns that are declared."""

from datetime import UTC, date, datetime

from tests.pipeline.report.given import Given
from weir.pipeline.report import gold
from weir.pipeline.tables.columns import TABLES


def test_hours_and_days() -> None:
    at = datetime(2026, 9, 7, 5, 40, tzinfo=UTC)
    assert gold.moment(gold.hour(at)) == at.replace(minute=0)
    assert gold.hour(at.replace(tzinfo=None)) == gold.hour(at)
    assert gold.day(gold.hour(at)) == date(2026, 9, 7)
    assert gold.ordinal(gold.hour(at)) == date(2026, 9, 7).toordinal()
    assert gold.hour_of(date(2026, 9, 7).toordinal()) == gold.hour(at) - 5


def test_routers_come_with_smp_first() -> None:
    rows = {
        "gold/traffic": [{"router": name, "program": kind} for name, kind in (("b", "ntf"), ("c", "smp"), ("a", "smp"))]
    }
    assert gold.routers(rows) == [("a", "smp"), ("c", "smp"), ("b", "ntf")]


def test_the_rows_of_these_tests_are_rows_of_the_declared_tables() -> None:
    for program in ("smp", "ntf"):
        for name, rows in Given(1, program=program, gaps=[range(3, 4)]).rows().items():
            assert name in {table.name for table in gold.READ}
            for row in rows:
                assert set(row) <= set(TABLES[name].names), name
