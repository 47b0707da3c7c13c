"""The status of an SMPService."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.registry import DEFINITIONS
from weir_operator.kinds.smpservice.registration import Registered
from weir_operator.kinds.smpservice.status import service_status
from weir_operator.kube.conditions import Problem
from weir_operator.kube.defaults import with_defaults
from weir_operator.kube.objects import CustomObject

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SPEC = with_defaults(DEFINITIONS[names.SMP_SERVICE].spec(), {"router": "r", "role": "Messaging", "keyPair": {}})
SERVICE = CustomObject(names.SMP_SERVICE, "ns", "app", "u", 3, SPEC)
FOUND = Registered(("A",), 7, True, "edge1", NOW, {"ok": 1}, (5, 3, 2), None)


def told(found: Registered | Problem, old: dict[str, Any] | None = None) -> dict[str, Any]:
    return service_status(replace(SERVICE, status=old or {}), SPEC, "A", found, None, NOW)


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    one = next(one for one in status["conditions"] if one["type"] == kind)
    assert one["observedGeneration"] == 3
    return one["status"], one["reason"]


def test_what_the_router_knows() -> None:
    status = told(FOUND)
    assert condition(status, "Ready") == ("True", "Accepted")
    assert condition(status, "Rotating") == ("False", "Settled")
    assert status["secretName"] == "app-service"
    assert {
        key: status[key] for key in ("fingerprints", "queues", "connected", "edge", "drift", "fold", "lastSubscribed")
    } == {
        "fingerprints": ["A"],
        "queues": 7,
        "connected": True,
        "edge": "edge1",
        "drift": "ok",
        "fold": {"ready": 5, "delivered": 3, "left": 2},
        "lastSubscribed": "2026-06-01T00:00:00Z",
    }


def test_while_both_are_accepted() -> None:
    assert condition(told(replace(FOUND, overlap_until=NOW)), "Rotating") == ("True", "Overlap")


def test_what_was_known_stays_but_not_that_it_is_connected() -> None:
    status = told(Problem("StoreUnreachable", "x"), told(FOUND))
    assert condition(status, "Ready") == ("False", "StoreUnreachable")
    assert status["queues"] == 7
    assert status["drift"] == "ok"
    assert "connected" not in status
    assert "edge" not in status


def test_the_same_is_the_same() -> None:
    assert told(FOUND, told(FOUND)) == told(FOUND)
