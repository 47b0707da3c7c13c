"""The status of an SMPService."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.smpservice.registration import Registered, drift_class
from weir_operator.kube.conditions import Problem, condition, timestamp, with_times
from weir_operator.kube.objects import CustomObject


def service_status(
    service: CustomObject,
    spec: Mapping[str, Any],
    made: str | None,
    found: Registered | Problem,
    drift_before: Mapping[str, int] | None,
    now: datetime,
) -> dict[str, Any]:
    """Pure. A field that is unknown now keeps its last value, except whether the service is connected."""
    status: dict[str, Any] = {k: v for k, v in service.status.items() if k not in ("conditions", "observedGeneration")}
    if isinstance(found, Problem):
        ready = condition("Ready", False, found.reason, found.message)
        rotating = condition("Rotating", None, found.reason, "not known")
        status.pop("connected", None)
        status.pop("edge", None)
    else:
        ready = condition("Ready", True, "Accepted", "the router knows the service by the listed certificates")
        rotating = condition("Rotating", False, "Settled", "one certificate is accepted")
        if found.overlap_until is not None:
            end = timestamp(found.overlap_until)
            rotating = condition("Rotating", True, "Overlap", f"the previous certificate is accepted until {end}")
        status |= {"fingerprints": list(found.accepted), "queues": found.queues, "connected": found.connected}
        status.pop("edge", None)
        if found.edge:
            status["edge"] = found.edge
        if found.since is not None:
            status["lastSubscribed"] = timestamp(found.since)
        kind = drift_class(found.drift, drift_before) or status.get("drift")
        if kind:
            status["drift"] = kind
        if found.fold is not None:
            status["fold"] = dict(zip(("ready", "delivered", "left"), found.fold, strict=True))
    if made is not None:
        status["secretName"] = spec["keyPair"].get("secretName") or names.service_keys(service.name)
    status["observedGeneration"] = service.generation
    status["conditions"] = with_times([ready, rotating], service.status, service.generation, now)
    return status
