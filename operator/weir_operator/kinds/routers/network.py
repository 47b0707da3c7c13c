"""The Service that clients use, and the NetworkPolicies."""

from __future__ import annotations

from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, selector
from weir_operator.kinds.routers.model import Observed, Router, embedded_settings
from weir_operator.kube.objects import Manifest

_REDIS = {"port": names.REDIS_PORT, "protocol": "TCP"}
_NAMESPACE_NAME = "kubernetes.io/metadata.name"  # Kubernetes itself gives every namespace this label


def operator_peer(observed: Observed) -> dict[str, Any]:
    """The operator, which probes Redis and reads the pods' numbers. The peer names the operator's namespace, because
    anybody may give a pod of their own namespace the operator's label."""
    return {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: observed.operator_namespace}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}},
    }


def public_service(router: Router, component: str, protocol: str) -> Manifest:
    """The Service that clients connect to. It passes TLS through to the pods."""
    exposure = router.spec["exposure"]
    port: dict[str, Any] = {
        "name": protocol,
        "port": router.spec["ports"][protocol],
        "targetPort": protocol,
        "protocol": "TCP",
    }
    kind = exposure["type"] if exposure["type"] != "HostPort" else "ClusterIP"
    if kind in ("NodePort", "LoadBalancer") and "nodePort" in exposure:
        port["nodePort"] = exposure["nodePort"]
    spec: dict[str, Any] = {"type": kind, "selector": selector(router, component), "ports": [port]}
    for key in ("loadBalancerClass", "loadBalancerSourceRanges", "externalTrafficPolicy"):
        if key in exposure:
            spec[key] = exposure[key]
    return child(
        router,
        "v1",
        "Service",
        router.name,
        component,
        annotations=exposure.get("annotations"),
        spec=spec,
    )


def policies(router: Router, observed: Observed, component: str, port: int, calls_out: bool) -> list[Manifest]:
    """NetworkPolicies for the pods, whose public port is `port`, and for the embedded Redis. Pods that call out are let
    out, even where another policy of the namespace lets no pod out."""
    settings = router.spec["networkPolicy"]
    if not settings["enabled"]:
        return []
    ingress = [{"ports": [{"port": port, "protocol": "TCP"}]}, _http_ingress(router, observed)]
    egress = None
    if "egress" in settings:
        egress = [*settings["egress"], *_needed_egress(router)]
    elif calls_out:
        egress = [{}]
    made = [_policy(router, router.name, component, ingress, egress)]
    if embedded_settings(router) is not None:
        pods = {"podSelector": {"matchLabels": selector(router, component)}}
        peers = [{"from": [pods, operator_peer(observed)], "ports": [_REDIS]}]
        # Redis can only answer.
        made.append(_policy(router, names.redis(router.name), "redis", peers, []))
    return made


def _needed_egress(router: Router) -> list[dict[str, Any]]:
    """Rules for the calls that pods need in any case: to name servers, and to the embedded Redis."""
    rules: list[dict[str, Any]] = [{"ports": [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]}]
    if embedded_settings(router) is not None:
        rules.append({"to": [{"podSelector": {"matchLabels": selector(router, "redis")}}], "ports": [_REDIS]})
    return rules


def _http_ingress(router: Router, observed: Observed) -> dict[str, Any]:
    """Who may reach the page, health and metrics."""
    readers = list(router.spec["networkPolicy"].get("httpFrom") or [{"podSelector": {}}])
    return {"from": [*readers, operator_peer(observed)], "ports": [{"port": names.HTTP_PORT, "protocol": "TCP"}]}


def _policy(
    router: Router, name: str, part: str, ingress: list[dict[str, Any]], egress: list[dict[str, Any]] | None
) -> Manifest:
    """`egress` None: the policy says nothing about it. An empty list: the pods call nobody."""
    spec: dict[str, Any] = {
        "podSelector": {"matchLabels": selector(router, part)},
        "policyTypes": ["Ingress"] if egress is None else ["Ingress", "Egress"],
        "ingress": ingress,
    }
    if egress:
        spec["egress"] = egress
    return child(router, "networking.k8s.io/v1", "NetworkPolicy", name, part, spec=spec)


def published_hosts(router: Router, observed: Observed) -> list[str]:
    """The hosts in the address: those of the spec, else the load balancer's, else the Service's name in the cluster."""
    given = list(router.spec.get("hosts") or ())
    return given or [observed.public_host or f"{router.name}.{router.namespace}.svc"]


def published_port(router: Router, observed: Observed, protocol: str) -> int:
    """The port that goes with the published hosts. It is a node's port only where the hosts in the spec are nodes."""
    ports, exposure = router.spec["ports"], router.spec["exposure"]
    own: int = ports[protocol]
    if "public" in ports:
        own = ports["public"]
    elif not router.spec.get("hosts"):
        return own
    elif exposure["type"] == "NodePort":
        own = exposure.get("nodePort") or observed.node_port or own
    elif exposure["type"] == "HostPort":
        own = exposure.get("hostPort") or own
    return own
