"""The children of an SMPRouter: edges, their Services, Redis, autoscaling and monitoring."""

from __future__ import annotations

from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, selector
from weir_operator.kinds.routers.children import address_map, foundation, pods
from weir_operator.kinds.routers.embedded_redis import embedded_redis
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kinds.routers.network import (
    operator_peer,
    policies,
    public_service,
    published_hosts,
    published_port,
)
from weir_operator.kinds.routers.workload import Program, secret_variable
from weir_operator.kinds.smprouter.config import config_file
from weir_operator.kinds.smprouter.scaling import autoscaler, service_monitor
from weir_operator.kube.objects import Manifest

COMPONENT = "edge"
PROTOCOL = "smp"


def desired_state(router: Router, observed: Observed) -> list[Manifest]:
    """Every child, in the order in which they are applied.

    Pure: the same spec and observations give the same children, byte for byte, in every version that does not mean to
    change them. So upgrading the operator rolls no edge by itself.
    """
    config = config_file(router, published_hosts(router, observed), published_port(router, observed, PROTOCOL))
    edges = pods(router, observed, _program(router), config)
    return [
        *foundation(router, COMPONENT, config),
        *policies(router, observed, COMPONENT, names.SMP_PORT, _http_ingress(router, observed)),
        public_service(router, COMPONENT, PROTOCOL),
        _edges_service(router),
        _http_service(router),
        *embedded_redis(router, observed),
        *address_map(router, COMPONENT, observed),
        *_control_secret(router, observed),
        *edges,
        *(autoscaler(router, observed) if edges else ()),
        *(service_monitor(router, observed) if edges else ()),
    ]


def _control_secret(router: Router, observed: Observed) -> list[Manifest]:
    if observed.control_secret is None:
        return []
    secret = child(router, "v1", "Secret", names.control(router.name), "control", type="Opaque")
    return [{**secret, "data": dict(observed.control_secret)}]


def _program(router: Router) -> Program:
    environment = []
    if "basicAuth" in router.spec:
        given = router.spec["basicAuth"]
        environment.append(secret_variable("WEIR_AUTH_CREATE_PASSWORD", given["name"], given["key"]))
    if "control" in router.spec:
        # `weir smp ctl` in the pod reads the same variables, so a command in the pod needs no password typed.
        name = router.spec["control"].get("secretName") or names.control(router.name)
        environment += [
            secret_variable("WEIR_AUTH_CONTROL_PORT_ADMIN_PASSWORD", name, names.CONTROL_ADMIN),
            secret_variable("WEIR_AUTH_CONTROL_PORT_USER_PASSWORD", name, names.CONTROL_USER, optional=True),
        ]
    return Program(
        component=COMPONENT,
        command=["weir", "smp", "edge"],
        ports=_ports(router),
        environment=environment,
        probes=_probes(),
    )


def _ports(router: Router) -> list[dict[str, Any]]:
    smp: dict[str, Any] = {"name": "smp", "containerPort": names.SMP_PORT, "protocol": "TCP"}
    exposure = router.spec["exposure"]
    if exposure["type"] == "HostPort":
        smp["hostPort"] = exposure.get("hostPort") or router.spec["ports"]["smp"]
    return [smp, {"name": "http", "containerPort": names.HTTP_PORT, "protocol": "TCP"}]


def _probes() -> dict[str, Any]:
    """An edge is ready when it listens, holds its lease and does not drain; its /readyz says so."""

    def get(path: str, period: int, failures: int) -> dict[str, Any]:
        return {
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "failureThreshold": failures,
            "timeoutSeconds": 5,
        }

    return {
        "startupProbe": get("/healthz", 1, 120),
        "readinessProbe": get("/readyz", 2, 2),
        "livenessProbe": get("/healthz", 10, 6),
    }


def _http_ingress(router: Router, observed: Observed) -> dict[str, Any]:
    """The peers that may reach the page, health and metrics."""
    readers = list(router.spec["networkPolicy"].get("httpFrom") or [{"podSelector": {}}])
    return {"from": [*readers, operator_peer(observed)], "ports": [{"port": names.HTTP_PORT, "protocol": "TCP"}]}


def _edges_service(router: Router) -> Manifest:
    """A headless Service: it names every ready edge, for metrics and for checks that must speak to several."""
    ports = [
        {"name": "smp", "port": names.SMP_PORT, "targetPort": "smp", "protocol": "TCP"},
        {"name": "http", "port": names.HTTP_PORT, "targetPort": "http", "protocol": "TCP"},
    ]
    spec = {"clusterIP": "None", "selector": selector(router, COMPONENT), "ports": ports}
    return child(router, "v1", "Service", names.edges_service(router.name), "edges", spec=spec)


def _http_service(router: Router) -> Manifest:
    port = {"name": "http", "port": router.spec["ports"]["http"], "targetPort": "http", "protocol": "TCP"}
    spec = {"type": "ClusterIP", "selector": selector(router, COMPONENT), "ports": [port]}
    return child(router, "v1", "Service", names.http_service(router.name), "http", spec=spec)
