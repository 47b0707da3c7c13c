"""Kubernetes' kinds that the operator works with, how a child is recognised, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import names
from weir_operator.kube.objects import Key, Kind

# Optional APIs of the cluster that change what is made.
KEDA = "keda.sh/v1alpha1"
PROMETHEUS = "monitoring.coreos.com/v1"
CUSTOM_METRICS = "custom.metrics.k8s.io"
OPTIONAL_APIS = frozenset((KEDA, PROMETHEUS, CUSTOM_METRICS))

OWN = tuple(Kind(kind, names.API_VERSION, plural) for kind, plural in names.PLURALS.items())
_ALL = (
    Kind("Deployment", "apps/v1", "deployments"),
    Kind("StatefulSet", "apps/v1", "statefulsets"),
    Kind("Service", "v1", "services"),
    Kind("Secret", "v1", "secrets"),
    Kind("ConfigMap", "v1", "configmaps"),
    Kind("ServiceAccount", "v1", "serviceaccounts"),
    Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    Kind("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers"),
    Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
    Kind("ServiceMonitor", PROMETHEUS, "servicemonitors"),
    Kind("ScaledObject", KEDA, "scaledobjects"),
    Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    Kind("Pod", "v1", "pods"),
    Kind("Event", "v1", "events"),
    Kind("Lease", "coordination.k8s.io/v1", "leases"),
    *OWN,
)
RESOURCES: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}

# Children are watched by their label. The optional ones are watched where the cluster has their API.
_CHILDREN = (
    "Deployment",
    "StatefulSet",
    "Service",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "PodDisruptionBudget",
    "HorizontalPodAutoscaler",
    "NetworkPolicy",
)
_OPTIONAL_CHILDREN = {PROMETHEUS: "ServiceMonitor", KEDA: "ScaledObject"}
CHILD_LABELS: Mapping[str, str] = {names.MANAGED_BY: names.MANAGER}

# Every router has a ServiceAccount and its ConfigMaps, whatever its spec says.
PRUNED = frozenset((*_CHILDREN, *_OPTIONAL_CHILDREN.values())) - {"ServiceAccount", "ConfigMap"}

_BY_LABEL = {names.owner_label(kind): kind for kind in names.PLURALS}


def child_kinds(apis: frozenset[str]) -> tuple[Kind, ...]:
    """The kinds of children on a cluster with these optional APIs."""
    optional = [kind for api, kind in _OPTIONAL_CHILDREN.items() if api in apis]
    return tuple(RESOURCES[name] for name in (*_CHILDREN, *optional))


def owner_of(body: Mapping[str, Any]) -> Key | None:
    """The custom object that a child belongs to by its labels. None when it belongs to none."""
    meta = body["metadata"]
    marks = meta.get("labels") or {}
    kind = _BY_LABEL.get(marks.get(names.OWNER_KIND, ""))
    name = marks.get(names.name_label(kind or ""))
    if kind is None or not name or marks.get(names.MANAGED_BY) != names.MANAGER:
        return None
    return Key(kind, meta["namespace"], name)


def facts(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a child that the status and decisions are made from. Keys of CAs and of services are left out."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    match kind:
        case "Deployment":
            return {
                "replicas": spec.get("replicas", 1),
                "current": status.get("observedGeneration", 0) >= body["metadata"].get("generation", 0),
                "existing": status.get("replicas", 0),
                "ready": status.get("readyReplicas", 0),
                "available": status.get("availableReplicas", 0),
                "updated": status.get("updatedReplicas", 0),
                "conditions": {
                    c["type"]: (c["status"], c.get("reason", ""), c.get("message", ""))
                    for c in status.get("conditions") or ()
                },
            }
        case "StatefulSet":
            return {"ready": status.get("readyReplicas", 0)}
        case "Service":
            ingress = ((status.get("loadBalancer") or {}).get("ingress")) or []
            return {
                "ip": spec.get("clusterIP"),
                "node_ports": {port.get("name", ""): port.get("nodePort") for port in spec.get("ports") or ()},
                "public": next((one.get("hostname") or one.get("ip") for one in ingress), None),
            }
        case "Secret":
            data = dict(body.get("data") or {})
            has_key = bool(data.pop(names.CA_KEY, None))
            data.pop(names.TLS_KEY, None)
            return {"data": data, "has_ca_key": has_key, "annotations": body["metadata"].get("annotations") or {}}
        case _:
            return {}
