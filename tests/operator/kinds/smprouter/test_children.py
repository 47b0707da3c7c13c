"""The parts of pods and children that only an SMPRouter has."""

from __future__ import annotations

from tests.operator.kinds.routers.test_children import DEPLOYMENT, EDGE, SERVICE, dig, made, variables


def test_the_edges_run_the_smp_router() -> None:
    found = made({"ports": {"smp": 443}})
    command = ["weir", "smp", "edge", "--config", "/etc/weir/config/weir.toml"]
    assert dig(found[DEPLOYMENT], f"{EDGE}/command") == command
    assert dig(found[SERVICE], "spec/ports") == [{"name": "smp", "port": 443, "targetPort": "smp", "protocol": "TCP"}]
    assert dig(found["Service", "r-edges"], "spec/ports/0/port") == 5223


def test_the_policy_lets_clients_in_and_says_nothing_about_calls_out() -> None:
    policy = made({})["NetworkPolicy", "r"]
    assert dig(policy, "spec/ingress/0") == {"ports": [{"port": 5223, "protocol": "TCP"}]}
    assert dig(policy, "spec/policyTypes") == ["Ingress"]


def test_the_password_of_new_queues() -> None:
    assert variables({"basicAuth": {"name": "b"}})["WEIR_AUTH_CREATE_PASSWORD"] == {"name": "b", "key": "password"}
