"""The keys of the store: made once, never exchanged over data, and reported when lost."""

from __future__ import annotations

import base64

import pytest

from tests.operator.world import Town
from weir_operator.kinds import names
from weir_operator.kinds.routers.store_keys import STORE_KEYS

KEYS = {names.SMP_ROUTER: [names.PLACEMENT_KEY], names.NTF_ROUTER: [names.PLACEMENT_KEY, names.STORAGE_KEY]}
PAIRS = [pytest.param(kind, key, id=f"{kind} {key}") for kind, keys in KEYS.items() for key in keys]
REASON = {names.PLACEMENT_KEY: "PlacementKey", names.STORAGE_KEY: "StorageKey"}
OTHER = base64.b64encode(b"00" * 32).decode()


def data(town: Town, name: str) -> dict[str, str]:
    found: dict[str, str] = town.api.objects["Secret", name]["data"]
    return found


async def made(kind: str) -> Town:
    town = Town(kind)
    await town.reconcile()
    return town


@pytest.mark.parametrize("kind", KEYS)
async def test_every_kind_has_its_keys_and_the_edges_get_them(kind: str) -> None:
    town = await made(kind)
    assert set(data(town, "r-store")) == {*KEYS[kind], names.REDIS_PASSWORD}
    values = [data(town, "r-store")[key] for key in KEYS[kind]]
    assert len(set(values)) == len(values)
    for key in KEYS[kind]:
        assert len(bytes.fromhex(base64.b64decode(data(town, "r-store")[key]).decode())) == 32
        assert data(town, "r-edge")[key] == data(town, "r-store")[key]
        assert len(town.status[STORE_KEYS[key].check]) == 16


@pytest.mark.parametrize(("kind", "key"), PAIRS)
async def test_a_key_that_is_lost_everywhere_is_reported(kind: str, key: str) -> None:
    town = await made(kind)
    town.lose("Secret", "r-store")
    for other in KEYS[kind]:
        if other != key:
            continue
        town.edit("Secret", "r-edge", {"data": {key: None}})
    await town.reconcile()
    assert town.condition("CertificateValid") == ("False", f"{REASON[key]}Lost")
    assert ("Secret", "r-store") not in town.api.objects


@pytest.mark.parametrize(("kind", "key"), PAIRS)
async def test_another_key_is_not_used_over_existing_data(kind: str, key: str) -> None:
    town = await made(kind)
    check = town.status[STORE_KEYS[key].check]
    town.edit("Secret", "r-store", {"data": {key: OTHER}})
    await town.reconcile()
    assert town.condition("CertificateValid") == ("False", f"{REASON[key]}Changed")
    assert data(town, "r-edge")[key] != OTHER
    assert town.status[STORE_KEYS[key].check] == check


@pytest.mark.parametrize(("kind", "key"), PAIRS)
async def test_a_key_that_somebody_took_out_is_reported_and_not_made_again(kind: str, key: str) -> None:
    town = await made(kind)
    town.edit("Secret", "r-store", {"data": {key: None}})
    await town.reconcile()
    assert town.condition("CertificateValid") == ("False", f"{REASON[key]}Changed")
    assert key not in data(town, "r-store")


async def test_a_store_from_before_its_storage_key_gets_one() -> None:
    """An NTFRouter of the first release has the placement key alone, and has stored nothing."""
    town = await made(names.NTF_ROUTER)
    placement = data(town, "r-store")[names.PLACEMENT_KEY]
    town.edit("Secret", "r-store", {"data": {names.STORAGE_KEY: None}})
    town.api.put({**town.body, "status": {k: v for k, v in town.status.items() if k != "storageCheck"}})
    town.watch()
    assert "merge Secret/r-store" in await town.reconcile()
    assert data(town, "r-store")[names.PLACEMENT_KEY] == placement
    assert data(town, "r-edge")[names.STORAGE_KEY] == data(town, "r-store")[names.STORAGE_KEY]
    assert town.condition("CertificateValid") == ("True", "Valid")
    assert await town.reconcile() == []


@pytest.mark.parametrize("key", STORE_KEYS)
def test_a_check_says_nothing_about_its_key(key: str) -> None:
    one, other = ({key: base64.b64encode(bytes([n]) * 32).decode()} for n in (1, 2))
    digest = STORE_KEYS[key].digest
    assert digest(one) == digest(dict(one)) != digest(other)
    assert digest({}) is None


def test_equal_keys_of_two_kinds_have_different_checks() -> None:
    value = base64.b64encode(bytes(32)).decode()
    assert len({one.digest({key: value}) for key, one in STORE_KEYS.items()}) == len(STORE_KEYS)
