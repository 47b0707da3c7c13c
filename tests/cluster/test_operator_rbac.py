"""The operator with exactly the chart's roles: none of its calls is refused, and it needs every right it has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.apiproxy import ApiProxy, Call
from tests.cluster.conftest import PATIENT, PAUSE, drop_namespace, idle, new_namespace, router
from tests.cluster.harness import REPO, Cluster, Kube, wait_for
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.test_operator_children import children, made

RULES: dict[str, list[dict[str, Any]]] = yaml.safe_load((REPO / "k8s/rbac/rules.yaml").read_text())
ACCOUNT = "weir-operator"
_MARK = "weir-rbac-test"
_OPTIONAL_CRDS = {"ServiceMonitor": ("monitoring.coreos.com", "v1"), "ScaledObject": ("keda.sh", "v1alpha1")}


def binding(kind: str, namespace: str, role_kind: str, role: str, account_namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": _MARK if role_kind == "ClusterRole" else f"{_MARK}-own", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": account_namespace}],
    }


def stand_in_crd(kind: str, group: str, version: str) -> dict[str, Any]:
    """The API of somebody else's operator, as far as ours writes to it."""
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def served(kube: Kube, name: str) -> bool:
    conditions = (kube.get("CustomResourceDefinition", name).get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


@pytest.fixture
def apis(kube: Kube) -> Iterator[None]:
    for kind, (group, version) in _OPTIONAL_CRDS.items():
        kube.create(stand_in_crd(kind, group, version))
    for kind in _OPTIONAL_CRDS:
        name = f"{kind.lower()}s.{_OPTIONAL_CRDS[kind][0]}"
        wait_for(f"the CRD of {kind}", partial(served, kube, name), 20)
    kube.dynamic.resources.invalidate_cache()
    yield
    for kind, (group, _) in _OPTIONAL_CRDS.items():
        kube.delete("CustomResourceDefinition", f"{kind.lower()}s.{group}")
    kube.dynamic.resources.invalidate_cache()


@pytest.fixture
def account(kube: Kube) -> Iterator[tuple[str, str]]:
    """A ServiceAccount with the roles of rules.yaml, and its token."""
    namespace = new_namespace(kube, "rbac")
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}, namespace)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": _MARK}}
    kube.create({**role, "kind": "ClusterRole", "rules": RULES["cluster"] + RULES["namespaced"]})
    kube.create({**role, "kind": "Role", "rules": RULES["own"]}, namespace)
    kube.create(binding("RoleBinding", namespace, "ClusterRole", _MARK, namespace), namespace)
    kube.create(binding("RoleBinding", namespace, "Role", _MARK, namespace), namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = kube.resource("ServiceAccount").token.create(body=request, name=ACCOUNT, namespace=namespace)
    yield namespace, token.to_dict()["status"]["token"]
    kube.delete("ClusterRole", _MARK)
    drop_namespace(kube, namespace)


def verb(call: Call) -> str:
    named = call.path.rstrip("/").split("/")
    if call.watch:
        return "watch"
    if call.method == "GET":
        # …/namespaces/NS/RESOURCE is a list, …/namespaces/NS/RESOURCE/NAME is not.
        return "get" if len(named) - named.index("namespaces") > 3 else "list"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[call.method]


def used(calls: list[Call]) -> set[tuple[str, str]]:
    found = set()
    for call in calls:
        parts = call.path.strip("/").split("/")
        if "namespaces" not in parts:
            continue
        after = parts[parts.index("namespaces") + 2 :]
        resource = after[0] + (f"/{after[2]}" if len(after) > 2 else "")
        found.add((resource, verb(call)))
        if call.method == "PATCH" and call.status == 201:
            found.add((resource, "create"))  # an apply that makes an object needs both
    return found


@pytest.mark.timeout(240)
def test_with_exactly_these_roles_nothing_is_refused(
    cluster: Cluster, kube: Kube, tmp_path: Path, apis: None, account: tuple[str, str]
) -> None:
    namespace, token = account
    with ApiProxy(cluster.listener(), cluster.kubeconfig, token) as proxy:
        config = proxy.kubeconfig(tmp_path / "kubeconfig")
        with OperatorProcess(
            cluster, tmp_path, image=PAUSE, namespace=namespace, kubeconfig=config, options=PATIENT
        ) as process:
            process.wait_working()
            _everything(kube, namespace)
        assert proxy.refused() == []
        granted = {
            (resource, verb)
            for rule in RULES["cluster"] + RULES["namespaced"] + RULES["own"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        assert not [right for right in used(proxy.calls) if right not in granted]
        # Only somebody's edit of a list makes these needed, and not every kind's lists are edited here.
        seldom = {"update", "get"}
        idle_rights = {right for right in granted - used(proxy.calls) if right[1] not in seldom}
        assert idle_rights == set()
    # The proxy above has seen every status. A number is no sign of one: the namespace's name has digits, too.
    assert "Forbidden" not in process.log.read_text()


def _everything(kube: Kube, namespace: str) -> None:
    """An object of every kind is created, damaged, changed and deleted."""
    scaling = {"minReplicas": 2, "maxReplicas": 4, "metric": "Subscriptions"}
    kube.create(idle("full", autoscaling=scaling), namespace)
    kube.create(idle("cpu", autoscaling={"minReplicas": 2, "maxReplicas": 4}), namespace)
    gone_with_it = {"storage": {"whenDeleted": "Delete"}}
    kube.create(
        idle("push", "NTFRouter", identity={"whenDeleted": "Delete"}, redis={"embedded": gone_with_it}), namespace
    )
    kube.create(router("app", "SMPService", router="full", role="Messaging", keyPair={}), namespace)
    forgotten = {"router": "full", "role": "Notifier", "keyPair": {"whenDeleted": "Delete"}, "whenDeleted": "Forget"}
    kube.create(router("gone", "SMPService", **forgotten), namespace)
    made(kube, namespace, "full")
    for kind, name in (
        ("ScaledObject", "full"),
        ("ServiceMonitor", "full"),
        ("HorizontalPodAutoscaler", "cpu"),
        ("Deployment", "push"),
        ("Secret", "app-service"),
        ("PodDisruptionBudget", "full"),
    ):
        wait_for(f"{kind} {name}", lambda kind=kind, name=name: kube.find(kind, name, namespace), 30)
    for kind, name in children("full"):
        if kind != "Secret":
            kube.delete(kind, name, namespace)
    wait_for("the children", lambda: all(kube.find(*at, namespace) for at in children("full")), 20)
    env = {"spec": {"template": {"spec": {"containers": [{"name": "edge", "env": [{"name": "X", "value": "1"}]}]}}}}
    strategic = "application/strategic-merge-patch+json"
    kube.resource("Deployment").patch(name="full", namespace=namespace, body=env, content_type=strategic)
    port = {"spec": {"ports": [{"name": "smp", "port": 9999}]}}
    kube.merge("Service", "full", namespace, port)
    wait_for("repair", lambda: kube.get("Service", "full", namespace)["spec"]["ports"][0]["port"] == 5223, 15)
    plain = {
        "autoscaling": None,
        "disruptionBudget": False,
        "networkPolicy": {"enabled": False},
        "telemetry": {"serviceMonitor": {"enabled": False}},
        "redis": {"external": {"url": "redis://elsewhere"}},
    }
    kube.merge("SMPRouter", "full", namespace, {"spec": plain})
    for kind, name in (
        ("ScaledObject", "full"),
        ("PodDisruptionBudget", "full"),
        ("NetworkPolicy", "full"),
        ("ServiceMonitor", "full"),
        ("Service", "full-redis"),
        ("StatefulSet", "full-redis"),
    ):
        kube.gone(kind, name, namespace, 20)
    for kind, name in (("SMPService", "gone"), ("SMPService", "app"), ("NTFRouter", "push"), ("SMPRouter", "cpu")):
        kube.delete(kind, name, namespace)
        kube.gone(kind, name, namespace, 60)
    kube.delete("SMPRouter", "full", namespace)
    kube.gone("SMPRouter", "full", namespace, 60)
