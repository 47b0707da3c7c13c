"""SMPService on a real router: registered, connected, rotated, deleted, and with the right status each time."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import router
from tests.cluster.harness import REPO, Cluster, Kube, wait_for
from tests.cluster.operator_process import OperatorProcess
from weir.crypto.certificates import fingerprint, make_self_signed
from weir.crypto.pem import certificates_to_pem, key_to_pem

NODE_PORT = 30524


class Desk:
    """The router, and the service's programs outside its pods."""

    def __init__(self, cluster: Cluster, kube: Kube, namespace: str, directory: Path) -> None:
        self.cluster, self.kube, self.namespace, self.directory = cluster, kube, namespace, directory
        self.address: str = kube.get("SMPRouter", "home", namespace)["status"]["address"]

    def _line(self, identity: str, verb: str) -> list[str]:
        program = [sys.executable, "-m", "tests.cluster.service_client"]
        return self.cluster.command(*program, self.address, str(self.directory / identity), verb)

    def run(self, identity: str, verb: str) -> list[str]:
        done = subprocess.run(
            self._line(identity, verb), capture_output=True, text=True, cwd=REPO, timeout=30, check=True
        )
        return done.stdout.split()

    @contextmanager
    def subscribed(self, identity: str) -> Iterator[list[str]]:
        process = subprocess.Popen(
            self._line(identity, "subs"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPO
        )
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()
        finally:
            process.communicate()

    def keep(self, identity: str, certificate: bytes, key: bytes) -> None:
        folder = self.directory / identity
        folder.mkdir()
        (folder / "tls.crt").write_bytes(certificate)
        (folder / "tls.key").write_bytes(key)

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.kube.get("SMPService", name, self.namespace).get("status") or {}
        return found

    def await_status(self, name: str, seconds: float = 30, **expected: Any) -> dict[str, Any]:
        def fits() -> dict[str, Any] | None:
            status = self.status(name)
            return status if all(status.get(key) == value for key, value in expected.items()) else None

        return wait_for(f"{expected} of {name}", fits, seconds)


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, namespace: str, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    directory = tmp_path_factory.mktemp("operator")
    options = ("--observe-seconds=2",)
    with OperatorProcess(cluster, directory, image=image, namespace=namespace, options=options) as process:
        yield process.wait_working()


@pytest.fixture(scope="module")
def desk(cluster: Cluster, kube: Kube, namespace: str, operator: OperatorProcess, tmp_path_factory: Any) -> Desk:
    spec = {"hosts": ["10.98.0.1"], "replicas": 1, "exposure": {"type": "NodePort", "nodePort": NODE_PORT}}
    kube.create(router("home", **spec), namespace)
    kube.await_condition("SMPRouter", "home", namespace, "Ready")
    return Desk(cluster, kube, namespace, tmp_path_factory.mktemp("service"))


def text(certificate: bytes) -> str:
    return base64.urlsafe_b64encode(fingerprint(certificate)).decode()


def test_a_service_is_known_connected_and_rotated(kube: Kube, namespace: str, desk: Desk) -> None:
    kube.create(router("app", "SMPService", router="home", role="Messaging", label="the app", keyPair={}), namespace)
    kube.await_condition("SMPService", "app", namespace, "Ready", "True", "Accepted", 30)
    secret = kube.get("Secret", "app-service", namespace)
    assert secret["type"] == "kubernetes.io/tls"
    desk.keep("first", *(base64.b64decode(secret["data"][key]) for key in ("tls.crt", "tls.key")))
    assert desk.status("app")["fingerprints"] != []
    assert desk.status("app")["secretName"] == "app-service"

    service_id = desk.run("first", "new")[0]
    assert desk.run("first", "new") == [service_id]
    desk.await_status("app", queues=2)
    with desk.subscribed("first") as told:
        assert told == [service_id, "2", "exact"]
        status = desk.await_status("app", connected=True, drift="ok")
        assert status["edge"]
        assert status["lastSubscribed"]
    desk.await_status("app", connected=False)

    # A second identity, not listed: it is another service, and has none of the first one's queues.
    second = make_self_signed()
    desk.keep("second", certificates_to_pem((second.certificate,)), key_to_pem(second.key))

    # Listed: it continues the service, and the first is accepted beside it.
    kube.merge("SMPService", "app", namespace, {"spec": {"fingerprints": [text(second.certificate)]}})
    kube.await_condition("SMPService", "app", namespace, "Rotating", "True", "Overlap", 30)
    with desk.subscribed("second") as told:
        assert told == [service_id, "2", "exact"]
    assert desk.run("first", "new") == [service_id]
    assert "Rotated" in [reason for reason, _ in kube.events(namespace, "app")]

    # No longer listed: the first is refused.
    kube.merge("SMPService", "app", namespace, {"spec": {"keyPair": None}})
    desk.await_status("app", fingerprints=[text(second.certificate)])
    assert desk.run("first", "new")[0] == "refused"
    with desk.subscribed("second") as told:
        assert told == [service_id, "3", "exact"]
    kube.await_condition("SMPService", "app", namespace, "Rotating", "False", "Settled", 30)

    # The same certificate in another role is refused, and said so.
    other = router("bell", "SMPService", router="home", role="Notifier", fingerprints=[text(second.certificate)])
    kube.create(other, namespace)
    kube.await_condition("SMPService", "bell", namespace, "Ready", "False", "RoleMismatch", 30)


def test_a_service_without_its_router_waits_for_it(kube: Kube, namespace: str, operator: OperatorProcess) -> None:
    kube.create(router("lost", "SMPService", router="nowhere", role="Messaging", keyPair={}), namespace)
    found = kube.await_condition("SMPService", "lost", namespace, "Ready", "False", "RouterMissing", 30)
    assert "nowhere" in str(found["status"]["conditions"])
    kube.delete("SMPService", "lost", namespace)
    kube.gone("SMPService", "lost", namespace, 20)


def test_a_service_is_forgotten_when_told_so(kube: Kube, namespace: str, desk: Desk) -> None:
    spec = {"router": "home", "role": "Messaging", "keyPair": {"whenDeleted": "Delete"}, "whenDeleted": "Forget"}
    kube.create(router("brief", "SMPService", **spec), namespace)
    kube.await_condition("SMPService", "brief", namespace, "Ready", "True", seconds=30)
    secret = kube.get("Secret", "brief-service", namespace)
    desk.keep("brief", *(base64.b64decode(secret["data"][key]) for key in ("tls.crt", "tls.key")))
    before = desk.run("brief", "new")[0]
    kube.delete("SMPService", "brief", namespace)
    kube.gone("SMPService", "brief", namespace, 30)
    kube.gone("Secret", "brief-service", namespace, 30)
    # A client that still has the certificate starts anew.
    assert desk.run("brief", "new")[0] not in (before, "refused")
