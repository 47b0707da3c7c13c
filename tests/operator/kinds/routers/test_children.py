"""The children of both kinds of routers as a table: values of the spec, and what they become."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operator.world import by_name, desired_state, router_of
from weir_operator.kinds import names
from weir_operator.kinds.routers.model import Defaults, Observed, Router
from weir_operator.kinds.routers.network import published_hosts, published_port
from weir_operator.kube.objects import Manifest

SEEN = Observed(Defaults("weir:test"), edge_secret={"ca.crt": "Q0E="}, address="smp://x@y")


def made(
    spec: dict[str, Any], observed: Observed = SEEN, kind: str = names.SMP_ROUTER
) -> dict[tuple[str, str], Manifest]:
    return by_name(desired_state(router_of(kind, **spec), observed))


def dig(body: Any, path: str) -> Any:
    """`spec.template.spec.containers.0.image`; None where there is nothing."""
    for part in path.split("/"):
        if isinstance(body, list):
            body = body[int(part)] if int(part) < len(body) else None
        else:
            body = (body or {}).get(part)
    return body


KINDS = (names.SMP_ROUTER, names.NTF_ROUTER)
POD = "spec/template/spec"
EDGE = f"{POD}/containers/0"
DEPLOYMENT, SERVICE, STATEFUL_SET = ("Deployment", "r"), ("Service", "r"), ("StatefulSet", "r-redis")
HPA = ("HorizontalPodAutoscaler", "r")

TABLE: list[tuple[str, dict[str, Any], tuple[str, str], str, Any]] = [
    ("image default", {}, DEPLOYMENT, f"{EDGE}/image", "weir:test"),
    ("image", {"image": "weir:2"}, DEPLOYMENT, f"{EDGE}/image", "weir:2"),
    ("image of Redis", {"image": "weir:2"}, STATEFUL_SET, f"{EDGE}/image", "weir:2"),
    ("pull policy", {"imagePullPolicy": "Never"}, DEPLOYMENT, f"{EDGE}/imagePullPolicy", "Never"),
    ("pull secrets", {"imagePullSecrets": ["a"]}, DEPLOYMENT, f"{POD}/imagePullSecrets", [{"name": "a"}]),
    ("replicas", {"replicas": 5}, DEPLOYMENT, "spec/replicas", 5),
    ("stopped", {"maintenance": {"edges": "Stopped"}}, DEPLOYMENT, "spec/replicas", 0),
    ("one unavailable", {}, DEPLOYMENT, "spec/strategy/rollingUpdate", {"maxSurge": 1, "maxUnavailable": 1}),
    ("a single edge", {"replicas": 1}, DEPLOYMENT, "spec/strategy/rollingUpdate/maxUnavailable", 0),
    ("readiness", {}, DEPLOYMENT, f"{EDGE}/readinessProbe/httpGet", {"path": "/readyz", "port": "http"}),
    ("grace", {"rollout": {"gracePeriodSeconds": 100}}, DEPLOYMENT, f"{POD}/terminationGracePeriodSeconds", 110),
    ("no token in pods", {}, DEPLOYMENT, f"{POD}/automountServiceAccountToken", False),
    ("CPU", {"resources": {"limits": {"cpu": 2}}}, DEPLOYMENT, f"{EDGE}/resources/limits", {"cpu": "2"}),
    ("node selector", {"placement": {"nodeSelector": {"a": "b"}}}, DEPLOYMENT, f"{POD}/nodeSelector", {"a": "b"}),
    ("tolerations", {"placement": {"tolerations": [{"key": "k"}]}}, DEPLOYMENT, f"{POD}/tolerations", [{"key": "k"}]),
    ("affinity", {"placement": {"affinity": {"x": 1}}}, DEPLOYMENT, f"{POD}/affinity", {"x": 1}),
    ("priority", {"placement": {"priorityClassName": "p"}}, STATEFUL_SET, f"{POD}/priorityClassName", "p"),
    ("pod label", {"podLabels": {"a": "b"}}, DEPLOYMENT, "spec/template/metadata/labels/a", "b"),
    ("pod note", {"podAnnotations": {"a": "b"}}, DEPLOYMENT, "spec/template/metadata/annotations/a", "b"),
    ("cluster IP", {}, SERVICE, "spec/type", "ClusterIP"),
    ("HTTP port", {"ports": {"http": 80}}, ("Service", "r-http"), "spec/ports/0/port", 80),
    ("load balancer", {"exposure": {"type": "LoadBalancer"}}, SERVICE, "spec/type", "LoadBalancer"),
    (
        "load balancer's class",
        {"exposure": {"type": "LoadBalancer", "loadBalancerClass": "c"}},
        SERVICE,
        "spec/loadBalancerClass",
        "c",
    ),
    ("annotations", {"exposure": {"annotations": {"a": "b"}}}, SERVICE, "metadata/annotations", {"a": "b"}),
    ("node port", {"exposure": {"type": "NodePort", "nodePort": 30000}}, SERVICE, "spec/ports/0/nodePort", 30000),
    ("host port", {"exposure": {"type": "HostPort", "hostPort": 443}}, DEPLOYMENT, f"{EDGE}/ports/0/hostPort", 443),
    ("host port's service", {"exposure": {"type": "HostPort"}}, SERVICE, "spec/type", "ClusterIP"),
    (
        "host ports do not surge",
        {"exposure": {"type": "HostPort"}},
        DEPLOYMENT,
        "spec/strategy/rollingUpdate",
        {"maxSurge": 0, "maxUnavailable": 1},
    ),
    ("edges", {}, ("Service", "r-edges"), "spec/clusterIP", "None"),
    ("Redis' volume", {}, STATEFUL_SET, "spec/volumeClaimTemplates/0/spec/resources/requests/storage", "1Gi"),
    (
        "storage class",
        {"redis": {"embedded": {"storage": {"storageClassName": "fast"}}}},
        STATEFUL_SET,
        "spec/volumeClaimTemplates/0/spec/storageClassName",
        "fast",
    ),
    (
        "volume kept",
        {},
        STATEFUL_SET,
        "spec/persistentVolumeClaimRetentionPolicy",
        {"whenDeleted": "Retain", "whenScaled": "Retain"},
    ),
    (
        "volume deleted",
        {"redis": {"embedded": {"storage": {"whenDeleted": "Delete"}}}},
        STATEFUL_SET,
        "spec/persistentVolumeClaimRetentionPolicy/whenDeleted",
        "Delete",
    ),
    ("fsync", {"redis": {"durability": "fsync"}}, STATEFUL_SET, f"{EDGE}/command/9", "fsync"),
    ("autoscaling by CPU", {"autoscaling": {"maxReplicas": 9}}, HPA, "spec/maxReplicas", 9),
    (
        "target",
        {"autoscaling": {"maxReplicas": 9, "targetCPUPercent": 55}},
        HPA,
        "spec/metrics/0/resource/target/averageUtilization",
        55,
    ),
    ("disruptions", {}, ("PodDisruptionBudget", "r"), "spec/maxUnavailable", 1),
    ("address", {}, ("ConfigMap", "r-address"), "data/address", "smp://x@y"),
    ("edge's secret", {}, ("Secret", "r-edge"), "data", {"ca.crt": "Q0E="}),
    ("Redis calls nobody", {}, ("NetworkPolicy", "r-redis"), "spec/policyTypes", ["Ingress", "Egress"]),
    (
        "metrics from where allowed",
        {"networkPolicy": {"httpFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}},
        ("NetworkPolicy", "r"),
        "spec/ingress/1/from/0",
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
    ),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("spec", "child", "path", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_becomes(kind: str, spec: dict[str, Any], child: tuple[str, str], path: str, expected: Any) -> None:
    assert dig(made(spec, kind=kind)[child], path) == expected


ABSENT: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("one edge needs no budget", {"replicas": 1}, ("PodDisruptionBudget", "r")),
    ("no budget", {"disruptionBudget": False}, ("PodDisruptionBudget", "r")),
    ("no policies", {"networkPolicy": {"enabled": False}}, ("NetworkPolicy", "r")),
    ("no autoscaler", {}, HPA),
    ("stopped edges do not scale", {"autoscaling": {"maxReplicas": 3}, "maintenance": {"edges": "Stopped"}}, HPA),
    ("a given Redis is not made", {"redis": {"external": {"url": "redis://x"}}}, STATEFUL_SET),
    ("nor its service", {"redis": {"external": {"url": "redis://x"}}}, ("Service", "r-redis")),
    ("no ServiceMonitor without its CRD", {}, ("ServiceMonitor", "r")),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("spec", "child"), [row[1:] for row in ABSENT], ids=[row[0] for row in ABSENT])
def test_is_not_made(kind: str, spec: dict[str, Any], child: tuple[str, str]) -> None:
    assert child not in made(spec, kind=kind)


def variables(spec: dict[str, Any], kind: str = names.SMP_ROUTER) -> dict[str, Any]:
    return {
        one["name"]: one.get("value") or one["valueFrom"]["secretKeyRef"]
        for one in dig(made(spec, kind=kind)[DEPLOYMENT], f"{EDGE}/env")
    }


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_come_as_references(kind: str) -> None:
    assert variables({}, kind) == {"WEIR_REDIS_PASSWORD_FILE": "/etc/weir/edge/redis-password"}
    external = {"urlSecret": {"name": "u"}, "passwordSecret": {"name": "p", "key": "k"}}
    assert variables({"redis": {"external": external}}, kind) == {
        "WEIR_REDIS_URL": {"name": "u", "key": "url"},
        "WEIR_REDIS_PASSWORD": {"name": "p", "key": "k"},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_passwords_of_the_control_port(kind: str) -> None:
    """The edges read them from the Secret that the spec names, or from the one that the operator makes."""

    def given(spec: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in variables(spec, kind).items() if "CONTROL" in name}

    for spec, secret in (({"control": {}}, "r-control"), ({"control": {"secretName": "mine"}}, "mine")):
        assert given(spec) == {
            "WEIR_AUTH_CONTROL_PORT_ADMIN_PASSWORD": {"name": secret, "key": "admin-password"},
            "WEIR_AUTH_CONTROL_PORT_USER_PASSWORD": {"name": secret, "key": "user-password", "optional": True},
        }
    assert given({}) == {}
    assert ("Secret", "r-control") not in made({"control": {"secretName": "mine"}}, kind=kind)
    found = made({"control": {}}, Observed(edge_secret={}, control_secret={"admin-password": "eA=="}), kind)
    assert found["Secret", "r-control"]["data"] == {"admin-password": "eA=="}


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_edges_secret_no_pod_is_asked_for(kind: str) -> None:
    found = made({}, Observed(), kind)
    assert DEPLOYMENT not in found
    assert ("Secret", "r-edge") not in found
    assert STATEFUL_SET in found


@pytest.mark.parametrize("kind", KINDS)
def test_the_autoscalers_number_stays_within_its_bounds(kind: str) -> None:
    spec = {"replicas": 2, "autoscaling": {"minReplicas": 3, "maxReplicas": 6}}
    for seen, expected in ((None, 3), (5, 5), (9, 6), (1, 3)):
        observed = Observed(edge_secret={}, replicas=seen)
        assert made(spec, observed, kind)[DEPLOYMENT]["spec"]["replicas"] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_is_restricted(kind: str) -> None:
    """Every container has what the restricted Pod Security level asks for."""
    for body in desired_state(router_of(kind), SEEN):
        if body["kind"] not in ("Deployment", "StatefulSet"):
            continue
        pod = body["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
        for volume in pod["volumes"]:
            assert set(volume) & {"configMap", "secret", "emptyDir"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_child_is_owned_labelled_and_selects_only_its_own(kind: str) -> None:
    for body in desired_state(router_of(kind), SEEN):
        meta = body["metadata"]
        assert [owner["uid"] for owner in meta["ownerReferences"]] == ["uid-r"]
        assert meta["labels"][names.MANAGED_BY] == names.MANAGER
        assert meta["labels"][names.ROUTER] == "r"
        selector = body.get("spec", {}).get("selector") if body["kind"] == "Service" else None
        if selector:
            assert selector["app.kubernetes.io/instance"] == "r"


@pytest.mark.parametrize("kind", KINDS)
def test_the_ca_key_is_nowhere_in_the_children(kind: str) -> None:
    text = str(desired_state(router_of(kind), SEEN))
    assert "ca.key" not in text
    assert "r-identity" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_pure_and_stable(kind: str) -> None:
    router = router_of(kind, podLabels={"b": "1", "a": "2"})
    assert desired_state(router, SEEN) == desired_state(router, SEEN)


@pytest.mark.parametrize("kind", KINDS)
def test_configuration_rolls_the_edges_and_nothing_else_does(kind: str) -> None:
    def template(observed: Observed = SEEN, **spec: Any) -> Any:
        return made(spec, observed, kind)[DEPLOYMENT]["spec"]["template"]

    plain = template()
    assert template(limits={"idleClientTTL": "1h"}) != plain
    # More edges, a new certificate, another Service: the pods stay as they are.
    assert template(replicas=9) == plain
    assert template(exposure={"type": "LoadBalancer"}) == plain
    assert template(Observed(SEEN.defaults, edge_secret={"server.crt": "bmV3"}, address="smp://x@y")) == plain


def address_parts(spec: dict[str, Any], observed: Observed = SEEN) -> tuple[list[str], int]:
    router: Router = router_of(**spec)
    return published_hosts(router, observed), published_port(router, observed, "smp")


def test_what_the_address_names() -> None:
    balanced = Observed(public_host="203.0.113.7", node_port=31000)
    assert address_parts({}) == (["r.ns.svc"], 5223)
    assert address_parts({"exposure": {"type": "LoadBalancer"}}, balanced) == (["203.0.113.7"], 5223)
    assert address_parts({"hosts": ["a", "b"], "ports": {"smp": 443}}, balanced) == (["a", "b"], 443)
    named = {"hosts": ["a"]}
    assert address_parts({**named, "exposure": {"type": "NodePort"}}, Observed(node_port=31000)) == (["a"], 31000)
    assert address_parts({**named, "exposure": {"type": "NodePort", "nodePort": 30001}})[1] == 30001
    assert address_parts({**named, "exposure": {"type": "HostPort", "hostPort": 443}})[1] == 443
    assert address_parts({**named, "exposure": {"type": "NodePort"}, "ports": {"public": 5223}}, balanced)[1] == 5223
    # The Service's own name goes with its own port: no node answers to that name.
    for exposure in ({"type": "NodePort", "nodePort": 30001}, {"type": "HostPort", "hostPort": 443}):
        assert address_parts({"exposure": exposure}) == (["r.ns.svc"], 5223)
