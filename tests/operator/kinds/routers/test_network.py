"""NetworkPolicies: who may reach Redis and the pods' numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.operator.world import Town, by_name, desired_state, router_of
from weir_operator.kinds import names
from weir_operator.kinds.routers.model import Defaults, Observed

SEEN = Observed(Defaults("weir:test"), "operators", edge_secret={})
OPERATOR = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "operators"}},
    "podSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}},
}


@pytest.mark.parametrize(
    ("kind", "policy", "rule"),
    [(names.SMP_ROUTER, "r-redis", 0), (names.SMP_ROUTER, "r", 1), (names.NTF_ROUTER, "r-redis", 0)],
)
def test_the_operator_comes_from_its_own_namespace(kind: str, policy: str, rule: int) -> None:
    """A pod of another namespace that has the operator's label may not reach Redis."""
    made = by_name(desired_state(router_of(kind), SEEN))["NetworkPolicy", policy]
    peers = made["spec"]["ingress"][rule]["from"]
    assert peers[-1] == OPERATOR
    assert all(peer.get("namespaceSelector") != {} for peer in peers)


async def test_an_operator_that_moves_is_let_in() -> None:
    town = Town()
    await town.reconcile()
    town.surroundings.operator_namespace = "elsewhere"
    assert await town.reconcile() == ["apply NetworkPolicy/r", "apply NetworkPolicy/r-redis"]


def test_readers_of_metrics_are_those_of_the_spec_and_the_operator() -> None:
    given = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    router = router_of(networkPolicy={"enabled": True, "httpFrom": given})
    made = by_name(desired_state(router, replace(SEEN, replicas=2)))["NetworkPolicy", "r"]
    assert made["spec"]["ingress"][1]["from"] == [*given, OPERATOR]
