"""The values that the decisions are made from: a router's spec, and the observations of its children. No requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import aiohttp

from weir_operator.kube.objects import CustomObject, Manifest

Router: TypeAlias = CustomObject

_EMBEDDED: Mapping[str, Any] = {
    "storage": {"size": "1Gi", "whenDeleted": "Retain"},
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
}


def embedded_settings(router: Router) -> Mapping[str, Any] | None:
    """Settings of the embedded Redis. None when the router uses an external one."""
    redis = router.spec["redis"]
    if "external" in redis:
        return None
    found: Mapping[str, Any] = redis.get("embedded") or _EMBEDDED
    return found


@dataclass(frozen=True, slots=True)
class Defaults:
    """The image of the children of a router that names none: usually the operator's own image."""

    image: str = "weir:dev"
    pull_policy: str | None = None
    pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The observations that desired_state may use beside the spec."""

    defaults: Defaults = field(default_factory=Defaults)
    operator_namespace: str = "default"
    apis: frozenset[str] = frozenset()
    edge_secret: Mapping[str, str] | None = None  # data of NAME-edge; None: there is none and none can be made
    edge_annotations: Mapping[str, str] | None = None
    control_secret: Mapping[str, str] | None = None  # data of NAME-control; None: the operator makes none
    address: str | None = None
    public_host: str | None = None  # of the load balancer
    node_port: int | None = None  # chosen by the cluster
    replicas: int | None = None  # of the Deployment, as an autoscaler has set it


Counts: TypeAlias = Mapping[str, Any]  # numbers of all pods together, in the words of the status


@dataclass(frozen=True, slots=True)
class RouterKind:
    """The differences between one kind of router and the others. Everything else is shared."""

    name: str
    component: str  # of its pods, in their labels
    protocol: str  # name of its port, and scheme of its address
    usual_port: int  # left out of an address
    authority: str  # common name of a new CA
    desired_state: Callable[[Router, Observed], list[Manifest]]
    # Reads the counts from a ready pod. None: this kind has no counts.
    read_counts: Callable[[aiohttp.ClientSession, str, Router], Awaitable[Counts | None]] | None = None
    counted: tuple[str, ...] = ()  # the fields of the status that the counts fill
    # Tells which autoscaler scales the pods: "CPU", "KEDA" or "custom metrics".
    scaled_by: Callable[[Router, Observed], str | None] | None = None
