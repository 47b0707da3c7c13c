"""SMPServices in a real store: registered, rotated as the spec lists, refused, deleted."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest

from tests.support.redis import RedisServer
from weir.router.store.core import StoreConfig
from weir.router.store.store import Store
from weir.wire.smp.commands import ServiceRole
from weir_operator.kinds.routers.probe import StoreTarget
from weir_operator.kinds.smpservice.registration import (
    Registered,
    Registration,
    StoreAccess,
    drift_class,
    forget,
    raw_fingerprint,
    register,
)
from weir_operator.kube.conditions import Problem

PLACEMENT = bytes(range(32))


def fingerprint(letter: str) -> str:
    return base64.urlsafe_b64encode(letter.encode() * 32).decode()


A, B, C = (fingerprint(letter) for letter in "ABC")


@pytest.fixture
def access(redis_server: RedisServer) -> StoreAccess:
    return StoreAccess(StoreTarget(redis_server.url, None, "everysec", 1, "1s"), "ns", PLACEMENT)


async def account(access: StoreAccess, *fingerprints: str, overlap: int = 3600, role: str = "Messaging") -> Registered:
    found = await register(access, Registration(role, fingerprints, overlap))
    assert isinstance(found, Registered), found
    return found


async def in_store(access: StoreAccess, work: Any) -> Any:
    store = await Store.open(StoreConfig(url=access.target.url, placement_key=PLACEMENT), edge=False)
    try:
        return await work(store)
    finally:
        await store.close()


async def test_made_once(access: StoreAccess) -> None:
    first = await account(access, A)
    assert first.accepted == (A,)
    assert (first.queues, first.connected, first.fold) == (0, False, None)
    service = await in_store(access, lambda store: store.registry.find_service(raw_fingerprint(A)))
    await account(access, A)
    assert await in_store(access, lambda store: store.registry.find_service(raw_fingerprint(A))) == service
    assert len(await in_store(access, lambda store: store.registry.list_services())) == 1


async def test_known_from_its_handshake_it_is_the_same(access: StoreAccess) -> None:
    fresh = os.urandom(24)
    made = await in_store(
        access, lambda store: store.registry.ensure_service(raw_fingerprint(A), ServiceRole.MESSAGING, fresh)
    )
    await account(access, A)
    assert await in_store(access, lambda store: store.registry.find_service(raw_fingerprint(A))) == made


async def test_listing_a_second_rotates_once_and_both_are_accepted(access: StoreAccess) -> None:
    await account(access, A)
    both = await account(access, A, B)
    assert both.accepted == tuple(sorted((A, B)))
    assert both.rotated is not None
    assert both.overlap_until is not None
    again = await account(access, A, B)
    assert again.rotated is None
    assert again.overlap_until == both.overlap_until, "looking again does not prolong the overlap"


async def test_taking_the_first_off_the_list_refuses_it(access: StoreAccess) -> None:
    await account(access, A)
    await account(access, A, B)
    only = await account(access, B)
    assert only.accepted == (B,)
    assert only.overlap_until is None
    # The old certificate is accepted again when it is listed beside the present one.
    back = await account(access, B, A)
    assert back.accepted == tuple(sorted((A, B)))


async def test_no_overlap_refuses_at_once(access: StoreAccess) -> None:
    await account(access, A)
    assert (await account(access, A, B, overlap=0)).accepted == (B,)


async def test_one_listed_alone_replaces_nothing_it_does_not_know(access: StoreAccess) -> None:
    await account(access, A)
    await account(access, C)
    assert len(await in_store(access, lambda store: store.registry.list_services())) == 2


async def test_the_label_of_the_spec_is_the_services(access: StoreAccess) -> None:
    async def label(spec: str) -> str:
        found = await register(access, Registration("Messaging", (A,), 0, spec))
        assert isinstance(found, Registered)
        [info] = await in_store(access, lambda store: store.registry.list_services())
        return info.label  # type: ignore[no-any-return]

    assert await label("Directory bot") == "Directory bot"
    assert await label("Directory") == "Directory"
    assert await label("") == "Directory", "a label that somebody else has given is kept"


async def test_another_role_is_refused(access: StoreAccess) -> None:
    await account(access, A)
    found = await register(access, Registration("Notifier", (A,), 0))
    assert isinstance(found, Problem)
    assert found.reason == "RoleMismatch"


async def test_forgotten(access: StoreAccess) -> None:
    await account(access, A)
    assert await forget(access, (A,)) == 0
    assert await in_store(access, lambda store: store.registry.list_services()) == []
    assert await forget(access, (A,)) == 0


async def test_trouble_is_an_answer(access: StoreAccess) -> None:
    gone = StoreAccess(StoreTarget("redis://127.0.0.1:1/0", None, "everysec", 1, "1s"), "ns", PLACEMENT)
    found = await register(gone, Registration("Messaging", (A,), 0))
    assert isinstance(found, Problem)
    await account(access, A)
    wrong = StoreAccess(access.target, "ns", bytes(32))
    refused = await register(wrong, Registration("Messaging", (A,), 0))
    assert isinstance(refused, Problem)
    assert refused.reason == "StoreRefused"
    assert "placement key" in refused.message


def test_the_worst_class_that_has_grown() -> None:
    assert drift_class({}, None) is None
    assert drift_class({"ok": 3}, None) == "ok"
    assert drift_class({"ok": 3, "more": 1}, None) == "more"
    assert drift_class({"ok": 4, "more": 1}, {"ok": 3, "more": 1}) == "ok"
    assert drift_class({"ok": 4, "diff": 2, "fewer": 2}, {"ok": 3, "diff": 1, "fewer": 1}) == "diff"
    assert drift_class({"ok": 4}, {"ok": 4}) is None
