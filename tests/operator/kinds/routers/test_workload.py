"""The pod template, byte by byte: a change rolls every edge of every router at the next upgrade."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.operator.world import by_name, desired_state, router_of
from weir_operator.kinds import names
from weir_operator.kinds.routers.model import Defaults, Observed
from weir_operator.kinds.routers.workload import replicas

GOLDEN = Path(__file__).parent / "golden"
SEEN = Observed(Defaults("weir:test"), edge_secret={}, address="smp://x@y")
RICH: dict[str, Any] = {
    "hosts": ["smp.example.org"],
    "basicAuth": {"name": "auth"},
    "redis": {"external": {"urlSecret": {"name": "redis"}, "passwordSecret": {"name": "redis"}}, "durability": "fsync"},
    "exposure": {"type": "HostPort", "hostPort": 443},
    "placement": {"nodeSelector": {"a": "b"}},
    "imagePullSecrets": ["registry"],
}
NTF_RICH: dict[str, Any] = {
    "hosts": ["ntf.example.org"],
    "control": {},
    "push": {
        "apns": {"secretName": "apple", "keyId": "K" * 10, "teamId": "T" * 10, "topic": "org.example.app"},
        "webPush": {"secretName": "vapid", "ca": {"name": "authority"}},
    },
    "redis": {"external": {"url": "rediss://redis", "passwordSecret": {"name": "redis"}}, "prefix": "push"},
}
CASES = {
    "edge": ("Deployment", "r", names.SMP_ROUTER, {}),
    "edge-rich": ("Deployment", "r", names.SMP_ROUTER, RICH),
    "redis": ("StatefulSet", "r-redis", names.SMP_ROUTER, {}),
    "ntf": ("Deployment", "r", names.NTF_ROUTER, {}),
    "ntf-rich": ("Deployment", "r", names.NTF_ROUTER, NTF_RICH),
}


@pytest.mark.parametrize("case", CASES)
def test_pod_template(case: str) -> None:
    kind, name, router, spec = CASES[case]
    template = by_name(desired_state(router_of(router, **spec), SEEN))[kind, name]["spec"]["template"]
    path = GOLDEN / f"{case}.json"
    text = json.dumps(template, indent=2, sort_keys=True) + "\n"
    assert path.read_text() == text, (
        f"meant? then write this to {path}, and say in docs/upgrade.md that edges roll:\n{text}"
    )


@pytest.mark.parametrize("kind", [names.SMP_ROUTER, names.NTF_ROUTER])
@pytest.mark.parametrize("grace", [1, 60, 86_400])
def test_a_pod_leaves_its_services_before_it_drains_and_drains_before_it_is_killed(kind: str, grace: int) -> None:
    """preStop runs before SIGTERM. Meanwhile the endpoints drop the pod, and clients that still come are served."""
    router = router_of(kind, rollout={"gracePeriodSeconds": grace, "drainRate": 500})
    spec = by_name(desired_state(router, SEEN))["Deployment", "r"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    leaving = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert leaving >= 3
    assert spec["terminationGracePeriodSeconds"] >= leaving + grace + 5
    text = by_name(desired_state(router, SEEN))["ConfigMap", "r-config"]["data"]["weir.toml"]
    assert tomllib.loads(text)["drain"]["grace"] == f"{grace}s"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_replicas() -> None:
    scaled = {"autoscaling": {"minReplicas": 2, "maxReplicas": 4}}
    for spec, seen, expected in (
        ({"replicas": 3}, 7, 3),
        ({"replicas": 3, "maintenance": {"edges": "Stopped"}}, 7, 0),
        (scaled, None, 2),
        (scaled, 3, 3),
        (scaled, 9, 4),
        ({**scaled, "replicas": 9}, 0, 4),
    ):
        assert replicas(router_of(**spec), Observed(replicas=seen)) == expected
