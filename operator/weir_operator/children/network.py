"""Services and NetworkPolicies."""

from __future__ import annotations

from typing import Any

from weir_operator import names
from weir_operator.children.common import child, component, selector
from weir_operator.model import Manifest, Router


def public_service(router: Router) -> Manifest:
    """The Service that clients come through; TLS ends in the edges."""
    exposure = router.spec["exposure"]
    name = "smp" if router.smp else "ntf"
    port: dict[str, Any] = {"name": name, "port": router.spec["ports"][name], "targetPort": name, "protocol": "TCP"}
    kind = exposure["type"] if exposure["type"] != "HostPort" else "ClusterIP"
    if kind in ("NodePort", "LoadBalancer") and "nodePort" in exposure:
        port["nodePort"] = exposure["nodePort"]
    spec: dict[str, Any] = {"type": kind, "selector": selector(router, component(router)), "ports": [port]}
    for key in ("loadBalancerClass", "loadBalancerSourceRanges", "externalTrafficPolicy"):
        if key in exposure:
            spec[key] = exposure[key]
    return child(
        router,
        "v1",
        "Service",
        router.name,
        component(router),
        annotations=exposure.get("annotations"),
        spec=spec,
    )


def edges_service(router: Router) -> Manifest:
    """Every ready edge by itself, for metrics and for checks that must speak to several."""
    ports = [
        {"name": "smp", "port": names.SMP_PORT, "targetPort": "smp", "protocol": "TCP"},
        {"name": "http", "port": names.HTTP_PORT, "targetPort": "http", "protocol": "TCP"},
    ]
    spec = {"clusterIP": "None", "selector": selector(router, "edge"), "ports": ports}
    return child(router, "v1", "Service", names.edges_service(router.name), "edges", spec=spec)


def http_service(router: Router) -> Manifest:
    port = {"name": "http", "port": router.spec["ports"]["http"], "targetPort": "http", "protocol": "TCP"}
    spec = {"type": "ClusterIP", "selector": selector(router, "edge"), "ports": [port]}
    return child(router, "v1", "Service", names.http_service(router.name), "http", spec=spec)


def policies(router: Router) -> list[Manifest]:
    policy = router.spec["networkPolicy"]
    if not policy["enabled"]:
        return []
    part = component(router)
    public = names.SMP_PORT if router.smp else names.NTF_TARGET_PORT
    operator = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}}}
    ingress: list[dict[str, Any]] = [{"ports": [{"port": public, "protocol": "TCP"}]}]
    if router.smp:
        readers = list(policy.get("httpFrom") or [{"podSelector": {}}])
        ingress.append({"from": [*readers, operator], "ports": [{"port": names.HTTP_PORT, "protocol": "TCP"}]})
    made = [_policy(router, router.name, part, ["Ingress"], ingress)]
    if router.embedded is not None:
        edges = {"podSelector": {"matchLabels": selector(router, part)}}
        port = [{"port": names.REDIS_PORT, "protocol": "TCP"}]
        # Redis answers, and never calls anyone.
        made.append(
            _policy(
                router,
                names.redis(router.name),
                "redis",
                ["Ingress", "Egress"],
                [{"from": [edges, operator], "ports": port}],
            )
        )
    return made


def _policy(router: Router, name: str, part: str, types: list[str], ingress: list[dict[str, Any]]) -> Manifest:
    spec = {"podSelector": {"matchLabels": selector(router, part)}, "policyTypes": types, "ingress": ingress}
    return child(router, "networking.k8s.io/v1", "NetworkPolicy", name, part, spec=spec)
