"""Conditions as a table: findings, and the status that is made of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.operator.world import router_of
from weir_operator.kinds import names
from weir_operator.kinds.registry import ROUTER_KINDS
from weir_operator.kinds.routers.identity import Online
from weir_operator.kinds.routers.status import Findings, StoreHealth, address_of, router_status, same
from weir_operator.kube.conditions import Problem, timestamp

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SMP = ROUTER_KINDS[names.SMP_ROUTER]
COUNTS = {"connections": 5, "queues": 4, "messages": 3, "observedAt": "2026-06-01T12:00:00Z"}
ONLINE = Online("FP", "leaf", NOW + timedelta(days=60, hours=1), True)
HEALTHY = StoreHealth(True, True, "Proved", "waited for")
EDGES = {"replicas": 2, "current": True, "existing": 2, "ready": 2, "available": 2, "updated": 2, "conditions": {}}
GOOD = Findings(deployment=EDGES, online=ONLINE, checks={"placementCheck": "c"}, address="smp://FP@h", store=HEALTHY)


def told(findings: Findings = GOOD, old: dict[str, Any] | None = None, **spec: Any) -> dict[str, tuple[str, str, str]]:
    router = replace(router_of(**spec), status=old or {})
    status = router_status(SMP, router, findings, NOW)
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}


def edges(**changes: Any) -> dict[str, Any]:
    return {**EDGES, **changes}


TABLE: list[tuple[str, Findings, dict[str, Any], str, str, str]] = [
    ("all is well", GOOD, {}, "Ready", "True", "Ready"),
    ("settled", GOOD, {}, "Progressing", "False", "Settled"),
    ("certificate", GOOD, {}, "CertificateValid", "True", "Valid"),
    ("Ed448", replace(GOOD, online=replace(ONLINE, ed448=(True, True))), {}, "CertificateValid", "True", "Ed448"),
    ("Ed448: ready", replace(GOOD, online=replace(ONLINE, ed448=(True, True))), {}, "Ready", "True", "Ready"),
    (
        "Ed448, and due",
        replace(GOOD, online=replace(ONLINE, ed448=(True, True), not_after=NOW + timedelta(days=9))),
        {},
        "CertificateValid",
        "True",
        "RenewalDue",
    ),
    ("no certificate", replace(GOOD, online=None), {}, "CertificateValid", "Unknown", "Pending"),
    ("ended", replace(GOOD, online=replace(ONLINE, not_after=NOW)), {}, "CertificateValid", "False", "Expired"),
    (
        "nobody renews it",
        replace(GOOD, online=replace(ONLINE, not_after=NOW + timedelta(days=9))),
        {},
        "CertificateValid",
        "True",
        "RenewalDue",
    ),
    ("lost", replace(GOOD, key_problem=Problem("IdentityLost", "x")), {}, "CertificateValid", "False", "IdentityLost"),
    ("lost: not ready", replace(GOOD, key_problem=Problem("IdentityLost", "x")), {}, "Ready", "False", "IdentityLost"),
    ("not probed", replace(GOOD, store=None), {}, "StoreReachable", "Unknown", "Pending"),
    ("not probed: not ready", replace(GOOD, store=None), {}, "Ready", "False", "Pending"),
    (
        "unreachable",
        replace(GOOD, store=StoreHealth(False, False, "StoreUnreachable", "x")),
        {},
        "StoreReachable",
        "False",
        "StoreUnreachable",
    ),
    (
        "unreachable: durability unknown",
        replace(GOOD, store=StoreHealth(False, False, "StoreUnreachable", "x")),
        {},
        "DurabilityReady",
        "Unknown",
        "StoreUnreachable",
    ),
    (
        "not durable",
        replace(GOOD, store=StoreHealth(True, False, "NotDurable", "0 of 1")),
        {},
        "DurabilityReady",
        "False",
        "NotDurable",
    ),
    (
        "reachable all the same",
        replace(GOOD, store=StoreHealth(True, False, "NotDurable", "x")),
        {},
        "StoreReachable",
        "True",
        "Answered",
    ),
    ("no Deployment", replace(GOOD, deployment=None), {}, "Available", "False", "NoEdges"),
    ("being made", replace(GOOD, deployment=None), {}, "Progressing", "True", "Creating"),
    ("none ready", replace(GOOD, deployment=edges(ready=0)), {}, "Available", "False", "NoEdgeReady"),
    ("one ready", replace(GOOD, deployment=edges(ready=1)), {}, "Available", "True", "SomeEdgesReady"),
    ("one ready: ready", replace(GOOD, deployment=edges(ready=1)), {}, "Ready", "True", "Ready"),
    ("rolling", replace(GOOD, deployment=edges(updated=1)), {}, "Progressing", "True", "RollingOut"),
    ("an old one left", replace(GOOD, deployment=edges(existing=3)), {}, "Progressing", "True", "RollingOut"),
    ("not seen yet", replace(GOOD, deployment=edges(current=False)), {}, "Progressing", "True", "RollingOut"),
    (
        "stuck",
        replace(GOOD, deployment=edges(conditions={"Progressing": ("False", "ProgressDeadlineExceeded", "x")})),
        {},
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
    ),
    ("stopped", GOOD, {"maintenance": {"edges": "Stopped"}}, "Available", "False", "Stopped"),
    ("no replicas", GOOD, {"replicas": 0}, "Ready", "False", "Stopped"),
    ("paused", GOOD, {"maintenance": {"paused": True}}, "Progressing", "False", "Paused"),
    ("refused", replace(GOOD, apply_problems=(Problem("ApplyFailed", "x"),)), {}, "Ready", "False", "ApplyFailed"),
    (
        "scaled by another measure",
        replace(GOOD, scaled_by="CPU"),
        {"autoscaling": {"maxReplicas": 3, "metric": "Subscriptions"}},
        "Progressing",
        "False",
        "ScalingByCPU",
    ),
]


@pytest.mark.parametrize(
    ("findings", "spec", "kind", "status", "reason"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_condition(findings: Findings, spec: dict[str, Any], kind: str, status: str, reason: str) -> None:
    assert told(findings, **spec)[kind][:2] == (status, reason)


def test_why_no_edge_is_ready() -> None:
    crash = replace(GOOD, deployment=edges(ready=0), pod_problem="pod x: CrashLoopBackOff")
    assert told(crash)["Available"][2] == "pod x: CrashLoopBackOff"
    quota = {"ReplicaFailure": ("True", "FailedCreate", "exceeded quota")}
    refused = replace(crash, deployment=edges(ready=0, conditions=quota))
    assert told(refused)["Available"][2] == "exceeded quota"


def test_who_cannot_connect_because_of_ed448() -> None:
    def message(*ed448: bool) -> str:
        return told(replace(GOOD, online=replace(ONLINE, ed448=ed448)))["CertificateValid"][2]

    assert "clients with Go's crypto/tls or rustls cannot connect" in message(True, True)
    assert "clients with Go's crypto/tls cannot connect" in message(False, True)
    assert "connect" not in message(False, False)


def status(findings: Findings = GOOD, old: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return router_status(SMP, replace(router_of(**spec), status=old or {}), findings, NOW)


def test_numbers() -> None:
    found = status(replace(GOOD, counts=COUNTS))
    assert found["certificate"] == {"notAfter": "2026-07-31T13:00:00Z", "daysLeft": 60}
    assert found["edges"] == {"desired": 2, "ready": 2, "updated": 2, "summary": "2/2"}
    assert (found["connections"], found["queues"], found["messages"]) == (5, 4, 3)
    assert found["replicas"] == 2
    assert found["selector"].startswith("app.kubernetes.io/name=weir,app.kubernetes.io/instance=r")
    assert found["observedGeneration"] == 1


def test_what_clients_know_is_never_dropped() -> None:
    old = {"address": "smp://OLD@h", "fingerprint": "OLD", "placementCheck": "p"}
    lost = Findings(key_problem=Problem("IdentityLost", "x"), online=replace(ONLINE, fingerprint="NEW"))
    found = status(lost, old)
    assert {key: found[key] for key in old} == old


def test_times_change_with_the_status_only() -> None:
    first = status()
    later = router_status(SMP, replace(router_of(), status=first), GOOD, NOW + timedelta(hours=1))
    assert later["conditions"] == first["conditions"]
    worse = replace(GOOD, store=StoreHealth(False, False, "StoreUnreachable", "x"))
    changed = router_status(SMP, replace(router_of(), status=first), worse, NOW + timedelta(hours=1))
    times = {one["type"]: one["lastTransitionTime"] for one in changed["conditions"]}
    assert times["Ready"] == times["StoreReachable"] == "2026-06-01T13:00:00Z"
    assert times["Available"] == "2026-06-01T12:00:00Z"


def test_a_restarted_operator_keeps_the_status_until_it_has_observed() -> None:
    before = status(replace(GOOD, counts=COUNTS, pod_problem="pod x", deployment=edges(ready=1)))
    fresh = Findings(
        deployment=edges(ready=1), online=ONLINE, checks={"placementCheck": "c"}, address="smp://FP@h", observed=False
    )
    assert same(status(fresh, before), before)


def test_the_time_of_the_count_alone_is_no_change() -> None:
    one, other = (
        status(replace(GOOD, counts={**COUNTS, "observedAt": timestamp(moment)}))
        for moment in (NOW, NOW + timedelta(minutes=1))
    )
    assert one != other
    assert same(one, other)


def test_address() -> None:
    assert address_of(SMP, "FP", ["a", "b"], 5223) == "smp://FP@a,b"
    assert address_of(SMP, "FP", ["a"], 443) == "smp://FP@a:443"
    assert address_of(SMP, "FP", ["2001:db8::1"], 443) == "smp://FP@[2001:db8::1]:443"
    assert address_of(ROUTER_KINDS[names.NTF_ROUTER], "FP", ["a"], 443) == "ntf://FP@a"
