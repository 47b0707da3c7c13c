"""Autoscaling and monitoring of a router's pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, selector
from weir_operator.kinds.resources import CUSTOM_METRICS, KEDA, PROMETHEUS
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kube.objects import Manifest

SUBSCRIPTIONS_METRIC = "weir_edge_subscriptions"


def scaling_metric(router: Router, observed: Observed) -> str | None:
    """The autoscaler of the pods on this cluster: "CPU", "KEDA", "custom metrics", or None."""
    scaling = router.spec.get("autoscaling")
    if scaling is None or router.spec["maintenance"]["edges"] == "Stopped":
        return None
    if wanted_metric(scaling) == "CPU":
        return "CPU"
    if KEDA in observed.apis:
        return "KEDA"
    return "custom metrics" if CUSTOM_METRICS in observed.apis else "CPU"


def wanted_metric(scaling: Mapping[str, Any]) -> str:
    """The metric in the spec. Some kinds scale by CPU alone, and have no choice there."""
    found: str = scaling.get("metric", "CPU")
    return found


def autoscaler(router: Router, observed: Observed, component: str) -> list[Manifest]:
    how = scaling_metric(router, observed)
    if how is None:
        return []
    return [_scaled_object(router, component)] if how == "KEDA" else [_horizontal(router, component, how)]


def _target(router: Router) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": router.name}


def _horizontal(router: Router, component: str, how: str) -> Manifest:
    scaling = router.spec["autoscaling"]
    metric: dict[str, Any]
    if how == "CPU":
        cpu = {"type": "Utilization", "averageUtilization": scaling["targetCPUPercent"]}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": cpu}}
    else:
        target = {"type": "AverageValue", "averageValue": str(scaling["targetSubscriptions"])}
        metric = {"type": "Pods", "pods": {"metric": {"name": SUBSCRIPTIONS_METRIC}, "target": target}}
    spec = {
        "scaleTargetRef": _target(router),
        "minReplicas": scaling["minReplicas"],
        "maxReplicas": scaling["maxReplicas"],
        "metrics": [metric],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": scaling["scaleDownSeconds"]}},
    }
    return child(router, "autoscaling/v2", "HorizontalPodAutoscaler", router.name, component, spec=spec)


def _scaled_object(router: Router, component: str) -> Manifest:
    """KEDA reads the fleet's total from any edge and divides it by the target."""
    scaling = router.spec["autoscaling"]
    url = f"http://{names.http_service(router.name)}.{router.namespace}.svc:{router.spec['ports']['http']}/status.json"
    trigger = {
        "type": "metrics-api",
        "metricType": "AverageValue",
        "metadata": {
            "url": url,
            "valueLocation": "subscriptions",
            "targetValue": str(scaling["targetSubscriptions"]),
        },
    }
    spec = {
        "scaleTargetRef": _target(router),
        "minReplicaCount": scaling["minReplicas"],
        "maxReplicaCount": scaling["maxReplicas"],
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": scaling["scaleDownSeconds"]}}
            }
        },
        "triggers": [trigger],
    }
    return child(router, KEDA, "ScaledObject", router.name, component, spec=spec)


def service_monitor(router: Router, observed: Observed, component: str) -> list[Manifest]:
    settings = router.spec["telemetry"]["serviceMonitor"]
    if PROMETHEUS not in observed.apis or not settings["enabled"]:
        return []
    # /metrics has the totals of the fleet, /metrics/edge those of one edge. Both are scraped from every edge, so that
    # totals have no gap when an edge leaves.
    paths = ("/metrics", "/metrics/edge")
    spec = {
        "selector": {"matchLabels": selector(router, "http")},
        "endpoints": [{"port": "http", "path": path, "interval": settings["interval"]} for path in paths],
    }
    made = child(router, PROMETHEUS, "ServiceMonitor", router.name, component, spec=spec)
    made["metadata"]["labels"] = {**(settings.get("labels") or {}), **made["metadata"]["labels"]}
    return [made]
