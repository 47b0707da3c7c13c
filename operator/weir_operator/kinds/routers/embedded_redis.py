"""The embedded Redis: one pod, an append-only file on a volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, labels, selector
from weir_operator.kinds.routers.model import Observed, Router, embedded_settings
from weir_operator.kinds.routers.pods import container, pod, resources
from weir_operator.kube.objects import Manifest


def embedded_redis(router: Router, observed: Observed) -> list[Manifest]:
    settings = embedded_settings(router)
    if settings is None:
        return []
    name = names.redis(router.name)
    port = {"name": "redis", "port": names.REDIS_PORT, "targetPort": "redis", "protocol": "TCP"}
    service = child(
        router,
        "v1",
        "Service",
        name,
        "redis",
        # Pods must find Redis as soon as it answers, before its readiness probe has noticed.
        spec={
            "type": "ClusterIP",
            "publishNotReadyAddresses": True,
            "selector": selector(router, "redis"),
            "ports": [port],
        },
    )
    storage = settings["storage"]
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(storage["size"])}},
    }
    if "storageClassName" in storage:
        claim["storageClassName"] = storage["storageClassName"]
    stateful_set = child(
        router,
        "apps/v1",
        "StatefulSet",
        name,
        "redis",
        spec={
            "replicas": 1,
            "serviceName": name,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": selector(router, "redis")},
            "updateStrategy": {"type": "RollingUpdate"},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": storage["whenDeleted"], "whenScaled": "Retain"},
            "volumeClaimTemplates": [
                {"metadata": {"name": "data", "labels": labels(router, "redis")}, "spec": claim},
            ],
            "template": {"metadata": {"labels": labels(router, "redis")}, "spec": _pod(router, observed, settings)},
        },
    )
    return [service, stateful_set]


def _pod(router: Router, observed: Observed, settings: Mapping[str, Any]) -> dict[str, Any]:
    spec = pod(router, observed, terminationGracePeriodSeconds=60)
    command = [
        "weir",
        "redis",
        "--dir",
        f"{names.DATA_DIR}/redis",
        "--port",
        str(names.REDIS_PORT),
        "--password-file",
        f"{names.REDIS_SECRET_DIR}/{names.REDIS_PASSWORD}",
        "--durability",
        router.spec["redis"]["durability"],
    ]
    probe = {"tcpSocket": {"port": "redis"}, "periodSeconds": 2, "failureThreshold": 3}
    spec["containers"] = [
        container(
            router,
            observed,
            "redis",
            command,
            ports=[{"name": "redis", "containerPort": names.REDIS_PORT, "protocol": "TCP"}],
            volumeMounts=[
                {"name": "data", "mountPath": names.DATA_DIR},
                {"name": "password", "mountPath": names.REDIS_SECRET_DIR, "readOnly": True},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
            resources=resources(settings["resources"]),
            readinessProbe=probe,
            startupProbe={**probe, "failureThreshold": 300},
        )
    ]
    password = {"key": names.REDIS_PASSWORD, "path": names.REDIS_PASSWORD}
    spec["volumes"] = [
        {
            "name": "password",
            "secret": {"secretName": names.store(router.name), "defaultMode": 0o440, "items": [password]},
        },
        {"name": "tmp", "emptyDir": {}},
    ]
    return spec
