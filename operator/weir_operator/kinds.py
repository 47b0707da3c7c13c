"""The kinds the operator works with: where each is in the API, and what is worth remembering of a child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weir_operator import names
from weir_operator.model import KEDA, PROMETHEUS


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    api_version: str
    plural: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str | None, name: str | None = None) -> str:
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{where}/{self.plural}" + (f"/{name}" if name else "")


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
    *(Kind(kind, names.API_VERSION, plural) for kind, plural in names.PLURALS.items()),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}

# Watched, by label; the optional ones only where their API is.
CHILD_KINDS = (
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
OPTIONAL_KINDS = {PROMETHEUS: "ServiceMonitor", KEDA: "ScaledObject"}

# Without a spec that would clash: somebody else's object of that name could be taken over unnoticed by applying.
UNGUARDED = frozenset(("ServiceAccount", "ConfigMap", "Secret"))


def facts(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What status and decisions need of a child. Keys of CAs and of services are never among it."""
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
