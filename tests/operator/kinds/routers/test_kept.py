"""Secrets that outlive their router: adopted, never overwritten, changed only as the watch shows them."""

from __future__ import annotations

from typing import Any

from tests.operator.world import NAMESPACE, Town, router_of
from weir_operator.kinds import names
from weir_operator.kinds.routers.kept import KeptSecrets
from weir_operator.kube.conditions import Problem

ROUTER = router_of()


def made(town: Town) -> KeptSecrets:
    return KeptSecrets("edge", town.api, town.cache)


async def create(town: Town, value: str) -> Any:
    return await made(town).create(town.key, ROUTER, "r-x", {"key": value})


async def test_an_existing_secret_is_adopted_as_it_is() -> None:
    town = Town()
    assert await create(town, "Zmlyc3Q=") == {"key": "Zmlyc3Q="}
    assert await create(town, "c2Vjb25k") == {"key": "Zmlyc3Q="}
    meta = town.api.objects["Secret", "r-x"]["metadata"]
    assert meta["labels"][names.ROUTER] == "r"
    assert "ownerReferences" not in meta


async def test_somebody_elses_secret_is_a_problem() -> None:
    town = Town()
    town.api.put({"kind": "Secret", "metadata": {"name": "r-x", "namespace": NAMESPACE}, "data": {"theirs": "eA=="}})
    found = await create(town, "Zmlyc3Q=")
    assert isinstance(found, Problem) and found.reason == "NotOurs"
    assert made(town).facts(town.key, "r-x") is None


async def test_a_value_is_changed_only_if_the_watch_shows_the_live_one() -> None:
    town = Town()
    kept = made(town)
    await create(town, "Zmlyc3Q=")
    changed = await kept.change(town.key, ROUTER, "r-x", "key", "c2Vjb25k", {"note": "1"})
    assert changed is not None
    assert (changed["data"], changed["annotations"]) == ({"key": "c2Vjb25k"}, {"note": "1"})
    town.api.objects["Secret", "r-x"]["data"]["key"] = "b3RoZXI="
    assert await kept.change(town.key, ROUTER, "r-x", "key", "dGhpcmQ=", {}) is None
    assert town.api.objects["Secret", "r-x"]["data"] == {"key": "b3RoZXI="}


async def test_a_given_secret_is_read_seldom_and_without_the_key_of_a_ca() -> None:
    town = Town()
    kept = made(town)
    assert (await kept.given(town.key, ROUTER, "mine")).found is False
    town.api.put({"kind": "Secret", "metadata": {"name": "mine"}, "data": {"ca.key": "eA==", "ca.crt": "eA=="}})
    assert (await kept.given(town.key, ROUTER, "mine")).found is False
    kept.forget(town.key)
    found = await kept.given(town.key, ROUTER, "mine")
    assert (found.data, found.has_ca_key) == ({"ca.crt": "eA=="}, True)
    town.api.calls.clear()
    await kept.given(town.key, ROUTER, "mine")
    assert town.api.calls == []
