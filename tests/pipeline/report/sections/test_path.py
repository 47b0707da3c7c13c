"""The section about where the time of SUBS goes."""

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import path


def test_what_is_found() -> None:
    given = Given(3)
    rows = given.rows()
    for hour in (5, 30):
        head = {key: value for key, value in given.head("hour", hour).items() if key not in ("router", "program")}
        for step, spent in (("takeover", 20_000), ("fold.page", 50_000), ("client", 20_000), ("other", 10_000)):
            row = {**head, "service": "weir-edge", "step": step, "traces": 4, "total_us": spent}
            rows["gold/critical_path"].append(row | {"share": spent / 100_000, "longest_us": spent // 2})
    section = path.section(part_of(rows))
    assert section is not None
    [figure] = section.figures
    assert figure.finding == "50 % of the time from SUBS to ALLS: pages of the fold, from Redis"
    assert figure.summary == "8 traced SUBS. A moment counts for one step."
    assert figure.table.rows[0] == ("pages of the fold, from Redis", "50 %", "12.5 ms", "25 ms")


def test_nothing_was_traced(part: Make) -> None:
    assert path.section(part()) is None
