"""The values that the decisions are made from: a router's spec, and the observations of its children. No requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from weir_operator.kube.conditions import Condition, Problem
from weir_operator.kube.objects import CustomObject, Key, Manifest

if TYPE_CHECKING:
    from weir_operator.kinds.routers.kept import KeptSecrets

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
class Own:
    """The findings about the Secrets that one kind of router has beside the others'."""

    problem: Problem | None = None
    message: str = ""  # what is there, when there is no problem
    query: str = ""  # of the address
    status: Mapping[str, str] = field(default_factory=dict)  # fields
    events: tuple[tuple[str, str], ...] = ()
    again: float | None = None  # seconds until there is more to do
    given: bool = False  # a Secret is named in the spec, so it is not watched


@dataclass(frozen=True, slots=True)
class RouterKind:
    """The differences between one kind of router and the others. Everything else is shared."""

    name: str
    component: str  # of its pods, in their labels
    protocol: str  # name of its port, and scheme of its address
    usual_port: int  # left out of an address
    authority: str  # common name of a new CA
    desired_state: Callable[[Router, Observed], list[Manifest]]
    store_keys: tuple[str, ...]  # keys of NAME-store, beside the password of Redis
    numbers: tuple[str, ...]  # of the page's status.json
    # Makes the fields of the status from the numbers.
    counts: Callable[[Mapping[str, int]], Counts]
    counted: tuple[str, ...]  # these fields
    # Conditions that only this kind has, from its own Secrets and its counts.
    conditions: Callable[[Router, Own, Counts | None], list[Condition]] | None = None
    needed: tuple[str, ...] = ()  # those of them that Ready depends on
    own_keys: Callable[[KeptSecrets, Key, Router], Awaitable[Own]] | None = None
