"""NTFRouter: its Deployment runs the image's `weir ntf`, which waits for its release."""

from __future__ import annotations

from tests.cluster.conftest import router
from tests.cluster.harness import Cluster, Kube, wait_for
from tests.cluster.operator_process import OperatorProcess


def test_it_is_made_scaled_and_deleted(
    cluster: Cluster, kube: Kube, namespace: str, real_operator: OperatorProcess
) -> None:
    kube.create(router("ntf", "NTFRouter", hosts=["ntf.example.org"]), namespace)
    body = kube.await_condition("NTFRouter", "ntf", namespace, "Ready")
    assert body["status"]["address"] == f"ntf://{body['status']['fingerprint']}@ntf.example.org"
    assert kube.get("Service", "ntf", namespace)["spec"]["ports"][0]["port"] == 443
    told = cluster.run("kubectl", "-n", namespace, "logs", "deployment/ntf")
    assert "not part of this release" in told
    cluster.run("kubectl", "-n", namespace, "scale", "ntfrouter/ntf", "--replicas=2")
    wait_for("two", lambda: kube.get("NTFRouter", "ntf", namespace)["status"]["edges"]["summary"] == "2/2", 30)
    wait_for("the budget", lambda: kube.find("PodDisruptionBudget", "ntf", namespace), 10)
    kube.delete("NTFRouter", "ntf", namespace)
    kube.gone("NTFRouter", "ntf", namespace, 90)
    assert kube.find("Secret", "ntf-identity", namespace) is not None
