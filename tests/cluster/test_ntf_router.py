"""A notification router on the real image, with notifications flowing through it while everything happens to it.

Devices and push services are outside the pods (devices.py). Each device waits for the push of one message before the
next is sent, so a notification that is lost stops its device. The tests stand on each other: each takes the router as
the one before left it, and leaves it Ready.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.conftest import router
from tests.cluster.devices import KEY_ID, TEAM_ID, TOPIC, Devices
from tests.cluster.harness import Cluster, Kube, wait_for
from tests.cluster.live import NODE, Live
from tests.cluster.operator_process import OperatorProcess
from weir.crypto import p256

pytestmark = pytest.mark.timeout(600)

SMP_PORT, NTF_PORT = 30623, 30643
DEVICES = 6
NEW_KEY_ID = "NEW4567890"
SMALL = {
    "replicas": 2,
    "rollout": {"gracePeriodSeconds": 10, "drainRate": 100},
    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
}


def exposed(port: int) -> dict[str, Any]:
    return {"hosts": [NODE], "exposure": {"type": "NodePort", "nodePort": port}, **SMALL}


def ntf_spec(devices: Devices) -> dict[str, Any]:
    ca = {"name": "authority"}
    return {
        **exposed(NTF_PORT),
        "push": {
            "apns": {
                "secretName": "apple",
                "keyId": KEY_ID,
                "teamId": TEAM_ID,
                "topic": TOPIC,
                "host": devices.services["apns"],
                "ca": ca,
            },
            "webPush": {"allowPrivateEndpoints": True, "ca": ca, "subject": "mailto:ntf@example.org"},
        },
        "subscriber": {"allowPrivateServers": True, "ownDomains": [NODE]},
        "redis": {"durability": "fsync"},
    }


@pytest.fixture(scope="module")
def devices(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devices]:
    """The push services; nobody has joined yet."""
    with Devices(cluster, tmp_path_factory.mktemp("devices"), NODE) as running:
        yield running


@pytest.fixture(scope="module")
def smp(cluster: Cluster, kube: Kube, namespace: str, real_operator: OperatorProcess) -> Live:
    kube.create(router("smp", **exposed(SMP_PORT)), namespace)
    return Live(cluster, kube, namespace, "SMPRouter", "smp")


@pytest.fixture(scope="module")
def ntf(
    cluster: Cluster, kube: Kube, namespace: str, real_operator: OperatorProcess, smp: Live, devices: Devices
) -> Live:
    kube.create(router("ntf", "NTFRouter", **ntf_spec(devices)), namespace)
    found = Live(cluster, kube, namespace, "NTFRouter", "ntf")
    # Without its Secrets, the router says which one is missing.
    found.condition("PushReady", "False", "SecretMissing")
    for name, file in (("apple", "authkey.p8"), ("authority", "ca.crt")):
        path = devices.directory / file
        cluster.run("kubectl", "-n", namespace, "create", "secret", "generic", name, f"--from-file={path}")
    found.condition("PushReady", "True", "Configured")
    smp.settle(2)
    found.settle(2, 180)
    return found


@pytest.fixture(scope="module")
def flowing(ntf: Live, smp: Live, devices: Devices) -> Devices:
    devices.join(DEVICES, ntf.address, smp.address)
    devices.flows()
    return devices


def test_a_device_outside_goes_the_whole_way_through_two_edges(ntf: Live, smp: Live) -> None:
    fingerprint, vapid = ntf.status["fingerprint"], ntf.status["vapidKey"]
    assert ntf.address == f"ntf://{fingerprint}@{NODE}:{NTF_PORT}?vapid={vapid}"
    check = ("ntf", "check", "--address", ntf.address, "--smp", smp.address, "--edges", "2")
    places = [f"--connect={pod['status']['podIP']}:5443" for pod in ntf.edges()]
    told = ntf.cluster.run(sys.executable, "-m", "weir.cli.main", *check, *places, inside=True)
    assert "SCHK: the notification router is subscribed to the queue" in told
    assert told.count("PING") == 2


def test_notifications_flow_and_the_status_counts(ntf: Live, flowing: Devices) -> None:
    def counted() -> bool:
        status = ntf.status
        servers = status.get("servers") or {}
        return (
            status.get("tokens", 0) >= DEVICES
            and status.get("subscriptions", 0) >= DEVICES
            and servers.get("summary") == "1/1"
        )

    wait_for("the numbers", counted, 30)
    ntf.condition("Subscribed", "True", "AllServers")
    shown = ntf.cluster.run("kubectl", "-n", ntf.namespace, "get", "ntfr", "ntf")
    assert "1/1" in shown and "2/2" in shown and ntf.address in shown


def test_scaled_from_1_to_3_to_1(ntf: Live, flowing: Devices) -> None:
    for edges in (1, 3, 1, 2):
        ntf.scale(edges)
        flowing.flows()


def test_an_edge_is_killed(ntf: Live, flowing: Devices) -> None:
    ntf.kill_edge()
    flowing.flows()


def test_redis_is_killed(ntf: Live, flowing: Devices) -> None:
    ntf.kill_redis()
    flowing.flows()


def test_an_edge_of_the_smp_router_is_killed(smp: Live, flowing: Devices) -> None:
    smp.kill_edge()
    flowing.flows()


def test_edges_are_drained_one_at_a_time(ntf: Live, flowing: Devices) -> None:
    ntf.drain_both()
    flowing.flows()


def test_an_upgrade_rolls_the_edges(ntf: Live, flowing: Devices) -> None:
    """A new image changes the pod template, as this annotation does."""
    assert ntf.roll({"podAnnotations": {"upgraded": "yes"}}) >= 1, "at most one is missing"
    flowing.flows()


def test_the_key_of_apple_is_changed(ntf: Live, flowing: Devices) -> None:
    """The new key is put beside the old one; the edges that have it are those that know its id."""
    path = flowing.directory / "new.p8"
    p256.save_key(path, p256.generate())
    flowing.order(team=str(path), id=NEW_KEY_ID)
    files = [f"--from-file={name}={flowing.directory / name}" for name in ("authkey.p8", "new.p8")]
    line = (
        "kubectl",
        "-n",
        ntf.namespace,
        "create",
        "secret",
        "generic",
        "apple",
        *files,
        "--dry-run=client",
        "-o=yaml",
    )
    made = ntf.cluster.run(*line)
    ntf.cluster.run("kubectl", "-n", ntf.namespace, "apply", "-f", "-", stdin=made)
    ntf.roll({"push": {"apns": {"key": "new.p8", "keyId": NEW_KEY_ID}}})
    flowing.flows()
    ntf.condition("PushReady", "True", "Configured")


def test_the_key_of_web_push_is_changed_without_a_restart(ntf: Live, smp: Live, flowing: Devices) -> None:
    """Devices that subscribed with the old key still get pushes from it, and new devices subscribe with the new one."""
    pods, old = ntf.names(), ntf.status["vapidKey"]

    def keys() -> list[str]:
        return [p256.public_text(key) for key in p256.keys_from_pem(ntf.secret("vapid", "vapid.key"))]

    def everywhere() -> bool:
        text = ntf.secret("vapid", "vapid.key").decode()
        return all(ntf.file(pod, "/etc/weir/web-push/vapid.key") == text for pod in pods)

    ntf.annotate(rotate_vapid_key="1")
    wait_for("a second key", lambda: len(keys()) == 2, 30)
    new = keys()[1]
    assert ntf.status["vapidKey"] == old == keys()[0]
    wait_for("the pods' files", everywhere, 180, 2)
    flowing.flows()
    # The ten minutes are over.
    past = {"metadata": {"annotations": {"weir.dev/vapid-key-added": "2026-01-01T00:00:00Z"}}}
    ntf.kube.merge("Secret", "ntf-vapid", ntf.namespace, past)
    wait_for("the new address", lambda: ntf.address.endswith(f"?vapid={new}"), 30)
    assert keys() == [new, old]
    # Edges that have not seen the change of order yet know both keys.
    flowing.join(2, ntf.address, smp.address)
    flowing.flows()
    wait_for("the pods' files", everywhere, 180, 2)
    flowing.flows()
    assert ntf.names() == pods, "no edge was replaced"
    assert {"VapidKeyCreated", "VapidKeyAdded", "VapidKeyRotated"} <= set(ntf.events())


def test_the_online_certificate_is_rotated_without_dropping_a_device(ntf: Live, flowing: Devices) -> None:
    watcher = [sys.executable, "-m", "tests.cluster.watcher", ntf.address, "60"]
    with subprocess.Popen(ntf.cluster.command(*watcher), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["connected"]
        ntf.annotate(renew_certificate="now")
        assert process.stdout.readline().split() == ["rotated"]
        assert process.wait(10) == 0
    ntf.settle(2)
    flowing.flows()


def test_an_operator_that_is_killed_is_not_missed(ntf: Live, flowing: Devices, real_operator: OperatorProcess) -> None:
    before = ntf.names()
    real_operator.kill()
    flowing.flows()
    real_operator.start()
    real_operator.wait_working()
    ntf.settle(2)
    assert ntf.names() == before


def test_nothing_was_lost(flowing: Devices, shown: Callable[[str], None]) -> None:
    flowing.finish(kills=4)
    shown(flowing.report())


def test_it_is_deleted_in_order(ntf: Live, kube: Kube) -> None:
    ntf.patch({"identity": {"whenDeleted": "Delete"}, "redis": {"embedded": {"storage": {"whenDeleted": "Delete"}}}})
    kube.delete("NTFRouter", "ntf", ntf.namespace)
    kube.gone("NTFRouter", "ntf", ntf.namespace, 90)
    wait_for("no pod", lambda: not ntf.edges(), 60)
    left = {body["metadata"]["name"] for body in kube.list("Secret", ntf.namespace)}
    assert {name for name in left if name.startswith("ntf-")} == set()
    # The Secrets of the administrator stay.
    assert {"apple", "authority"} <= left
