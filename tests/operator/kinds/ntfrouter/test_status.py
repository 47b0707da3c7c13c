"""Numbers of the page, as fields and conditions of an NTFRouter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.operator.world import Town, router_of
from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.status import NUMBERS, conditions, counts
from weir_operator.kinds.registry import ROUTER_KINDS
from weir_operator.kinds.routers.model import Own
from weir_operator.kinds.routers.observer import Observation
from weir_operator.kinds.routers.status import Findings, StoreHealth, router_status
from weir_operator.kube.conditions import Problem

HEALTHY = StoreHealth(True, True, "Proved", "waited for")


def numbers(servers: int, subscribed: int) -> dict[str, int]:
    return dict.fromkeys(NUMBERS, 7) | {"servers": servers, "subscribed": subscribed}


def test_the_numbers_become_fields() -> None:
    assert counts(numbers(12, 11)) == {
        "connections": 7,
        "tokens": 7,
        "subscriptions": 7,
        "servers": {"known": 12, "subscribed": 11, "summary": "11/12"},
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, ("Unknown", "Pending")),
        (numbers(0, 0), ("True", "NoServers")),
        (numbers(2, 2), ("True", "AllServers")),
        (numbers(2, 1), ("False", "SomeServers")),
    ],
)
def test_subscribed(found: dict[str, int] | None, expected: tuple[str, str]) -> None:
    told = conditions(router_of(names.NTF_ROUTER), Own(), None if found is None else counts(found))
    one = next(one for one in told if one["type"] == "Subscribed")
    assert (one["status"], one["reason"]) == expected


def test_a_missing_smp_router_is_told_and_the_router_is_ready() -> None:
    told = _conditions(Own(message="the keys are there"), counts(numbers(2, 1)))
    assert told["Subscribed"] == ("False", "SomeServers")
    assert told["Ready"] == ("True", "Ready")


def test_a_missing_key_makes_the_router_not_ready() -> None:
    told = _conditions(Own(Problem("SecretMissing", "there is no Secret s")), None)
    assert told["PushReady"] == ("False", "SecretMissing")
    assert told["Ready"] == ("False", "SecretMissing")


def _conditions(own: Own, found: Any) -> dict[str, tuple[str, str]]:
    from tests.operator.kinds.routers.test_status import EDGES, NOW, ONLINE

    findings = Findings(deployment=EDGES, online=ONLINE, store=HEALTHY, own=own, counts=found)
    status = router_status(ROUTER_KINDS[names.NTF_ROUTER], router_of(names.NTF_ROUTER), findings, NOW)
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


async def test_a_new_operator_keeps_what_the_one_before_has_counted() -> None:
    town = Town(names.NTF_ROUTER)
    await town.reconcile()
    assert town.condition("Subscribed") == ("Unknown", "Pending")
    found = {**counts(numbers(3, 2)), "observedAt": "2026-06-01T12:00:00Z"}
    town.observations[town.key] = Observation(HEALTHY, found)
    await town.reconcile()
    assert town.condition("Subscribed") == ("False", "SomeServers")
    assert town.status["servers"]["summary"] == "2/3"
    town.observations.clear()
    assert await town.reconcile() == []
    # The same numbers, counted later: no news.
    later = datetime(2030, 1, 1, tzinfo=UTC).isoformat()
    town.observations[town.key] = Observation(HEALTHY, {**found, "observedAt": later})
    assert await town.reconcile() == []
