"""Every row of the options' table holds, every option has one; and what the chart is without any."""

from __future__ import annotations

import pytest
import yaml

from tests.helm import option_rows
from tests.helm.charts import CHART, NEEDS_HELM, Document, at, render, template
from tests.helm.option_rows import CONTAINER, GONE, POD, Row, given
from tests.helm.pipeline_rows import PIPELINE_ROWS

pytestmark = NEEDS_HELM

ROWS = (*option_rows.ROWS, *PIPELINE_ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.option}={row.value}"[:60])
def test_option(row: Row) -> None:
    documents = render(given(row), row.apis)
    for where, expected in row.expected.items():
        name, _, path = where.partition(" ")
        if expected is GONE:
            assert name not in documents
        elif not path:
            assert name in documents, sorted(documents)
        else:
            assert at(documents[name], path) == expected, f"{where}\n{yaml.safe_dump(documents[name])}"


def test_every_option_has_a_row() -> None:
    from tests.helm.scripts import chart

    schema = chart.values_schema()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    options = {path for path, _, _ in chart.leaves(schema, values) if ".spec" not in path}
    assert options == {row.option for row in ROWS}


def test_defaults_are_one_router_and_its_operator() -> None:
    hooks = {"Job", "ConfigMap", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    documents = render()
    kept = {
        name
        for name, document in documents.items()
        if not (document["kind"] in hooks and at(document, "metadata.annotations.helm\\.sh/hook"))
    }
    assert kept == {
        "ClusterRole/weir-operator-chat",
        "ClusterRoleBinding/weir-operator-chat",
        "Deployment/weir-operator",
        "Lease/weir-operator",
        "NetworkPolicy/weir-operator",
        "Role/weir-operator-own",
        "RoleBinding/weir-operator-own",
        "SMPRouter/weir",
        "Service/weir-operator",
        "ServiceAccount/weir-operator",
    }
    assert all(
        at(document, "metadata.labels.app\\.kubernetes\\.io/part-of") == "weir" for document in documents.values()
    )


def test_watched_namespaces_get_a_role_each() -> None:
    text = template({"operator": {"watchNamespaces": ["a", "b"]}}).stdout
    roles = [
        d
        for d in yaml.safe_load_all(text)
        if d and d["metadata"]["name"] == "weir-operator-chat" and "Cluster" not in d["kind"]
    ]
    assert {(role["kind"], role["metadata"]["namespace"]) for role in roles} == {
        ("Role", "a"),
        ("Role", "b"),
        ("RoleBinding", "a"),
        ("RoleBinding", "b"),
    }


def test_crds_that_helm_installs_are_the_ones_the_hook_applies() -> None:
    data = render()["ConfigMap/weir-crds"]["data"]
    files = {file.name: file.read_text() for file in (CHART / "crds").iterdir()}
    assert {name: yaml.safe_load(text) for name, text in data.items() if name != "hooks.py"} == {
        name: yaml.safe_load(text) for name, text in files.items()
    }
    assert len(files) == 3


def test_helm_test_uses_the_password_of_a_router_that_has_one() -> None:
    job = render({"router": {"spec": {"basicAuth": {"name": "pass", "key": "word"}}}})["Job/weir-test"]
    assert "--auth-file=/auth/word" in at(job, f"{CONTAINER}.args")
    assert at(job, f"{POD}.volumes.[name=auth].secret.secretName") == "pass"


@pytest.mark.parametrize(
    ("spec", "edges"),
    [
        ({}, 2),
        ({"replicas": 1}, 1),
        ({"replicas": 5}, 2),
        ({"autoscaling": {"maxReplicas": 9}}, 1),
        ({"replicas": 1, "autoscaling": {"minReplicas": 4, "maxReplicas": 9}}, 2),
    ],
)
def test_helm_test_asks_for_as_many_edges_as_there_are(spec: Document, edges: int) -> None:
    job = render({"router": {"spec": spec}})["Job/weir-test"]
    assert f"--edges={edges}" in at(job, f"{CONTAINER}.args")


NOTIFIER: Document = {"enabled": True}
PRIVATE: Document = {**NOTIFIER, "spec": {"subscriber": {"allowPrivateServers": True}}}


@pytest.mark.parametrize(
    ("values", "queues"),
    [
        # The SMP router has an address in the cluster, to which the notification router connects only if it may.
        ({"notifier": NOTIFIER}, False),
        ({"notifier": PRIVATE}, True),
        ({"notifier": NOTIFIER, "router": {"spec": {"hosts": ["smp.example.org"]}}}, True),
        ({"notifier": PRIVATE, "router": {"enabled": False}}, False),
    ],
)
def test_helm_test_subscribes_a_queue_where_the_notification_router_may_connect(values: Document, queues: bool) -> None:
    job = render(values)["Job/weir-ntf-test"]
    assert ("--smp=$(SMP_ADDRESS)" in at(job, f"{CONTAINER}.args")) == queues
    names = [one["name"] for one in at(job, f"{CONTAINER}.env")]
    assert names == (["ADDRESS", "SMP_ADDRESS"] if queues else ["ADDRESS"])


def test_helm_test_of_notifications_makes_queues_with_the_password_of_the_router() -> None:
    values = {"notifier": PRIVATE, "router": {"spec": {"basicAuth": {"name": "pass"}}}}
    job = render(values)["Job/weir-ntf-test"]
    assert "--smp-auth-file=/auth/password" in at(job, f"{CONTAINER}.args")
    assert at(job, f"{POD}.volumes.[name=auth].secret.secretName") == "pass"
    assert at(render({**values, "notifier": NOTIFIER})["Job/weir-ntf-test"], f"{POD}.volumes.[name=auth]") is None


@pytest.mark.parametrize("profile", ["values.yaml", "values-production.yaml", "values-dev.yaml"])
def test_every_pod_is_restricted(profile: str) -> None:
    documents = render({}, (), "--values", str(CHART / profile), "--set", "notifier.enabled=true")
    pods = [at(document, POD) for document in documents.values() if at(document, POD)]
    assert len(pods) == 5
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]


def test_names_stay_within_limits() -> None:
    documents = render({"fullnameOverride": "a" * 40, "notifier": {"enabled": True}})
    assert max(len(document["metadata"]["name"]) for document in documents.values()) <= 63
    assert "SMPRouter/" + "a" * 40 in documents
