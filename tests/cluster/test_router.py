"""One router on the real image, with messages flowing through it from outside its pods, while everything happens to it.

The tests stand on each other: each takes the router as the one before left it, and leaves it Ready.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chaos.worker import PairKeys
from tests.cluster.conftest import router
from tests.cluster.harness import Cluster, Kube, wait_for
from tests.cluster.live import NODE, Live
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.traffic import Traffic

NAME = "live"
NODE_PORT = 30523
SPEC: dict[str, Any] = {
    "hosts": [NODE],
    "replicas": 2,
    "exposure": {"type": "NodePort", "nodePort": NODE_PORT},
    "redis": {"durability": "fsync"},
    "rollout": {"gracePeriodSeconds": 10, "drainRate": 100},
    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
}


@pytest.fixture(scope="module")
def live(cluster: Cluster, kube: Kube, namespace: str, real_operator: OperatorProcess) -> Live:
    kube.create(router(NAME, **SPEC), namespace)
    found = Live(cluster, kube, namespace, "SMPRouter", NAME)
    found.settle(2)
    return found


@pytest.fixture(scope="module")
def traffic(cluster: Cluster, live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traffic]:
    with Traffic(cluster, tmp_path_factory.mktemp("traffic"), live.status["address"]) as running:
        yield running


def test_a_client_outside_uses_two_edges(live: Live) -> None:
    address = live.status["address"]
    assert address == f"smp://{live.status['fingerprint']}@{NODE}:{NODE_PORT}"
    places = [f"--connect={pod['status']['podIP']}:5223" for pod in live.edges()]
    told = live.cluster.run(
        *(sys.executable, "-m", "weir.cli.main", "smp", "check", "--address", address, "--edges", "2", "--service"),
        *places,
        inside=True,
    )
    assert "exact SOKS" in told
    assert told.count("received, acknowledged, deleted") >= 3


def test_status_counts_what_the_edges_count(live: Live, traffic: Traffic) -> None:
    traffic.flows()
    wait_for("connections", lambda: (live.status.get("connections") or 0) >= 8, 30)
    assert live.status["queues"] == 4


def test_scaled_from_1_to_3_to_1(live: Live, traffic: Traffic) -> None:
    for edges in (1, 3, 1, 2):
        live.scale(edges)
        traffic.flows()


def test_an_edge_is_killed(live: Live, traffic: Traffic) -> None:
    live.kill_edge()
    traffic.flows()


def test_redis_is_killed(live: Live, traffic: Traffic) -> None:
    live.kill_redis()
    traffic.flows()


def test_edges_are_drained_one_at_a_time(live: Live, traffic: Traffic) -> None:
    live.drain_both()
    traffic.flows()


def test_an_edge_leaves_its_service_before_its_clients_are_cut(live: Live, traffic: Traffic) -> None:
    """First the endpoint goes, then readiness and the open port, and the clients last."""
    pod = live.edges()[0]
    name, ip = pod["metadata"]["name"], pod["status"]["podIP"]
    address = f"smp://{live.status['fingerprint']}@{ip}:5223"
    watcher = [sys.executable, "-m", "tests.cluster.leaving", address, f"http://{ip}:8000", "60"]

    def is_endpoint() -> bool:
        slices = live.kube.list("EndpointSlice", live.namespace, f"kubernetes.io/service-name={NAME}")
        return any(
            ip in one["addresses"] and one["conditions"]["ready"] for s in slices for one in s["endpoints"] or ()
        )

    with subprocess.Popen(live.cluster.command(*watcher), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("connected ")
        assert is_endpoint()
        live.kube.delete("Pod", name, live.namespace)
        wait_for("the endpoint to go", lambda: not is_endpoint(), 10, 0.05)
        gone = time.monotonic()
        steps = {step: float(moment) for step, moment in (line.split() for line in process.stdout)}
        assert process.wait(10) == 0
    assert gone < steps["unready"] < steps["cut"]
    assert gone < steps["refused"] < steps["cut"]
    live.settle(2)
    traffic.flows()


def test_children_are_deleted(live: Live, traffic: Traffic) -> None:
    names = {
        "Service": [NAME, f"{NAME}-edges", f"{NAME}-http", f"{NAME}-redis"],
        "ConfigMap": [f"{NAME}-config"],
        "Secret": [f"{NAME}-edge"],
        "NetworkPolicy": [NAME],
        "Deployment": [NAME],
    }
    before = {
        kind: {n: live.kube.get(kind, n, live.namespace)["metadata"]["uid"] for n in of} for kind, of in names.items()
    }
    address = live.status["address"]
    for kind, of in names.items():
        for name in of:
            live.kube.delete(kind, name, live.namespace)

    def back() -> bool:
        return all(
            (found := live.kube.find(kind, name, live.namespace)) is not None and found["metadata"]["uid"] != uid
            for kind, of in before.items()
            for name, uid in of.items()
        )

    wait_for("all of them", back, 10)
    live.settle(2)
    traffic.flows()
    assert live.status["address"] == address


def test_a_new_configuration_rolls_the_edges(live: Live, traffic: Traffic) -> None:
    assert live.roll({"limits": {"quota": 100}}) >= 1, "at most one is missing"
    traffic.flows()


def test_the_online_certificate_is_rotated_without_dropping_a_client(live: Live, traffic: Traffic) -> None:
    """A connected client stays connected, and new clients get another certificate under the same address."""
    watcher = [sys.executable, "-m", "tests.cluster.watcher", live.status["address"], "60"]
    with subprocess.Popen(live.cluster.command(*watcher), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline().split()
        assert first[0] == "connected", first
        live.annotate(renew_certificate="now")
        # A new leaf is seen by new connections to both edges, and the first connection has answered all the while.
        last = process.stdout.readline().split()
        assert last[0] == "rotated", last
        assert process.wait(10) == 0
    live.settle(2)
    traffic.flows()


def test_the_password_of_redis_is_rotated_without_a_restart(live: Live, traffic: Traffic) -> None:
    def passwords(secret: str) -> list[str]:
        return live.secret(secret, "redis-password").decode().split()

    def accepted(password: str) -> bool:
        ip = live.kube.get("Service", f"{NAME}-redis", live.namespace)["spec"]["clusterIP"]
        code = f"import redis; print(redis.Redis('{ip}', 6379, password=input()).ping())"
        told = live.cluster.run(sys.executable, "-c", code, inside=True, stdin=password, check=False)
        assert "True" in told or "invalid username-password pair" in told, told
        return "True" in told

    def has(pod: str, password: str) -> bool:
        return live.file(pod, "/etc/weir/edge/redis-password") == password

    before = {pod["metadata"]["uid"] for pod in live.edges()}
    (old,) = passwords("store")
    live.annotate(rotate_redis_password="1")
    wait_for("the switch to the new password", lambda: passwords("edge") == passwords("store")[:1] != [old], 180, 1)
    new, kept = passwords("store")
    assert kept == old
    assert accepted(old) and accepted(new)
    traffic.flows()
    # Redis starts again while some edges may have one password and some the other.
    live.kube.delete("Pod", f"{NAME}-redis-0", live.namespace, grace_period_seconds=0)
    live.condition("StoreReachable", "False", seconds=20)
    live.settle(2)
    traffic.flows()
    for pod in live.edges():
        wait_for("the pod's file", lambda pod=pod: has(pod["metadata"]["name"], new), 180, 2)
    # The overlap of ten minutes is over.
    past = {"metadata": {"annotations": {"weir.dev/redis-password-switched": "2026-01-01T00:00:00Z"}}}
    live.kube.merge("Secret", f"{NAME}-store", live.namespace, past)
    wait_for("the end of the rotation", lambda: passwords("store") == [new], 30)
    wait_for("Redis to refuse the old password", lambda: not accepted(old), 180, 2)
    traffic.flows()
    live.kube.delete("Pod", f"{NAME}-redis-0", live.namespace, grace_period_seconds=0)
    live.condition("StoreReachable", "False", seconds=20)
    live.settle(2)
    traffic.flows()
    assert {pod["metadata"]["uid"] for pod in live.edges()} == before, "no edge was replaced"
    assert {"RedisPasswordAdded", "RedisPasswordSwitched", "RedisPasswordRotated"} <= set(live.events())


def test_queues_are_blocked_and_deleted_from_a_pod(live: Live, traffic: Traffic) -> None:
    pairs = live.cluster.run(
        *(sys.executable, "-m", "tests.cluster.traffic", "pairs", live.status["address"], "1"), inside=True
    )
    queue = PairKeys.from_json(json.loads(pairs)[0])
    sender = base64.urlsafe_b64encode(queue.snd_id).decode()

    def ctl(command: str, *more: str) -> str:
        pod = ("kubectl", "-n", live.namespace, "exec", f"deploy/{NAME}", "--")
        words = ("weir", "smp", "ctl", "--config", "/etc/weir/config/weir.toml", command, "--", sender, *more)
        return live.cluster.run(*pod, *words, check=False).strip()

    assert ctl("status").startswith("AUTH")
    live.patch({"control": {}})
    live.condition("Progressing", "True", "RollingOut")
    live.settle(2)
    assert ctl("status").startswith("status: EntityActive")
    blocked = "EntityBlocked (BlockingInfo {reason = BRSpam, notice = Nothing})"
    assert ctl("block", "reason=spam") == f"ok, queue blocked: {blocked}"
    assert ctl("status").startswith(f"status: {blocked}")
    assert ctl("delete") == "ok, 0 messages deleted"
    assert ctl("status").startswith("error: AUTH")
    # Without the field the passwords are gone, and the Secret too.
    live.patch({"control": None})
    live.condition("Progressing", "True", "RollingOut")
    live.settle(2)
    live.kube.gone("Secret", f"{NAME}-control", live.namespace, 10)
    traffic.flows()


def test_load_brings_more_edges(live: Live, traffic: Traffic) -> None:
    """The edges request 10m of CPU, so the messages of this test are much load."""
    live.patch({"autoscaling": {"minReplicas": 2, "maxReplicas": 3, "targetCPUPercent": 20}})
    wait_for("a third edge", lambda: live.status["edges"]["desired"] == 3, 120)
    live.settle(3)
    traffic.flows()
    live.patch({"autoscaling": None})
    live.settle(2)
    live.kube.gone("HorizontalPodAutoscaler", NAME, live.namespace, 10)


def test_maintenance_stops_and_starts_the_edges(live: Live, traffic: Traffic) -> None:
    live.patch({"maintenance": {"edges": "Stopped"}})
    live.condition("Available", "False", "Stopped")
    wait_for("no edge", lambda: not live.edges(), 60)
    live.condition("StoreReachable", "True")
    live.patch({"maintenance": {"edges": "Running"}})
    live.settle(2)
    traffic.flows()


def test_an_operator_that_is_killed_is_not_missed(live: Live, traffic: Traffic, real_operator: OperatorProcess) -> None:
    before = {pod["metadata"]["name"] for pod in live.edges()}
    real_operator.kill()
    traffic.flows()
    real_operator.start()
    real_operator.wait_working()
    live.settle(2)
    # Adopted as they are: no edge was restarted.
    assert {pod["metadata"]["name"] for pod in live.edges()} == before


def test_nothing_was_lost(traffic: Traffic, shown: Callable[[str], None]) -> None:
    traffic.finish()
    shown(traffic.report())


def test_it_is_deleted_in_order(live: Live, kube: Kube) -> None:
    live.patch({"identity": {"whenDeleted": "Delete"}, "redis": {"embedded": {"storage": {"whenDeleted": "Delete"}}}})
    kube.delete("SMPRouter", NAME, live.namespace)
    kube.gone("SMPRouter", NAME, live.namespace, 90)
    wait_for("no pod", lambda: not kube.list("Pod", live.namespace), 60)
    left = [
        body["metadata"]["name"]
        for kind in ("Secret", "PersistentVolumeClaim")
        for body in kube.list(kind, live.namespace)
    ]
    assert left == []
