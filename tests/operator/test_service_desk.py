"""SMPServices against a real store: known, rotated as listed, refused when they are not, forgotten."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest

from tests.support.redis import RedisServer
from weir.store.core import StoreConfig
from weir.store.store import Store
from weir.wire.commands import ServiceRole
from weir_operator.identity import Problem
from weir_operator.probe import StoreTarget
from weir_operator.service_desk import Account, Request, Visit, drift_class, forget, raw_fingerprint, settle

PLACEMENT = bytes(range(32))


def fingerprint(letter: str) -> str:
    return base64.urlsafe_b64encode(letter.encode() * 32).decode()


A, B, C = (fingerprint(letter) for letter in "ABC")


@pytest.fixture
def visit(redis_server: RedisServer) -> Visit:
    return Visit(StoreTarget(redis_server.url, None, "everysec", 1, "1s"), "ns", PLACEMENT)


async def account(visit: Visit, *fingerprints: str, overlap: int = 3600, role: str = "Messaging") -> Account:
    found = await settle(visit, Request(role, fingerprints, overlap))
    assert isinstance(found, Account), found
    return found


async def in_store(visit: Visit, work: Any) -> Any:
    store = await Store.open(StoreConfig(url=visit.target.url, placement_key=PLACEMENT), edge=False)
    try:
        return await work(store)
    finally:
        await store.close()


async def test_made_once(visit: Visit) -> None:
    first = await account(visit, A)
    assert first.accepted == (A,)
    assert (first.queues, first.connected, first.fold) == (0, False, None)
    service = await in_store(visit, lambda store: store.find_service(raw_fingerprint(A)))
    await account(visit, A)
    assert await in_store(visit, lambda store: store.find_service(raw_fingerprint(A))) == service
    assert len(await in_store(visit, lambda store: store.list_services())) == 1


async def test_known_from_its_handshake_it_is_the_same(visit: Visit) -> None:
    fresh = os.urandom(24)
    made = await in_store(visit, lambda store: store.ensure_service(raw_fingerprint(A), ServiceRole.MESSAGING, fresh))
    await account(visit, A)
    assert await in_store(visit, lambda store: store.find_service(raw_fingerprint(A))) == made


async def test_listing_a_second_rotates_once_and_both_are_accepted(visit: Visit) -> None:
    await account(visit, A)
    both = await account(visit, A, B)
    assert both.accepted == tuple(sorted((A, B)))
    assert both.rotated is not None
    assert both.overlap_until is not None
    again = await account(visit, A, B)
    assert again.rotated is None
    assert again.overlap_until == both.overlap_until, "looking again does not prolong the overlap"


async def test_taking_the_first_off_the_list_refuses_it(visit: Visit) -> None:
    await account(visit, A)
    await account(visit, A, B)
    only = await account(visit, B)
    assert only.accepted == (B,)
    assert only.overlap_until is None
    # Whoever listed it again alone gets no second life of the old certificate under the old service.
    back = await account(visit, B, A)
    assert back.accepted == tuple(sorted((A, B)))


async def test_no_overlap_refuses_at_once(visit: Visit) -> None:
    await account(visit, A)
    assert (await account(visit, A, B, overlap=0)).accepted == (B,)


async def test_one_listed_alone_replaces_nothing_it_does_not_know(visit: Visit) -> None:
    await account(visit, A)
    await account(visit, C)
    assert len(await in_store(visit, lambda store: store.list_services())) == 2


async def test_another_role_is_refused(visit: Visit) -> None:
    await account(visit, A)
    found = await settle(visit, Request("Notifier", (A,), 0))
    assert isinstance(found, Problem)
    assert found.reason == "RoleMismatch"


async def test_forgotten(visit: Visit) -> None:
    await account(visit, A)
    assert await forget(visit, (A,)) == 0
    assert await in_store(visit, lambda store: store.list_services()) == []
    assert await forget(visit, (A,)) == 0


async def test_trouble_is_an_answer(visit: Visit) -> None:
    gone = Visit(StoreTarget("redis://127.0.0.1:1/0", None, "everysec", 1, "1s"), "ns", PLACEMENT)
    found = await settle(gone, Request("Messaging", (A,), 0))
    assert isinstance(found, Problem)
    await account(visit, A)
    wrong = Visit(visit.target, "ns", bytes(32))
    refused = await settle(wrong, Request("Messaging", (A,), 0))
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
