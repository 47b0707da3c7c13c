"""The pods of a router: one Deployment. The kind says which program they run and what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, labels, selector
from weir_operator.kinds.routers.config import config_hash
from weir_operator.kinds.routers.model import Observed, Router, embedded_settings
from weir_operator.kinds.routers.pods import container, pod, resources
from weir_operator.kube.objects import Manifest

# Time for the endpoints to drop a leaving pod before it stops to accept.
_PRE_STOP_SECONDS = 3
# Time after the drain's own limit before the kubelet kills.
_SLACK_SECONDS = 7


@dataclass(frozen=True, slots=True)
class Mounted:
    """A Secret of the pods, and the directory where they find it."""

    secret: str
    directory: str


@dataclass(frozen=True, slots=True)
class Program:
    """The program that the pods of a router run."""

    component: str  # in the labels of the pods, and name of the container
    protocol: str  # name of its public port
    port: int  # that it listens on
    command: list[str]  # without --config
    environment: list[dict[str, Any]] = field(default_factory=list)
    secrets: dict[str, Mounted] = field(default_factory=dict)  # by the name of the volume
    calls_out: bool = False  # needs to reach servers that nobody can name beforehand


def deployment(router: Router, observed: Observed, program: Program, config_text: str) -> Manifest:
    part = program.component
    host_port = router.spec["exposure"]["type"] == "HostPort"
    count = replicas(router, observed)
    # A roll starts one pod more, so that no pod is missing meanwhile. On host ports the old pod has to leave first.
    surge = 0 if host_port else 1
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0 if surge and count < 2 else 1},
    }
    meta: dict[str, Any] = {
        "labels": {**(router.spec.get("podLabels") or {}), **labels(router, part)},
        "annotations": {**(router.spec.get("podAnnotations") or {}), names.CONFIG_HASH: config_hash(config_text)},
    }
    return child(
        router,
        "apps/v1",
        "Deployment",
        router.name,
        part,
        spec={
            "replicas": count,
            "revisionHistoryLimit": 3,
            "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": selector(router, part)},
            "strategy": strategy,
            "template": {"metadata": meta, "spec": _pod(router, observed, program)},
        },
    )


def replicas(router: Router, observed: Observed) -> int:
    """The autoscaler's number while it has one within its bounds, else the spec's."""
    if router.spec["maintenance"]["edges"] == "Stopped":
        return 0
    count: int = router.spec["replicas"]
    scaling = router.spec.get("autoscaling")
    if scaling is None:
        return count
    if observed.replicas:
        count = observed.replicas
    return int(min(max(count, scaling["minReplicas"]), scaling["maxReplicas"]))


def secret_variable(variable: str, name: str, key: str, *, optional: bool = False) -> dict[str, Any]:
    """An environment variable whose value is in a Secret. With `optional`, pods start without the variable too."""
    reference = {"name": name, "key": key} | ({"optional": True} if optional else {})
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}


def redis_environment(router: Router) -> list[dict[str, Any]]:
    """How the pods get what is secret about Redis."""
    if embedded_settings(router) is not None:
        return [{"name": "WEIR_REDIS_PASSWORD_FILE", "value": f"{names.SECRET_DIR}/{names.REDIS_PASSWORD}"}]
    external = router.spec["redis"]["external"]
    variables = (("urlSecret", "WEIR_REDIS_URL"), ("passwordSecret", "WEIR_REDIS_PASSWORD"))
    return [
        secret_variable(variable, external[part]["name"], external[part]["key"])
        for part, variable in variables
        if part in external
    ]


def _control_environment(router: Router) -> list[dict[str, Any]]:
    """The passwords of the control port. A command in the pod reads the same variables, so nobody has to type them."""
    if "control" not in router.spec:
        return []
    name = router.spec["control"].get("secretName") or names.control(router.name)
    return [
        secret_variable("WEIR_AUTH_CONTROL_PORT_ADMIN_PASSWORD", name, names.CONTROL_ADMIN),
        secret_variable("WEIR_AUTH_CONTROL_PORT_USER_PASSWORD", name, names.CONTROL_USER, optional=True),
    ]


def _ports(router: Router, program: Program) -> list[dict[str, Any]]:
    public: dict[str, Any] = {"name": program.protocol, "containerPort": program.port, "protocol": "TCP"}
    exposure = router.spec["exposure"]
    if exposure["type"] == "HostPort":
        public["hostPort"] = exposure.get("hostPort") or router.spec["ports"][program.protocol]
    return [public, {"name": "http", "containerPort": names.HTTP_PORT, "protocol": "TCP"}]


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


def _pod(router: Router, observed: Observed, program: Program) -> dict[str, Any]:
    grace = router.spec["rollout"]["gracePeriodSeconds"] + _PRE_STOP_SECONDS + _SLACK_SECONDS
    spec = pod(router, observed, terminationGracePeriodSeconds=grace)
    spec.setdefault("affinity", _apart(router, program.component))
    mounts = [
        {"name": "config", "mountPath": names.CONFIG_DIR, "readOnly": True},
        {"name": "edge", "mountPath": names.SECRET_DIR, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": names.config(router.name)}},
        {"name": "edge", "secret": {"secretName": names.edge(router.name), "defaultMode": 0o440}},
        {"name": "tmp", "emptyDir": {}},
    ]
    for name, mounted in program.secrets.items():
        volumes.append({"name": name, "secret": {"secretName": mounted.secret, "defaultMode": 0o440}})
        mounts.append({"name": name, "mountPath": mounted.directory, "readOnly": True})
    spec["containers"] = [
        container(
            router,
            observed,
            program.component,
            [*program.command, "--config", f"{names.CONFIG_DIR}/{names.CONFIG_FILE}"],
            env=[*redis_environment(router), *program.environment, *_control_environment(router)],
            ports=_ports(router, program),
            volumeMounts=mounts,
            resources=resources(router.spec["resources"]),
            lifecycle={"preStop": {"sleep": {"seconds": _PRE_STOP_SECONDS}}},
            **_probes(),
        )
    ]
    spec["volumes"] = volumes
    return spec


def _apart(router: Router, part: str) -> dict[str, Any]:
    """Prefer a node that runs no other pod of this router."""
    term = {"labelSelector": {"matchLabels": selector(router, part)}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }
