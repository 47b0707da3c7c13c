"""The children that every router has, in the order in which they are applied.

NAME-identity and NAME-store are not among them. They are made once, never again, and kept: see keys.py.
"""

from __future__ import annotations

from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, selector
from weir_operator.kinds.routers.embedded_redis import embedded_redis
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kinds.routers.network import policies, public_service
from weir_operator.kinds.routers.scaling import autoscaler, service_monitor
from weir_operator.kinds.routers.workload import Program, deployment
from weir_operator.kube.objects import Manifest


def children(router: Router, observed: Observed, program: Program, config_text: str) -> list[Manifest]:
    """Every child, in the order in which they are applied.

    Pure: the same spec and observations give the same children, byte for byte, in every version that does not mean to
    change them. So upgrading the operator rolls no edge by itself.
    """
    part = program.component
    pods = _pods(router, observed, program, config_text)
    return [
        *_foundation(router, part, config_text),
        *policies(router, observed, part, program.port, program.calls_out),
        public_service(router, part, program.protocol),
        _edges_service(router, program),
        _http_service(router, part),
        *embedded_redis(router, observed),
        *_address_map(router, part, observed),
        *_control_secret(router, observed),
        *pods,
        *(autoscaler(router, observed, part) if pods else ()),
        *(service_monitor(router, observed, part) if pods else ()),
    ]


def _foundation(router: Router, component: str, config_text: str) -> list[Manifest]:
    """Children that the other children refer to: the account of the pods, and their configuration file."""
    data = {names.CONFIG_FILE: config_text}
    return [
        child(router, "v1", "ServiceAccount", router.name, component, automountServiceAccountToken=False),
        child(router, "v1", "ConfigMap", names.config(router.name), component, data=data),
    ]


def _address_map(router: Router, component: str, observed: Observed) -> list[Manifest]:
    """The address, for other programs in the namespace."""
    if observed.address is None:
        return []
    data = {names.ADDRESS: observed.address}
    return [child(router, "v1", "ConfigMap", names.address(router.name), component, data=data)]


def _control_secret(router: Router, observed: Observed) -> list[Manifest]:
    if observed.control_secret is None:
        return []
    secret = child(router, "v1", "Secret", names.control(router.name), "control", type="Opaque")
    return [{**secret, "data": dict(observed.control_secret)}]


def _edges_service(router: Router, program: Program) -> Manifest:
    """A headless Service: it names every ready edge, for metrics and for checks that must speak to several."""
    protocol = program.protocol
    ports = [
        {"name": protocol, "port": program.port, "targetPort": protocol, "protocol": "TCP"},
        {"name": "http", "port": names.HTTP_PORT, "targetPort": "http", "protocol": "TCP"},
    ]
    spec = {"clusterIP": "None", "selector": selector(router, program.component), "ports": ports}
    return child(router, "v1", "Service", names.edges_service(router.name), "edges", spec=spec)


def _http_service(router: Router, component: str) -> Manifest:
    port = {"name": "http", "port": router.spec["ports"]["http"], "targetPort": "http", "protocol": "TCP"}
    spec: dict[str, Any] = {"type": "ClusterIP", "selector": selector(router, component), "ports": [port]}
    return child(router, "v1", "Service", names.http_service(router.name), "http", spec=spec)


def _pods(router: Router, observed: Observed, program: Program, config_text: str) -> list[Manifest]:
    """The Deployment and the Secret of its pods. Without the Secret the pods could not start, so there is neither;
    a Deployment that exists is then left as it is."""
    if observed.edge_secret is None:
        return []
    part = program.component
    notes = observed.edge_annotations
    secret = child(router, "v1", "Secret", names.edge(router.name), part, annotations=notes, type="Opaque")
    return [
        {**secret, "data": dict(observed.edge_secret)},
        deployment(router, observed, program, config_text),
        *_disruption_budget(router, part),
    ]


def _disruption_budget(router: Router, part: str) -> list[Manifest]:
    scaling = router.spec.get("autoscaling")
    least = scaling["minReplicas"] if scaling else router.spec["replicas"]
    # A single pod must stay evictable, or no node can be drained.
    if not router.spec["disruptionBudget"] or least < 2 or router.spec["maintenance"]["edges"] == "Stopped":
        return []
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": selector(router, part)}}
    return [child(router, "policy/v1", "PodDisruptionBudget", router.name, part, spec=spec)]
