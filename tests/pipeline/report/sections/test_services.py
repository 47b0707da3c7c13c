"""The section about services and drift."""

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import services


def test_what_is_found(part: Make) -> None:
    section = services.section(part())
    assert section is not None
    table, drift = section.figures
    assert table.finding.startswith("2 services: ")
    assert "of their SUBS expected other queues than are stored" in table.finding
    assert [row[0] for row in table.table.rows] == ["desk", "shop"]
    assert [row[2] for row in table.table.rows] == ["4,000", "900"]
    assert drift.finding == "All of the drift is with desk"
    days = sum(1 for row in drift.table.rows if row[2] == "24")
    assert drift.summary == f"{24 * days} SUBS with drift, {24 * days} of them from desk."


def test_services_that_agree() -> None:
    rows = Given(3).rows()
    for row in rows["gold/services"]:
        row["drift_fewer"] = 0
    section = services.section(part_of(rows))
    assert section is not None
    assert [figure.finding for figure in section.figures] == [
        "2 services: all agree with the router about their queues"
    ]


def test_no_services(part: Make) -> None:
    assert services.section(part("ntf")) is None
