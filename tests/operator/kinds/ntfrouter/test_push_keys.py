"""The keys of push services: checked, made once, reported when lost, and rotated so that every pod knows them first."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.operator.world import Town
from weir.crypto import p256
from weir.crypto.keys import generate
from weir.crypto.pem import key_to_pem
from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.push_keys import next_step
from weir_operator.kinds.routers.redis_password import OVERLAP
from weir_operator.kube.conditions import timestamp

APNS = {"secretName": "apple", "keyId": "K" * 10, "teamId": "T" * 10, "topic": "org.example.app"}
PAST = timestamp(datetime(2026, 1, 1, tzinfo=UTC))


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def pem(*keys: p256.PrivateKey) -> str:
    return text(p256.keys_to_pem(*keys))


def give(town: Town, name: str, **data: str) -> None:
    """The administrator makes or changes a Secret, of which no watch tells."""
    town.api.put(
        {"kind": "Secret", "metadata": {"name": name}, "data": {k.replace("_", "."): v for k, v in data.items()}}
    )
    town.reconciler.forget(town.key)


async def ntf(**push: Any) -> Town:
    town = Town(names.NTF_ROUTER, push=push)
    await town.reconcile()
    return town


def published(town: Town) -> tuple[str, ...]:
    """The public keys in NAME-vapid, in their order."""
    raw = base64.b64decode(town.api.objects["Secret", "r-vapid"]["data"]["vapid.key"])
    return tuple(p256.public_text(key) for key in p256.keys_from_pem(raw))


def push_ready(town: Town) -> tuple[str, str]:
    return town.condition("PushReady")


def message(town: Town) -> str:
    return next(str(one["message"]) for one in town.status["conditions"] if one["type"] == "PushReady")


# --- the key of Web Push that the operator makes ---


async def test_a_key_is_made_once_and_is_in_the_address() -> None:
    town = await ntf()
    (public,) = published(town)
    assert len(public) == 87
    assert town.status["address"] == f"ntf://{town.status['fingerprint']}@r.ns.svc?vapid={public}"
    assert town.api.objects["ConfigMap", "r-address"]["data"]["address"] == town.status["address"]
    assert town.status["vapidKey"] == public
    assert push_ready(town) == ("True", "Configured")
    assert "ownerReferences" not in town.api.objects["Secret", "r-vapid"]["metadata"]
    assert "VapidKeyCreated" in [reason for reason, _ in town.recorded]
    assert await town.reconcile() == []
    assert published(town) == (public,)


async def test_a_file_name_for_a_secret_that_is_not_given_means_nothing() -> None:
    town = await ntf(webPush={"key": "mine.pem"})
    (public,) = published(town)
    assert town.status["vapidKey"] == public
    assert "web-push/vapid.key" in town.api.objects["ConfigMap", "r-config"]["data"]["weir.toml"]


async def test_without_web_push_there_is_no_key_and_no_query() -> None:
    town = Town(names.NTF_ROUTER, push={"apns": APNS, "webPush": {"enabled": False}})
    give(town, "apple", authkey_p8=pem(p256.generate()))
    await town.reconcile()
    assert ("Secret", "r-vapid") not in town.api.objects
    assert "?" not in town.status["address"]
    assert push_ready(town) == ("True", "Configured")


async def test_without_any_push_service_somebody_is_told() -> None:
    town = await ntf(webPush={"enabled": False})
    assert push_ready(town) == ("False", "NoPushService")
    assert town.condition("Ready")[0] == "False"


async def test_a_key_of_an_earlier_router_of_that_name_is_adopted() -> None:
    first = await ntf()
    second = Town(names.NTF_ROUTER)
    for name in ("r-identity", "r-store", "r-vapid"):
        second.api.objects["Secret", name] = first.api.objects["Secret", name]
    await second.reconcile()
    assert second.status["address"] == first.status["address"]


async def test_a_lost_key_is_reported_until_it_is_back_or_given_up() -> None:
    town = await ntf()
    (public,) = published(town)
    address, backup = town.status["address"], town.api.objects["Secret", "r-vapid"]
    town.lose("Secret", "r-vapid")
    for _ in range(3):
        assert "create Secret/r-vapid" not in await town.reconcile()
    assert push_ready(town) == ("False", "VapidKeyLost")
    assert public in message(town)
    assert town.status["address"] == address
    town.cache.child_event("Secret", town.api.put(backup), gone=False)
    await town.reconcile()
    assert push_ready(town) == ("True", "Configured")
    town.lose("Secret", "r-vapid")
    town.annotate(replace_address=public)
    assert "create Secret/r-vapid" in await town.reconcile()
    assert published(town) != (public,)
    assert town.status["address"] != address


async def test_another_key_is_reported_and_the_address_stays() -> None:
    town = await ntf()
    address = town.status["address"]
    town.edit("Secret", "r-vapid", {"data": {"vapid.key": pem(p256.generate())}})
    await town.reconcile()
    assert push_ready(town) == ("False", "VapidKeyChanged")
    assert town.status["address"] == address
    town.edit("Secret", "r-vapid", {"data": {"vapid.key": text(b"no key")}})
    await town.reconcile()
    assert push_ready(town) == ("False", "VapidKeyInvalid")
    assert town.status["address"] == address


async def test_somebody_elses_secret_is_not_taken() -> None:
    town = Town(names.NTF_ROUTER)
    town.api.put({"kind": "Secret", "metadata": {"name": "r-vapid"}, "data": {"theirs": "eA=="}})
    await town.reconcile()
    assert push_ready(town) == ("False", "NotOurs")
    assert town.api.objects["Secret", "r-vapid"]["data"] == {"theirs": "eA=="}


async def test_a_watch_that_is_behind_does_not_cost_a_key() -> None:
    """The cached router has no key yet, but the one on the API server has: nothing may be made."""
    town = await ntf()
    stale = Town(names.NTF_ROUTER)
    stale.api.objects = town.api.objects
    stale.cache.object_event(names.NTF_ROUTER, {**town.body, "status": {}}, gone=False)
    del town.api.objects["Secret", "r-vapid"]
    assert "create Secret/r-vapid" not in await stale.reconcile()


async def test_paused_nothing_is_made() -> None:
    town = Town(names.NTF_ROUTER, maintenance={"paused": True})
    assert "create Secret/r-vapid" not in await town.reconcile()
    town.change(maintenance={"paused": False})
    assert "create Secret/r-vapid" in await town.reconcile()
    town.change(maintenance={"paused": True})
    town.annotate(rotate_vapid_key="1")
    before, address = published(town), town.status["address"]
    await town.reconcile()
    assert published(town) == before
    assert town.status["address"] == address


# --- rotation ---


async def test_every_pod_knows_a_new_key_before_the_address_has_it() -> None:
    town = await ntf()
    (old,) = published(town)
    template = town.api.objects["Deployment", "r"]["spec"]["template"]
    town.annotate(rotate_vapid_key="1")
    await town.reconcile()
    first, new = published(town)
    assert (first, new != old) == (old, True)
    assert town.status["vapidKey"] == old
    assert await town.reconcile() == []
    town.edit("Secret", "r-vapid", {"metadata": {"annotations": {names.VAPID_ADDED: PAST}}})
    await town.reconcile()
    assert published(town) == (new, old)
    assert town.status["address"].endswith(f"?vapid={new}")
    assert await town.reconcile() == []
    assert [reason for reason, _ in town.recorded if "Vapid" in reason] == [
        *("VapidKeyCreated", "VapidKeyAdded", "VapidKeyRotated")
    ]
    # The pods read the file again by themselves.
    assert town.api.objects["Deployment", "r"]["spec"]["template"] == template


async def test_a_new_operator_continues_a_rotation() -> None:
    town = await ntf()
    town.annotate(rotate_vapid_key="1")
    await town.reconcile()
    old, new = published(town)
    again = town.successor()
    assert await again.reconcile() == []
    again.edit("Secret", "r-vapid", {"metadata": {"annotations": {names.VAPID_ADDED: PAST}}})
    await again.reconcile()
    assert published(again) == (new, old)


async def test_a_rotation_that_another_operator_has_begun_is_not_begun_twice() -> None:
    town = await ntf()
    town.annotate(rotate_vapid_key="1")
    other = pem(p256.generate(), p256.generate())
    town.api.objects["Secret", "r-vapid"]["data"]["vapid.key"] = other
    assert "merge Secret/r-vapid" not in await town.reconcile()
    assert town.api.objects["Secret", "r-vapid"]["data"]["vapid.key"] == other


def test_steps() -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC)
    old, new, *older = (p256.generate() for _ in range(5))
    assert next_step((old,), {}, None, now) is None
    assert next_step((old,), {names.ROTATE_VAPID: "1"}, "1", now) is None
    begun = next_step((old, *older), {names.ROTATE_VAPID: "1"}, "2", now)
    assert begun is not None
    assert begun.annotations == {names.ROTATE_VAPID: "2", names.VAPID_ADDED: timestamp(now)}
    # The current key stays first, and the oldest of too many is dropped.
    assert (begun.keys[0], begun.keys[2:]) == (old, tuple(older[:2]))
    notes = {names.ROTATE_VAPID: "2", names.VAPID_ADDED: timestamp(now)}
    assert next_step((old, new), notes, "3", now + OVERLAP - timedelta(seconds=1)) is None
    ended = next_step((old, new), notes, "3", now + OVERLAP)
    assert ended is not None
    assert (ended.keys, ended.annotations) == ((new, old), {names.VAPID_ADDED: None})
    # Somebody has edited the Secret meanwhile.
    alone = next_step((old,), notes, "2", now + OVERLAP)
    assert alone is not None and alone.keys == (old,)
    assert next_step((old, new), {names.VAPID_ADDED: "soon"}, None, now) is not None


def test_a_step_shows_no_key() -> None:
    step = next_step((p256.generate(),), {}, "1", datetime.now(UTC))
    assert "Private" not in repr(step)


# --- Secrets that the spec names ---


async def test_a_given_key_of_web_push() -> None:
    town = Town(names.NTF_ROUTER, push={"webPush": {"secretName": "mine"}})
    await town.reconcile()
    assert push_ready(town) == ("False", "SecretMissing")
    old, new = p256.generate(), p256.generate()
    give(town, "mine", vapid_key=pem(old))
    await town.reconcile()
    assert town.status["vapidKey"] == p256.public_text(old)
    assert ("Secret", "r-vapid") not in town.api.objects
    give(town, "mine", vapid_key=pem(new))
    await town.reconcile()
    assert push_ready(town) == ("False", "VapidKeyChanged")
    assert town.status["address"].endswith(p256.public_text(old))
    give(town, "mine", vapid_key=pem(new, old))
    await town.reconcile()
    assert push_ready(town) == ("True", "Configured")
    assert town.status["address"].endswith(p256.public_text(new))


APNS_SECRETS: list[tuple[str, dict[str, str] | None, str, str]] = [
    ("none", None, "SecretMissing", "there is no Secret apple"),
    ("without the key", {"other": "eA=="}, "SecretMissing", "Secret apple has no authkey.p8"),
    ("no base64", {"authkey_p8": "!"}, "SecretMissing", "Secret apple has no authkey.p8"),
    ("no key", {"authkey_p8": text(b"x")}, "ApnsKeyInvalid", "authkey.p8 of Secret apple"),
    ("another kind", {"authkey_p8": text(key_to_pem(generate("ed25519")))}, "ApnsKeyInvalid", "P-256"),
]


@pytest.mark.parametrize(
    ("data", "reason", "words"), [row[1:] for row in APNS_SECRETS], ids=[row[0] for row in APNS_SECRETS]
)
async def test_a_key_of_apple_that_cannot_be_used(data: dict[str, str] | None, reason: str, words: str) -> None:
    town = Town(names.NTF_ROUTER, push={"apns": APNS})
    if data is not None:
        give(town, "apple", **data)
    await town.reconcile()
    assert push_ready(town) == ("False", reason)
    assert words in message(town)
    assert town.condition("Ready")[0] == "False"
    give(town, "apple", authkey_p8=pem(p256.generate()))
    await town.reconcile()
    assert push_ready(town) == ("True", "Configured")
    assert message(town) == "APNs and Web Push: the keys are there"


async def test_a_missing_ca_is_named() -> None:
    town = Town(names.NTF_ROUTER, push={"webPush": {"ca": {"name": "authority"}}})
    await town.reconcile()
    assert push_ready(town) == ("False", "SecretMissing")
    give(town, "authority", ca_crt="eA==")
    await town.reconcile()
    assert push_ready(town) == ("True", "Configured")


async def test_a_given_secret_is_read_again_soon() -> None:
    town = Town(names.NTF_ROUTER, push={"apns": APNS})
    missing = await town.reconciler.reconcile(town.key)
    give(town, "apple", authkey_p8=pem(p256.generate()))
    there = await town.reconciler.reconcile(town.key)
    alone = Town(names.NTF_ROUTER)
    watched = await alone.reconciler.reconcile(alone.key)
    assert missing is not None and there is not None and watched is not None
    assert missing < there < watched
