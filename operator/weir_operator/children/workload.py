"""The edges: one Deployment, whose pods own sockets and nothing else."""

from __future__ import annotations

from typing import Any

from weir_operator import names
from weir_operator.children.common import child, component, container, labels, pod, resources, selector
from weir_operator.children.config import config_hash
from weir_operator.model import Manifest, Observed, Router

# Endpoints forget a leaving pod before it stops accepting.
_PRE_STOP_SECONDS = 3
# Time after the drain's own limit before the kubelet kills.
_SLACK_SECONDS = 7


def deployment(router: Router, observed: Observed, config_text: str) -> Manifest:
    part = component(router)
    host_port = router.spec["exposure"]["type"] == "HostPort"
    count = replicas(router, observed)
    # One more during a roll, so that none is missing; on host ports the old one must go first.
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
            "template": {"metadata": meta, "spec": _pod(router, observed, part)},
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


def _pod(router: Router, observed: Observed, part: str) -> dict[str, Any]:
    grace = router.spec["rollout"]["gracePeriodSeconds"] + _PRE_STOP_SECONDS + _SLACK_SECONDS
    spec = pod(router, observed, part, terminationGracePeriodSeconds=grace)
    spec.setdefault("affinity", _apart(router, part))
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
    if not router.smp:
        for name, where in (("apns", names.APNS_DIR), ("fcm", names.FCM_DIR)):
            if name in router.spec["push"]:
                secret = router.spec["push"][name]["secretName"]
                volumes.append({"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}})
                mounts.append({"name": name, "mountPath": where, "readOnly": True})
    spec["containers"] = [
        container(
            router,
            observed,
            part,
            _command(router),
            env=_environment(router),
            ports=_ports(router),
            volumeMounts=mounts,
            resources=resources(router.spec["resources"]),
            lifecycle={"preStop": {"sleep": {"seconds": _PRE_STOP_SECONDS}}},
            **(_probes() if router.smp else {}),
        )
    ]
    spec["volumes"] = volumes
    return spec


def _command(router: Router) -> list[str]:
    program = ["weir", "smp", "edge"] if router.smp else ["weir", "ntf"]
    return [*program, "--config", f"{names.CONFIG_DIR}/{names.CONFIG_FILE}"]


def _ports(router: Router) -> list[dict[str, Any]]:
    if not router.smp:
        return [{"name": "ntf", "containerPort": names.NTF_TARGET_PORT, "protocol": "TCP"}]
    smp: dict[str, Any] = {"name": "smp", "containerPort": names.SMP_PORT, "protocol": "TCP"}
    exposure = router.spec["exposure"]
    if exposure["type"] == "HostPort":
        smp["hostPort"] = exposure.get("hostPort") or router.spec["ports"]["smp"]
    return [smp, {"name": "http", "containerPort": names.HTTP_PORT, "protocol": "TCP"}]


def _environment(router: Router) -> list[dict[str, Any]]:
    def secret(variable: str, name: str, key: str) -> dict[str, Any]:
        return {"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}

    found = []
    redis = router.spec["redis"]
    if router.embedded is not None:
        found.append({"name": "WEIR_REDIS_PASSWORD_FILE", "value": f"{names.SECRET_DIR}/{names.REDIS_PASSWORD}"})
    else:
        external = redis["external"]
        if "urlSecret" in external:
            found.append(secret("WEIR_REDIS_URL", external["urlSecret"]["name"], external["urlSecret"]["key"]))
        if "passwordSecret" in external:
            given = external["passwordSecret"]
            found.append(secret("WEIR_REDIS_PASSWORD", given["name"], given["key"]))
    if router.smp and "basicAuth" in router.spec:
        given = router.spec["basicAuth"]
        found.append(secret("WEIR_AUTH_CREATE_PASSWORD", given["name"], given["key"]))
    return found


def _probes() -> dict[str, Any]:
    """Readiness is the edge's own word: listening, holding its lease, not draining."""

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


def _apart(router: Router, part: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": selector(router, part)}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }
