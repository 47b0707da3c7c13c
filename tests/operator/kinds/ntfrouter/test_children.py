"""The parts of pods and children that only an NTFRouter has."""

from __future__ import annotations

from typing import Any

from tests.operator.kinds.routers.test_children import DEPLOYMENT, EDGE, POD, SEEN, SERVICE, dig, made
from weir_operator.kinds import names

APNS = {"secretName": "apple", "keyId": "K" * 10, "teamId": "T" * 10, "topic": "org.example.app"}


def children(**spec: Any) -> Any:
    return made(spec, SEEN, names.NTF_ROUTER)


def secrets(**push: Any) -> dict[str, str]:
    """The Secrets of the pods, by the directories where they are."""
    deployment = children(push=push)[DEPLOYMENT]
    volumes = {one["name"]: one["secret"]["secretName"] for one in dig(deployment, f"{POD}/volumes") if "secret" in one}
    mounts = {one["name"]: one for one in dig(deployment, f"{EDGE}/volumeMounts")}
    assert all(mounts[name]["readOnly"] for name in volumes)
    return {mounts[name]["mountPath"]: secret for name, secret in volumes.items()}


def test_the_edges_run_the_notification_router() -> None:
    found = children()
    assert dig(found[DEPLOYMENT], f"{EDGE}/command") == [
        *("weir", "ntf", "edge", "--config", "/etc/weir/config/weir.toml")
    ]
    assert dig(found[DEPLOYMENT], f"{EDGE}/ports/0") == {"name": "ntf", "containerPort": 5443, "protocol": "TCP"}
    # The address has port 443, which a container without capabilities cannot listen on.
    assert dig(found[SERVICE], "spec/ports") == [{"name": "ntf", "port": 443, "targetPort": "ntf", "protocol": "TCP"}]
    assert dig(found["Service", "r-edges"], "spec/ports/0/port") == 5443
    assert dig(found["Service", "r-http"], "spec/ports/0/port") == 8000


def test_a_port_of_the_node_is_that_of_the_service() -> None:
    found = children(exposure={"type": "HostPort"})
    assert dig(found[DEPLOYMENT], f"{EDGE}/ports/0/hostPort") == 443


def test_the_secrets_of_the_push_services() -> None:
    assert secrets() == {"/etc/weir/edge": "r-edge", "/etc/weir/web-push": "r-vapid"}
    assert secrets(webPush={"enabled": False}) == {"/etc/weir/edge": "r-edge"}
    ca = {"name": "authority"}
    assert secrets(apns={**APNS, "ca": ca}, webPush={"secretName": "mine", "ca": ca}) == {
        "/etc/weir/edge": "r-edge",
        "/etc/weir/apns": "apple",
        "/etc/weir/apns-ca": "authority",
        "/etc/weir/web-push": "mine",
        "/etc/weir/web-push-ca": "authority",
    }


def test_the_pods_may_call_smp_routers_and_push_services() -> None:
    """Also in a namespace where another policy lets no pod out."""
    policy = children()["NetworkPolicy", "r"]
    assert dig(policy, "spec/policyTypes") == ["Ingress", "Egress"]
    assert dig(policy, "spec/egress") == [{}]
    assert dig(policy, "spec/ingress/0") == {"ports": [{"port": 5443, "protocol": "TCP"}]}


def test_calls_can_be_limited_and_redis_and_names_stay_within_reach() -> None:
    rule = {"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]}
    policy = children(networkPolicy={"egress": [rule]})["NetworkPolicy", "r"]
    first, names_, redis = dig(policy, "spec/egress")
    assert first == rule
    assert {(one["port"], one["protocol"]) for one in names_["ports"]} == {(53, "UDP"), (53, "TCP")}
    assert redis["ports"] == [{"port": 6379, "protocol": "TCP"}]
    assert redis["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "redis"
    external = {"redis": {"external": {"url": "redis://x"}}, "networkPolicy": {"egress": [rule]}}
    assert len(dig(children(**external)["NetworkPolicy", "r"], "spec/egress")) == 2


def test_a_new_key_id_rolls_the_edges_and_a_new_key_of_web_push_does_not() -> None:
    def template(**push: Any) -> Any:
        return children(push=push)[DEPLOYMENT]["spec"]["template"]

    assert template(apns={**APNS, "keyId": "N" * 10, "key": "new.p8"}) != template(apns=APNS)
    # The kubelet brings the file of NAME-vapid into the pods as they are: its content is not in the template.
    assert "vapid.key" not in str(template())
