"""The section about notifications."""

from tests.pipeline.report.given import Given
from tests.pipeline.report.sections.conftest import Make, part_of
from weir.pipeline.report.sections import notifications


def test_an_smp_router(part: Make) -> None:
    section = notifications.section(part())
    assert section is not None
    [funnel] = section.figures
    assert funnel.finding == "90 % of the notifications were delivered at once"
    assert funnel.summary.startswith("No notifier was subscribed; kept until one is: ")
    assert [row[2] for row in funnel.table.rows][:2] == ["100 %", "90 %"]


def test_a_notification_router(part: Make) -> None:
    section = notifications.section(part("ntf"))
    assert section is not None
    funnel, providers = section.figures
    assert funnel.finding == "60 % as many pushes as notifications"
    assert [row[0] for row in funnel.table.rows][:3] == [
        "received from SMP routers",
        "kept for an active token",
        "pushes accepted by the provider",
    ]
    assert providers.finding.startswith("APNs accepted 99.")
    assert providers.table.rows[0][0] == "APNs"


def test_the_worst_provider_is_named() -> None:
    rows = Given(2, program="ntf").rows()
    for row in rows["gold/notifications"]:
        row["pushes"] = {"apns_prod_delivered": 90, "web_push_delivered": 50, "web_push_failed": 50}
        row["limited"] = {"web_push": 2}
    section = notifications.section(part_of(rows, "ntf"))
    assert section is not None
    providers = section.figures[1]
    assert providers.finding == "Web Push accepted 50 % of its pushes"
    assert providers.table.rows[1] == ("Web Push", "2,400", "0", "0", "2,400", "96")


def test_no_notifications() -> None:
    rows = Given(2).rows()
    rows["gold/notifications"] = []
    assert notifications.section(part_of(rows)) is None
