"""The section about traffic."""

from datetime import timedelta

from tests.pipeline.report.given import START, Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.part import DAY
from weir.pipeline.report.sections import traffic
from weir.pipeline.tables.columns import TRAFFIC


def test_what_is_found(part: Make) -> None:
    shown = part(eventful=True)
    section = traffic.section(shown)
    assert section is not None
    counts, clients = section.figures
    sent = [value for value in shown.shown(shown.numbers(TRAFFIC, "messages_sent", "hour")) if value is not None]
    assert f"{sum(sent) / len(sent) * DAY / 1000:.0f}k messages a day" in counts.finding
    assert "The busiest hour was " in counts.summary
    assert counts.unit == "messages an hour"
    assert clients.finding.startswith("Up to ")


def test_the_table_has_every_hour_and_says_where_there_is_no_data(part: Make) -> None:
    section = traffic.section(part(eventful=True))
    assert section is not None
    table = section.figures[0].table
    assert len(table.rows) == 14 * DAY
    assert table.rows[0][0] == "Mon 21 Sep 00:00"
    assert [row[1] for row in table.rows].count("no data") == 6
    assert table.start == (START + timedelta(days=14)).timestamp() * 1000
    assert table.step == 3_600_000


def test_the_week_is_compared_with_the_one_before() -> None:
    rows = Given(14).rows()
    assert traffic.section(part_of(rows)).figures[0].finding.endswith("as many as the week before")  # type: ignore[union-attr]
    for row in rows["gold/traffic"]:
        if row["at"] >= START + timedelta(days=7):
            row["messages_sent"] *= 2
    section = traffic.section(part_of(rows))
    assert section is not None
    assert "% more in the last seven days than in the seven before" in section.figures[0].finding


def test_days_for_a_long_span(part: Make) -> None:
    section = traffic.section(part(days=60))
    assert section is not None
    assert section.figures[0].unit == "messages a day"
    assert len(section.figures[0].table.rows) == 28


def test_a_notification_router_counts_notifications(part: Make) -> None:
    section = traffic.section(part("ntf"))
    assert section is not None
    assert "notifications a day" in section.figures[0].finding


def test_nothing_at_all() -> None:
    rows = Given(2).rows()
    for row in rows["gold/traffic"]:
        row |= {"seconds_observed": 0.0, "seconds_missing": 3600.0}
    assert traffic.section(part_of(rows)) is None
