"""Children on a real API server: created, repaired and deleted; objects of others stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.conftest import idle
from tests.cluster.harness import Kube, wait_for
from tests.cluster.operator_process import OperatorProcess

_CHILDREN = (
    ("ServiceAccount", ""),
    ("ConfigMap", "-config"),
    ("ConfigMap", "-address"),
    ("Secret", "-identity"),
    ("Secret", "-store"),
    ("Secret", "-edge"),
    ("Service", ""),
    ("Service", "-edges"),
    ("Service", "-http"),
    ("Service", "-redis"),
    ("StatefulSet", "-redis"),
    ("Deployment", ""),
    ("PodDisruptionBudget", ""),
    ("NetworkPolicy", ""),
    ("NetworkPolicy", "-redis"),
)


def children(name: str) -> list[tuple[str, str]]:
    return [(kind, name + suffix) for kind, suffix in _CHILDREN]


def kept(name: str) -> set[tuple[str, str]]:
    return {("Secret", f"{name}-identity"), ("Secret", f"{name}-store")}


def made(kube: Kube, namespace: str, name: str) -> dict[str, Any]:
    """Waits until all of a router's children are there; returns the router."""

    def check() -> dict[str, Any] | None:
        body = kube.get("SMPRouter", name, namespace)
        return body if (body.get("status") or {}).get("address") and kube.find("Deployment", name, namespace) else None

    return wait_for("the router's children", check, 30)


def spec_of(body: dict[str, Any]) -> dict[str, Any]:
    return {key: body[key] for key in ("spec", "data", "type") if key in body}


def test_every_child_is_made_owned_and_labelled(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    body = made(kube, namespace, name)
    for kind, of in children(name):
        child = wait_for(f"{kind} {of}", lambda kind=kind, of=of: kube.find(kind, of, namespace), 10)
        owners = [one["uid"] for one in child["metadata"].get("ownerReferences") or ()]
        assert owners == ([] if (kind, of) in kept(name) else [body["metadata"]["uid"]]), (kind, of)
        assert child["metadata"]["labels"]["weir.dev/router"] == name
        assert child["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "weir-operator"
    assert body["metadata"]["finalizers"] == ["weir.dev/ordered-delete"]
    assert body["status"]["address"] == f"smp://{body['status']['fingerprint']}@{name}.{namespace}.svc"
    address = kube.get("ConfigMap", f"{name}-address", namespace)["data"]["address"]
    assert address == body["status"]["address"]
    assert "Created" in [reason for reason, _ in kube.events(namespace, name)]
    # The operator of these tests says that it lives in the tests' namespace.
    for of in (name, f"{name}-redis"):
        peer = kube.get("NetworkPolicy", of, namespace)["spec"]["ingress"][-1]["from"][-1]
        assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def test_only_the_identity_secret_has_the_cas_key(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    made(kube, namespace, name)
    labelled = kube.list("Secret", namespace, f"weir.dev/router={name}")
    held = [s["metadata"]["name"] for s in labelled if "ca.key" in (s.get("data") or {})]
    assert held == [f"{name}-identity"]
    mounted = str(kube.get("Deployment", name, namespace)["spec"]["template"])
    assert f"{name}-edge" in mounted
    assert f"{name}-identity" not in mounted


def test_a_child_that_is_deleted_is_back_within_10_seconds(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    made(kube, namespace, name)
    before = {at: kube.get(*at, namespace) for at in children(name) if at not in kept(name)}
    for at in before:
        kube.delete(*at, namespace)

    def back() -> bool:
        return all(
            (found := kube.find(*at, namespace)) is not None
            and found["metadata"]["uid"] != old["metadata"]["uid"]
            and not found["metadata"].get("deletionTimestamp")
            for at, old in before.items()
        )

    wait_for("all children to be back", back, 10)
    old, new = before["ConfigMap", f"{name}-config"], kube.get("ConfigMap", f"{name}-config", namespace)
    assert old["data"] == new["data"]
    assert "Repaired" in [reason for reason, _ in kube.events(namespace, name)]


EDITS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "replicas": ("Deployment", "", {"spec": {"replicas": 7}}),
    "a variable more": (
        "Deployment",
        "",
        {"spec": {"template": {"spec": {"containers": [{"name": "edge", "env": [{"name": "X", "value": "1"}]}]}}}},
    ),
    "a container more": (
        "Deployment",
        "",
        {"spec": {"template": {"spec": {"containers": [{"name": "more", "image": "localhost/pause:1"}]}}}},
    ),
    "the service's port": ("Service", "", {"spec": {"ports": [{"name": "smp", "port": 9999}]}}),
    "the service's selector": ("Service", "", {"spec": {"selector": {"app.kubernetes.io/component": "x"}}}),
    "configuration": ("ConfigMap", "-config", {"data": {"weir.toml": "[transport]\n"}}),
    "a secret": ("Secret", "-edge", {"data": {"server.crt": "AAAA"}}),
    "labels": ("NetworkPolicy", "", {"metadata": {"labels": {"weir.dev/router": None}}}),
    "the watch's label": (
        "ConfigMap",
        "-address",
        {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
    ),
    "owner": ("ServiceAccount", "", {"metadata": {"ownerReferences": None}}),
    "Redis' replicas": ("StatefulSet", "-redis", {"spec": {"replicas": 3}}),
    "disruptions": ("PodDisruptionBudget", "", {"spec": {"maxUnavailable": 2}}),
    "who may come in": ("NetworkPolicy", "-redis", {"spec": {"ingress": [{}]}}),
}


def test_an_edited_child_is_put_back_within_10_seconds(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    made(kube, namespace, name)
    wait_for("the PDB", lambda: kube.find("PodDisruptionBudget", name, namespace), 10)
    for what, (kind, suffix, patch) in EDITS.items():
        of = name + suffix
        before = kube.get(kind, of, namespace)
        strategic = kind == "Deployment" and "template" in patch.get("spec", {})
        content_type = "application/strategic-merge-patch+json" if strategic else "application/merge-patch+json"
        changed = kube.resource(kind).patch(name=of, namespace=namespace, body=patch, content_type=content_type)
        assert changed.to_dict()["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"], what

        def back(kind: str = kind, of: str = of, before: dict[str, Any] = before) -> bool:
            now = kube.get(kind, of, namespace)
            same_owner = now["metadata"].get("ownerReferences") == before["metadata"].get("ownerReferences")
            if kind == "Secret":
                # A broken certificate is not restored but made anew, under the same CA.
                return (
                    same_owner
                    and now["data"]["ca.crt"] == before["data"]["ca.crt"]
                    and len(now["data"]["server.crt"]) > 99
                )
            labels = now["metadata"]["labels"] == before["metadata"]["labels"]
            return same_owner and labels and spec_of(now) == spec_of(before)

        wait_for(f"{what} to be put back", back, 10)


def test_what_is_no_longer_asked_for_is_removed(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name, autoscaling={"maxReplicas": 4}, replicas=2), namespace)
    wait_for("the HPA", lambda: kube.find("HorizontalPodAutoscaler", name, namespace), 20)
    # The autoscaler's number stays, also when the operator has other work on the Deployment.
    kube.merge("Deployment", name, namespace, {"spec": {"replicas": 3}})
    kube.merge("SMPRouter", name, namespace, {"spec": {"podLabels": {"a": "b"}}})
    wait_for(
        "the new label",
        lambda: "a" in kube.get("Deployment", name, namespace)["spec"]["template"]["metadata"]["labels"],
        10,
    )
    assert kube.get("Deployment", name, namespace)["spec"]["replicas"] == 3
    kube.merge("SMPRouter", name, namespace, {"spec": {"autoscaling": None, "networkPolicy": {"enabled": False}}})
    kube.gone("HorizontalPodAutoscaler", name, namespace, 10)
    kube.gone("NetworkPolicy", name, namespace, 10)
    wait_for("replicas", lambda: kube.get("Deployment", name, namespace)["spec"]["replicas"] == 2, 10)


@pytest.mark.parametrize("kind", ["ServiceAccount", "ConfigMap", "Deployment", "Service", "Secret"])
def test_somebody_elses_object_is_left_alone(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str, kind: str
) -> None:
    taken = {"ConfigMap": f"{name}-config", "Secret": f"{name}-edge"}.get(kind, name)
    theirs: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": taken, "labels": {"mine": "yes"}}}
    if kind == "Deployment":
        pod = {"metadata": {"labels": {"mine": "yes"}}, "spec": {"containers": [{"name": "x", "image": "y"}]}}
        theirs |= {
            "apiVersion": "apps/v1",
            "spec": {"replicas": 0, "selector": {"matchLabels": {"mine": "yes"}}, "template": pod},
        }
    if kind == "Service":
        theirs |= {"spec": {"ports": [{"name": "http", "port": 80}], "selector": {"mine": "yes"}}}
    before = kube.create(theirs, namespace)
    kube.create(idle(name), namespace)
    found = kube.await_condition("SMPRouter", name, namespace, "Ready", "False", "NotOurs", 30)
    message = next(c["message"] for c in found["status"]["conditions"] if c["type"] == "Ready")
    assert f"{kind} {taken}" in message
    now = kube.get(kind, taken, namespace)
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert now["metadata"]["labels"] == {"mine": "yes"}
    assert not now["metadata"].get("ownerReferences")
    # The foreign object outlives the router.
    kube.delete("SMPRouter", name, namespace)
    kube.gone("SMPRouter", name, namespace, 60)
    assert kube.get(kind, taken, namespace)["metadata"]["uid"] == before["metadata"]["uid"]


def test_deletion_goes_in_order_and_keeps_identity_and_data(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    kube.create(idle(name), namespace)
    first = made(kube, namespace, name)
    wait_for("the volume", lambda: kube.find("PersistentVolumeClaim", f"data-{name}-redis-0", namespace), 20)
    # Somebody's own finalizer holds the Deployment back: Redis must wait for it.
    kube.merge("Deployment", name, namespace, {"metadata": {"finalizers": ["weir.dev/test"]}})
    kube.delete("SMPRouter", name, namespace)
    wait_for(
        "the Deployment's deletion",
        lambda: kube.get("Deployment", name, namespace)["metadata"].get("deletionTimestamp"),
        20,
    )
    assert not kube.get("StatefulSet", f"{name}-redis", namespace)["metadata"].get("deletionTimestamp")
    kube.merge("Deployment", name, namespace, {"metadata": {"finalizers": None}})
    kube.gone("SMPRouter", name, namespace, 60)
    for at in children(name):
        if at in kept(name):
            assert kube.find(*at, namespace) is not None, at
        else:
            kube.gone(*at, namespace, 30)
    assert kube.find("PersistentVolumeClaim", f"data-{name}-redis-0", namespace) is not None
    # A router of the same name finds its address again.
    kube.create(idle(name), namespace)
    assert made(kube, namespace, name)["status"]["address"] == first["status"]["address"]


def test_deletion_takes_everything_when_told_so(
    kube: Kube, namespace: str, operator: OperatorProcess, name: str
) -> None:
    spec = {
        "identity": {"whenDeleted": "Delete"},
        "redis": {"embedded": {"storage": {"whenDeleted": "Delete"}}},
    }
    kube.create(idle(name, **spec), namespace)
    made(kube, namespace, name)
    wait_for("the volume", lambda: kube.find("PersistentVolumeClaim", f"data-{name}-redis-0", namespace), 20)
    kube.delete("SMPRouter", name, namespace)
    kube.gone("SMPRouter", name, namespace, 60)
    for at in (*children(name), ("PersistentVolumeClaim", f"data-{name}-redis-0")):
        kube.gone(*at, namespace, 60)
