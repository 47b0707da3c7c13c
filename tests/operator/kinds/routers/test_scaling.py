"""Autoscalers and ServiceMonitors: which are made, on which cluster."""

from __future__ import annotations

import pytest

from tests.operator.kinds.routers.test_children import KINDS, made
from tests.operator.world import router_of
from weir_operator.kinds import names
from weir_operator.kinds.resources import CUSTOM_METRICS, KEDA, PROMETHEUS
from weir_operator.kinds.routers.model import Observed
from weir_operator.kinds.routers.scaling import scaling_metric


@pytest.mark.parametrize(
    ("apis", "kind", "metric"),
    [
        (frozenset(), "HorizontalPodAutoscaler", "Resource"),
        (frozenset({CUSTOM_METRICS}), "HorizontalPodAutoscaler", "Pods"),
        (frozenset({KEDA, CUSTOM_METRICS}), "ScaledObject", "metrics-api"),
    ],
)
def test_subscriptions_scale_through_what_is_installed(apis: frozenset[str], kind: str, metric: str) -> None:
    spec = {"autoscaling": {"maxReplicas": 6, "metric": "Subscriptions", "targetSubscriptions": 7}}
    found = made(spec, Observed(edge_secret={}, apis=apis))[kind, "r"]
    text = str(found["spec"])
    assert f"'type': '{metric}'" in text
    if metric != "Resource":
        assert "'7'" in text


@pytest.mark.parametrize("kind", KINDS)
def test_service_monitor_where_its_crd_is(kind: str) -> None:
    spec = {"telemetry": {"serviceMonitor": {"labels": {"release": "prom"}, "interval": "10s"}}}
    found = made(spec, Observed(edge_secret={}, apis=frozenset({PROMETHEUS})), kind)["ServiceMonitor", "r"]
    assert found["metadata"]["labels"]["release"] == "prom"
    assert {one["path"] for one in found["spec"]["endpoints"]} == {"/metrics", "/metrics/edge"}
    assert {one["interval"] for one in found["spec"]["endpoints"]} == {"10s"}


def test_a_notification_router_scales_by_cpu_alone() -> None:
    """Pushes are the load of a notification router, and the number of subscriptions does not tell the pushes."""
    router = router_of(names.NTF_ROUTER, autoscaling={"maxReplicas": 6})
    assert scaling_metric(router, Observed(apis=frozenset({KEDA, CUSTOM_METRICS}))) == "CPU"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_scales_without_being_asked_to_or_while_stopped(kind: str) -> None:
    assert scaling_metric(router_of(kind), Observed()) is None
    stopped = router_of(kind, autoscaling={"maxReplicas": 6}, maintenance={"edges": "Stopped"})
    assert scaling_metric(stopped, Observed()) is None
