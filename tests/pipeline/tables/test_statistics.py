"""The reference's daily file: its cells, and which days have a line."""

from datetime import date

from weir.pipeline.tables.columns import DAILY_NTF, DAILY_SMP
from weir.pipeline.tables.declaration import Table
from weir.pipeline.tables.statistics import lines


def row(table: Table, day: date, **cells: int | None) -> dict[str, object]:
    return dict.fromkeys(table.names, 0) | {"router": "main", "day": day} | cells


def test_a_line_has_the_columns_of_the_reference() -> None:
    [smp] = lines(DAILY_SMP, [row(DAILY_SMP, date(2026, 11, 1), qCreated=5, rslvDisabled=7)], date(2026, 11, 2))
    cells = smp.split(",")
    assert (len(cells), cells[0], cells[1], cells[100]) == (101, "2026-11-01", "5", "7")
    [ntf] = lines(DAILY_NTF, [row(DAILY_NTF, date(2026, 11, 1))], date(2026, 11, 2))
    assert ntf.count(",") == 21


def test_a_number_that_is_not_due_is_empty() -> None:
    [line] = lines(DAILY_NTF, [row(DAILY_NTF, date(2026, 11, 1), tokens_week=None)], date(2026, 11, 2))
    assert line.split(",")[8:11] == ["0", "", "0"]


def test_days_are_in_order_and_the_present_one_has_no_line() -> None:
    rows = [row(DAILY_NTF, date(2026, 11, n)) for n in (3, 1, 2)]
    assert [line[:10] for line in lines(DAILY_NTF, rows, date(2026, 11, 3))] == ["2026-11-01", "2026-11-02"]
