"""The rows of the page about pushes."""

from weir.notifier.surface.http import pushes
from weir.notifier.surface.metrics import PROVIDERS
from weir.surface.fleet import FleetNumbers


def numbers(stats: dict[str, int], gauges: dict[str, int]) -> FleetNumbers:
    return FleetNumbers(stats=stats, counts={}, edges={"one": gauges}, redis={}, taken_at=0)


def test_a_provider_with_pushes_has_a_row() -> None:
    stats = {"pushes_web_push_delivered": 3, "pushes_web_push_failed": 1}
    [row] = pushes(numbers(stats, {"push_waiting_web_push": 2}))
    assert row == {"provider": "Web Push", "delivered": 3, "invalid": 0, "retry": 0, "failed": 1, "waiting": 2}


def test_every_provider_has_a_name() -> None:
    rows = list(pushes(numbers({f"pushes_{provider}_delivered": 1 for provider in PROVIDERS}, {})))
    assert len({row["provider"] for row in rows}) == len(PROVIDERS)


def test_nothing_was_pushed() -> None:
    assert list(pushes(numbers({}, {}))) == []
