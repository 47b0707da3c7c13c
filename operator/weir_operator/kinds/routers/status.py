"""A router's status: conditions that an administrator can act on, and the numbers beside them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from weir_operator.kinds.metadata import selector
from weir_operator.kinds.routers.identity import Online
from weir_operator.kinds.routers.model import Counts, Own, Router, RouterKind
from weir_operator.kinds.routers.scaling import wanted_metric
from weir_operator.kinds.routers.store_keys import STORE_KEYS
from weir_operator.kube.conditions import Condition, Problem, condition, timestamp, with_times


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """The result of a probe: a write to Redis, and a wait until it was durable."""

    reachable: bool
    durable: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that a status is made from, beside the router itself."""

    deployment: Mapping[str, Any] | None = None  # facts of the Deployment
    online: Online | None = None  # the certificate that the edges have
    fingerprint: str | None = None  # of the identity, when all is well with it
    checks: Mapping[str, str] = field(default_factory=dict)  # digests of the store's keys, by their fields
    own: Own = field(default_factory=Own)
    address: str | None = None
    key_problem: Problem | None = None
    apply_problems: tuple[Problem, ...] = ()
    pod_problem: str | None = None
    store: StoreHealth | None = None
    counts: Counts | None = None
    observed: bool = True  # False: the operator has just started; fields that only the observer knows stay unchanged
    scaled_by: str | None = None


def router_status(kind: RouterKind, router: Router, findings: Findings, now: datetime) -> dict[str, Any]:
    """The whole status. Equal findings give an equal status, so that nothing is written when nothing changed."""
    parts = [
        _certificate(router, findings, now),
        *_store(router, findings),
        *_own(kind, router, findings),
        _available(router, findings),
        _progressing(router, findings),
    ]
    conditions = [_ready(kind, router, findings, parts), *parts]
    status: dict[str, Any] = {
        "observedGeneration": router.generation,
        "conditions": with_times(conditions, router.status, router.generation, now),
        "replicas": (findings.deployment or {}).get("existing", 0),
        "selector": ",".join(f"{k}={v}" for k, v in selector(router, kind.component).items()),
        "edges": _edges(router, findings),
    }
    # The address and its fingerprint stay in the status, even when the identity behind them is gone: clients know them.
    fingerprint = findings.fingerprint or router.status.get("fingerprint")
    if fingerprint:
        status["fingerprint"] = fingerprint
    address = findings.address or router.status.get("address")
    if address:
        status["address"] = address
    for name in (STORE_KEYS[key].check for key in kind.store_keys):
        check = findings.checks.get(name) or router.status.get(name)
        if check:
            status[name] = check
    status |= findings.own.status
    if findings.online is not None:
        left = findings.online.not_after - now
        status["certificate"] = {"notAfter": timestamp(findings.online.not_after), "daysLeft": left.days}
    if findings.counts is not None:
        status |= findings.counts
    elif not findings.observed:
        status |= {key: router.status[key] for key in (*kind.counted, "observedAt") if key in router.status}
    return status


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two statuses say the same, apart from the time of the last count."""
    return {**one, "observedAt": None} == {**other, "observedAt": None}


def address_of(kind: RouterKind, fingerprint: str, hosts: list[str], port: int) -> str:
    """smp://FINGERPRINT@HOST[,HOST][:PORT], without the password even when one is needed."""
    bracketed = [f"[{host}]" if ":" in host else host for host in hosts]
    return f"{kind.protocol}://{fingerprint}@{','.join(bracketed)}" + ("" if port == kind.usual_port else f":{port}")


def _stopped(router: Router) -> bool:
    return bool(router.spec["maintenance"]["edges"] == "Stopped") or (
        router.spec["replicas"] == 0 and "autoscaling" not in router.spec
    )


def _edges(router: Router, findings: Findings) -> dict[str, Any]:
    facts = findings.deployment or {}
    desired = facts.get("replicas", 0 if _stopped(router) else router.spec["replicas"])
    ready, updated = facts.get("ready", 0), facts.get("updated", 0)
    return {"desired": desired, "ready": ready, "updated": updated, "summary": f"{ready}/{desired}"}


def _certificate(router: Router, findings: Findings, now: datetime) -> Condition:
    kind = "CertificateValid"
    if findings.key_problem is not None:
        return condition(kind, False, findings.key_problem.reason, findings.key_problem.message)
    if findings.online is None:
        return condition(kind, None, "Pending", "there is no online certificate yet")
    end = timestamp(findings.online.not_after)
    if findings.online.not_after <= now:
        return condition(kind, False, "Expired", f"the online certificate expired at {end}")
    if (findings.online.not_after - now).days < router.spec["certificate"]["renewBeforeDays"]:
        why = "the operator has no key of its CA: put a new certificate into the Secret"
        if router.spec["maintenance"]["paused"]:
            why = "nothing is renewed while maintenance.paused is set"
        elif findings.apply_problems:
            why = f"a new one cannot be given to the pods: {findings.apply_problems[0].message}"
        return condition(kind, True, "RenewalDue", f"the online certificate expires at {end}, and {why}")
    shut_out = _shut_out(findings.online)
    if shut_out is not None:
        return condition(kind, True, "Ed448", f"the online certificate is valid until {end}, but {shut_out}")
    return condition(kind, True, "Valid", f"the online certificate is valid until {end}")


def _shut_out(online: Online) -> str | None:
    """Name the clients that refuse the TLS handshake because of Ed448."""
    leaf, authority = online.ed448
    if leaf:
        return "clients with Go's crypto/tls or rustls cannot connect: the certificate has an Ed448 key"
    if authority:
        return "clients with Go's crypto/tls cannot connect: the identity, and with it the address, has an Ed448 key"
    return None


def _before(router: Router, kind: str) -> Condition | None:
    """A condition as it was last written, without its times."""
    for one in router.status.get("conditions") or ():
        if one["type"] == kind:
            return {key: one[key] for key in ("type", "status", "reason", "message")}
    return None


def _store(router: Router, findings: Findings) -> list[Condition]:
    health = findings.store
    if not findings.observed:
        old = [_before(router, kind) for kind in ("StoreReachable", "DurabilityReady")]
        if None not in old:
            return [one for one in old if one is not None]
    if health is None:
        waiting = "Redis has not been probed yet"
        return [condition(kind, None, "Pending", waiting) for kind in ("StoreReachable", "DurabilityReady")]
    if not health.reachable:
        return [
            condition("StoreReachable", False, health.reason, health.message),
            condition("DurabilityReady", None, "StoreUnreachable", "cannot be checked while Redis does not answer"),
        ]
    return [
        condition("StoreReachable", True, "Answered", "Redis accepted a write"),
        condition("DurabilityReady", health.durable, health.reason, health.message),
    ]


def _own(kind: RouterKind, router: Router, findings: Findings) -> list[Condition]:
    if kind.conditions is None:
        return []
    found = kind.conditions(router, findings.own, findings.counts)
    if findings.observed:
        return found
    return [_before(router, one["type"]) or one if one["status"] == "Unknown" else one for one in found]


def _available(router: Router, findings: Findings) -> Condition:
    kind = "Available"
    facts = findings.deployment
    if _stopped(router):
        return condition(kind, False, "Stopped", "the spec asks for no edges")
    if facts is None:
        return condition(kind, False, "NoEdges", "there is no Deployment yet")
    ready, wanted = facts["ready"], facts["replicas"]
    old = _before(router, kind)
    if not findings.observed and ready < wanted and old is not None and old["reason"] == _reason(ready, wanted):
        return old
    if ready == 0:
        failure = facts["conditions"].get("ReplicaFailure")
        why = failure[2] if failure and failure[0] == "True" else findings.pod_problem
        return condition(kind, False, _reason(ready, wanted), why or f"none of {wanted} edges is ready")
    text = f"{ready} of {wanted} edges are ready"
    return condition(kind, True, _reason(ready, wanted), (findings.pod_problem if ready < wanted else None) or text)


def _reason(ready: int, wanted: int) -> str:
    if ready == 0:
        return "NoEdgeReady"
    return "SomeEdgesReady" if ready < wanted else "EdgesReady"


def _progressing(router: Router, findings: Findings) -> Condition:
    kind = "Progressing"
    if findings.apply_problems:
        return condition(
            kind, False, findings.apply_problems[0].reason, "; ".join(p.message for p in findings.apply_problems)
        )
    if router.spec["maintenance"]["paused"]:
        return condition(kind, False, "Paused", "maintenance.paused is set: children are left unchanged")
    facts = findings.deployment
    if facts is None:
        return condition(kind, True, "Creating", "children are being created")
    stalled = facts["conditions"].get("Progressing")
    if stalled and stalled[0] == "False":
        return condition(kind, False, stalled[1] or "Stalled", stalled[2])
    settled = facts["current"] and facts["updated"] == facts["replicas"] == facts["existing"] == facts["ready"]
    if not settled:
        return condition(kind, True, "RollingOut", "edges are being replaced, added or removed")
    if findings.scaled_by == "CPU" and wanted_metric(router.spec["autoscaling"]) != "CPU":
        text = "scaling by CPU: neither KEDA nor a custom-metrics adapter is installed"
        return condition(kind, False, "ScalingByCPU", text)
    return condition(kind, False, "Settled", "all edges run the current pod template")


def _ready(kind: RouterKind, router: Router, findings: Findings, parts: list[Condition]) -> Condition:
    """The first problem, in the order in which problems should be solved."""
    if findings.apply_problems:
        problem = findings.apply_problems[0]
        return condition("Ready", False, problem.reason, problem.message)
    if _stopped(router):
        return condition("Ready", False, "Stopped", "the spec asks for no edges")
    needed = ("CertificateValid", "StoreReachable", "DurabilityReady", *kind.needed, "Available")
    found = {part["type"]: part for part in parts}
    for status in ("False", "Unknown"):
        for name in needed:
            if found[name]["status"] == status:
                return condition("Ready", status == "True", found[name]["reason"], found[name]["message"])
    return condition("Ready", True, "Ready", "clients can connect, and writes to Redis are as durable as the spec asks")
