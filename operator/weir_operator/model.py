"""What the pure half of the operator works on: a router as it is written, and what has been seen of its world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weir_operator import names

Manifest = dict[str, Any]
ChildKey = tuple[str, str]  # kind, name

# Optional APIs of the cluster that change what is made.
KEDA = "keda.sh/v1alpha1"
PROMETHEUS = "monitoring.coreos.com/v1"
CUSTOM_METRICS = "custom.metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class Router:
    """An SMPRouter or an NTFRouter, with the defaults of its schema filled in."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    spec: Mapping[str, Any]
    status: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    resource_version: str = ""
    deleting: bool = False
    just_read: bool = False  # from an answer of the API, not from a watch

    @property
    def smp(self) -> bool:
        return self.kind == names.SMP_ROUTER

    @property
    def embedded(self) -> Mapping[str, Any] | None:
        """The embedded Redis' settings; None when a Redis is given."""
        redis = self.spec["redis"]
        if "external" in redis:
            return None
        found: Mapping[str, Any] = redis.get("embedded") or _EMBEDDED
        return found


_EMBEDDED: Mapping[str, Any] = {
    "storage": {"size": "1Gi", "whenDeleted": "Retain"},
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What children run when the router does not say: the operator's own image, usually."""

    image: str = "weir:dev"
    pull_policy: str | None = None
    pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What desired_state may look at beyond the spec."""

    defaults: Defaults = field(default_factory=Defaults)
    apis: frozenset[str] = frozenset()
    edge_secret: Mapping[str, str] | None = None  # data of NAME-edge; None: there is none and none can be made
    edge_annotations: Mapping[str, str] | None = None
    address: str | None = None
    public_host: str | None = None  # of the load balancer
    node_port: int | None = None  # that the cluster chose
    replicas: int | None = None  # of the Deployment, as an autoscaler has set it


def body_to_router(body: Mapping[str, Any], kind: str) -> Router:
    meta = body["metadata"]
    return Router(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        spec=body.get("spec") or {},
        status=body.get("status") or {},
        annotations=meta.get("annotations") or {},
        finalizers=tuple(meta.get("finalizers") or ()),
        resource_version=meta.get("resourceVersion", ""),
        deleting=meta.get("deletionTimestamp") is not None,
    )
