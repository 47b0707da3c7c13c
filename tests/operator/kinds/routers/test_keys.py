"""Secrets that are made once: never overwritten, reported when lost, and restored where that is possible."""

from __future__ import annotations

import base64

import pytest

from tests.operator.world import Town
from weir.router.config import load
from weir_operator.kinds import names

EDGE_KEYS = {names.CA_CERT, names.SERVER_CERT, names.SERVER_KEY, names.PLACEMENT_KEY, names.REDIS_PASSWORD}


def data(town: Town, name: str) -> dict[str, str]:
    found: dict[str, str] = town.api.objects["Secret", name]["data"]
    return found


async def test_what_is_in_which_secret() -> None:
    town = Town()
    await town.reconcile()
    assert set(data(town, "r-identity")) == {names.CA_CERT, names.CA_KEY}
    assert set(data(town, "r-store")) == {names.PLACEMENT_KEY, names.REDIS_PASSWORD}
    assert set(data(town, "r-edge")) == EDGE_KEYS
    assert len(bytes.fromhex(base64.b64decode(data(town, "r-store")[names.PLACEMENT_KEY]).decode())) == 32
    for name in ("r-identity", "r-store"):
        assert "ownerReferences" not in town.api.objects["Secret", name]["metadata"]


async def test_with_a_given_redis_its_password_is_not_ours_to_hand_out() -> None:
    town = Town(redis={"external": {"url": "redis://x"}})
    await town.reconcile()
    assert set(data(town, "r-edge")) == EDGE_KEYS - {names.REDIS_PASSWORD}


async def test_the_passwords_of_the_control_port_are_made_once_when_asked_for() -> None:
    town = Town()
    await town.reconcile()
    assert ("Secret", "r-control") not in town.api.objects
    town.change(control={})
    assert "apply Secret/r-control" in await town.reconcile()
    first = data(town, "r-control")
    assert set(first) == {names.CONTROL_ADMIN, names.CONTROL_USER}
    assert len(set(first.values())) == 2
    loaded = {
        f"WEIR_AUTH_CONTROL_PORT_{who.upper()}_PASSWORD": _text(first[f"{who}-password"]) for who in ("admin", "user")
    }
    auth = load(None, loaded).auth
    assert (auth.control_port_admin_password, auth.control_port_user_password) == tuple(loaded.values())
    assert await town.reconcile() == []
    assert data(town, "r-control") == first
    # An administrator's own password stays.
    mine = base64.b64encode(b"mine").decode()
    town.edit("Secret", "r-control", {"data": {names.CONTROL_ADMIN: mine}})
    assert await town.reconcile() == []
    assert data(town, "r-control") == {**first, names.CONTROL_ADMIN: mine}
    # A Secret of the administrator takes the place of the operator's.
    town.change(control={"secretName": "given"})
    assert "delete Secret/r-control" in await town.reconcile()
    assert ("Secret", "r-control") not in town.api.objects


def _text(value: str) -> str:
    return base64.b64decode(value).decode()


async def test_secrets_of_an_earlier_router_of_that_name_are_adopted() -> None:
    first = Town()
    await first.reconcile()
    second = Town()
    for name in ("r-identity", "r-store"):
        second.api.objects["Secret", name] = first.api.objects["Secret", name]
    await second.reconcile()
    assert second.status["address"] == first.status["address"]
    assert second.status["placementCheck"] == first.status["placementCheck"]


@pytest.mark.parametrize("name", ["r-identity", "r-store"])
async def test_somebody_elses_secret_is_not_taken(name: str) -> None:
    town = Town()
    town.api.put({"kind": "Secret", "metadata": {"name": name}, "data": {"theirs": "eA=="}})
    await town.reconcile()
    assert town.condition("CertificateValid") == ("False", "NotOurs")
    assert data(town, name) == {"theirs": "eA=="}
    assert ("Deployment", "r") not in town.api.objects


async def test_the_stores_keys_come_back_from_the_edges() -> None:
    town = Town()
    await town.reconcile()
    before = data(town, "r-store")
    town.lose("Secret", "r-store")
    await town.reconcile()
    assert data(town, "r-store") == before


async def test_a_placement_key_that_is_lost_everywhere_is_reported() -> None:
    town = Town()
    await town.reconcile()
    town.lose("Secret", "r-store")
    town.lose("Secret", "r-edge")
    await town.reconcile()
    assert town.condition("CertificateValid") == ("False", "PlacementKeyLost")
    assert ("Secret", "r-store") not in town.api.objects


async def test_another_placement_key_is_not_used_over_existing_queues() -> None:
    town = Town()
    await town.reconcile()
    check = town.status["placementCheck"]
    other = base64.b64encode(b"00" * 32).decode()
    town.edit("Secret", "r-store", {"data": {names.PLACEMENT_KEY: other}})
    await town.reconcile()
    assert town.condition("CertificateValid") == ("False", "PlacementKeyChanged")
    assert data(town, "r-edge")[names.PLACEMENT_KEY] != other
    assert town.status["placementCheck"] == check


async def test_an_identity_without_its_labels_is_found_again() -> None:
    town = Town()
    await town.reconcile()
    town.edit("Secret", "r-identity", {"metadata": {"labels": {names.MANAGED_BY: None}}})
    secret = town.api.objects["Secret", "r-identity"]
    town.cache.child_event("Secret", secret, gone=True)
    assert "merge Secret/r-identity" in await town.reconcile()
    assert town.condition("CertificateValid") == ("True", "Valid")
    assert town.api.objects["Secret", "r-identity"]["metadata"]["labels"][names.MANAGED_BY] == names.MANAGER


async def test_renewal_reads_the_cas_key_and_keeps_it_nowhere() -> None:
    town = Town()
    await town.reconcile()
    secret = data(town, "r-identity")[names.CA_KEY]
    old = data(town, "r-edge")[names.SERVER_CERT]
    town.annotate(renew_certificate="1")
    calls = await town.reconcile()
    assert [call for call in calls if "Secret" in call] == ["get Secret/r-identity", "apply Secret/r-edge"]
    assert data(town, "r-edge")[names.SERVER_CERT] != old
    assert secret not in str([vars_of(seen) for seen in town.cache.children(town.key).values()])
    assert await town.reconcile() == []


def vars_of(seen: object) -> dict[str, object]:
    return {name: getattr(seen, name) for name in getattr(seen, "__slots__", ())}
