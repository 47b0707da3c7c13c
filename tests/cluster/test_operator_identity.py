"""Identity on a real API server: made once, never over an address that clients know; certificates renewed in time."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from tests.cluster.conftest import idle
from tests.cluster.harness import Kube, wait_for
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.test_operator_children import made
from weir.crypto import certificates
from weir.crypto.pem import certificates_from_pem, certificates_to_pem, key_to_pem


def leaf(kube: Kube, namespace: str, name: str) -> str:
    found: str = kube.get("Secret", f"{name}-edge", namespace)["data"]["server.crt"]
    return found


def secret(name: str, **data: bytes) -> dict[str, Any]:
    encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def test_a_lost_identity_is_told_and_nothing_is_made_in_its_place(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    address = made(kube, namespace, name)["status"]["address"]
    backup = kube.get("Secret", f"{name}-identity", namespace)
    edge = kube.get("Secret", f"{name}-edge", namespace)["data"]
    kube.delete("Secret", f"{name}-identity", namespace)
    found = kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityLost", 20)
    assert found["status"]["address"] == address
    # Another reason to look changes nothing about it, and the edges keep what they have.
    kube.merge("SMPRouter", name, namespace, {"spec": {"podLabels": {"look": "again"}}})
    kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityLost", 20)
    assert kube.find("Secret", f"{name}-identity", namespace) is None
    assert kube.get("Secret", f"{name}-edge", namespace)["data"] == edge
    wait_for("the event", lambda: "IdentityLost" in [reason for reason, _ in kube.events(namespace, name)], 10)
    # Put back from a backup, all is well again.
    kube.create({**backup, "metadata": {"name": f"{name}-identity", "labels": backup["metadata"]["labels"]}}, namespace)
    found = kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "True", "Valid", 20)
    assert found["status"]["address"] == address


def test_an_address_is_given_up_only_when_it_is_named(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    first = made(kube, namespace, name)["status"]
    kube.delete("Secret", f"{name}-identity", namespace)
    kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityLost", 20)

    def annotate(value: str) -> None:
        kube.merge("SMPRouter", name, namespace, {"metadata": {"annotations": {"weir.dev/replace-address": value}}})

    annotate("yes")
    kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityLost", 20)
    annotate(first["fingerprint"])
    kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "True", "Valid", 20)
    second = kube.get("SMPRouter", name, namespace)["status"]
    assert second["fingerprint"] != first["fingerprint"]
    assert second["address"] != first["address"]


def test_an_identity_that_was_swapped_is_not_taken(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    before = made(kube, namespace, name)["status"]
    other = certificates.make_ca("ed25519")
    data = secret("x", ca_crt=certificates_to_pem((other.certificate,)), ca_key=key_to_pem(other.key))["data"]
    kube.merge("Secret", f"{name}-identity", namespace, {"data": data})
    found = kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityChanged", 20)
    assert found["status"]["address"] == before["address"]


def test_a_lost_placement_key_comes_back_from_the_edges(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    made(kube, namespace, name)
    before = kube.get("Secret", f"{name}-store", namespace)["data"]
    kube.delete("Secret", f"{name}-store", namespace)
    after = wait_for("the Secret", lambda: kube.find("Secret", f"{name}-store", namespace), 10)
    assert after["data"] == before


def test_the_online_certificate_is_renewed_inside_its_window_and_on_request(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name, certificate={"lifetimeDays": 10, "renewBeforeDays": 2}), namespace)
    first = made(kube, namespace, name)["status"]
    assert first["certificate"]["daysLeft"] == 9
    old = leaf(kube, namespace, name)
    template = kube.get("Deployment", name, namespace)["spec"]["template"]

    # Ten days left are inside a window of twenty.
    kube.merge("SMPRouter", name, namespace, {"spec": {"certificate": {"lifetimeDays": 60, "renewBeforeDays": 20}}})
    wait_for("renewal", lambda: leaf(kube, namespace, name) != old, 10)
    wait_for("status", lambda: kube.get("SMPRouter", name, namespace)["status"]["certificate"]["daysLeft"] == 59, 10)
    renewed = leaf(kube, namespace, name)

    kube.merge("SMPRouter", name, namespace, {"metadata": {"annotations": {"weir.dev/renew-certificate": "1"}}})
    wait_for("renewal on request", lambda: leaf(kube, namespace, name) != renewed, 10)
    again = leaf(kube, namespace, name)
    kube.merge("SMPRouter", name, namespace, {"spec": {"podLabels": {"look": "again"}}})
    wait_for("a look", lambda: "look" in str(kube.get("Deployment", name, namespace)["spec"]["template"]), 10)
    assert leaf(kube, namespace, name) == again, "one request renews once"

    now = kube.get("SMPRouter", name, namespace)["status"]
    assert (now["address"], now["fingerprint"]) == (first["address"], first["fingerprint"])
    # Nothing in the pod template but what was asked for: edges pick the certificate up by themselves.
    last = kube.get("Deployment", name, namespace)["spec"]["template"]
    last["metadata"]["labels"].pop("look")
    assert last == template


def test_a_given_identity_is_used(kube: Kube, namespace: str, operator: OperatorProcess, name: str) -> None:
    ca = certificates.make_ca("ed448")
    given = secret(f"{name}-mine", ca_crt=certificates_to_pem((ca.certificate,)), ca_key=key_to_pem(ca.key))
    kube.create(idle(name, identity={"secretName": f"{name}-mine"}), namespace)
    kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityMissing", 20)
    kube.create(given, namespace)
    found = kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "True", "Ed448", 60)
    fingerprint = base64.urlsafe_b64encode(certificates.fingerprint(ca.certificate)).decode()
    assert found["status"]["fingerprint"] == fingerprint
    assert kube.find("Secret", f"{name}-identity", namespace) is None


def test_an_online_certificate_can_come_without_the_cas_key(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    ca = certificates.make_ca("ed25519")
    online = certificates.make_online(ca, "example.org", "ed25519", days=12)
    kube.create(
        secret(
            f"{name}-mine",
            ca_crt=certificates_to_pem((ca.certificate,)),
            server_crt=certificates_to_pem((online.certificate,)),
            server_key=key_to_pem(online.key),
        ),
        namespace,
    )
    kube.create(idle(name, identity={"secretName": f"{name}-mine"}), namespace)
    # Twelve days left are inside the window, and nobody here can renew it.
    found = kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "True", "RenewalDue", 20)
    assert found["status"]["certificate"]["daysLeft"] == 11
    pem = base64.b64decode(leaf(kube, namespace, name))
    assert certificates_from_pem(pem) == (online.certificate,)
    end = datetime.fromisoformat(found["status"]["certificate"]["notAfter"])
    assert abs((end - datetime.now(UTC)).days - 11) <= 1


def test_a_broken_given_identity_is_told(kube: Kube, namespace: str, operator: OperatorProcess, name: str) -> None:
    kube.create(secret(f"{name}-mine", ca_crt=b"not a certificate", ca_key=b"x"), namespace)
    kube.create(idle(name, identity={"secretName": f"{name}-mine"}), namespace)
    found = kube.await_condition("SMPRouter", name, namespace, "CertificateValid", "False", "IdentityInvalid", 20)
    message = next(c["message"] for c in found["status"]["conditions"] if c["type"] == "Ready")
    assert "ca.crt" in message
    assert kube.find("Deployment", name, namespace) is None
