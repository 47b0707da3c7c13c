"""The scripts as files: headers, includes, what they may do."""

import re

import pytest

from tests.support.lua import check_header, constants, unused_includes
from weir.redis.scripts import Scripts, expand, names
from weir.router.store import messages, registry, subscriptions
from weir.router.store.core import LUA
from weir.router.store.events import Kind
from weir.router.store.records import NOTIFICATION, QUOTA_MARKER, Assoc, Entry, NtfItem, Regained, Status
from weir.router.store.subscriptions import SUBSCRIBED


@pytest.mark.parametrize("name", names(LUA))
def test_a_header_says_what_it_does(name: str) -> None:
    check_header(LUA, name)


@pytest.mark.parametrize("name", names(LUA))
def test_includes_are_expanded_once(name: str) -> None:
    text = expand(LUA, name)
    assert "-- include:" not in text
    assert text.count("local tag =") <= 1
    assert text.count("local function first_entry(") <= 1


def test_python_and_lua_have_the_same_statuses() -> None:
    assert constants(LUA, "include/status") == {status.name: status.value for status in Status}


def test_python_and_lua_have_the_same_associations() -> None:
    expected = {f"ASSOC_{assoc.name}": assoc.value for assoc in Assoc}
    assert constants(LUA, "include/association") == expected | {"SUBSCRIBED": subscriptions.SUBSCRIBED}
    assert {SUBSCRIBED + assoc.value for assoc in Assoc}.isdisjoint(status.value for status in Status)


def test_python_and_lua_have_the_same_answers_to_ack() -> None:
    assert constants(LUA, "include/acked") == {"EXPIRED": messages.EXPIRED, "REMOVED": messages.REMOVED}


def test_python_and_lua_have_the_same_answers_about_services() -> None:
    assert constants(LUA, "ensure_service") == {"OTHER_ROLE": registry.OTHER_ROLE, "REPLACED": registry.REPLACED}
    assert constants(LUA, "rotate") == {"UNKNOWN": registry.UNKNOWN, "TAKEN": registry.TAKEN}


def test_python_and_lua_have_the_same_answers_to_reassert() -> None:
    assert constants(LUA, "include/regain") == {state.name: state.value for state in Regained}


def test_python_and_lua_have_the_same_layout_of_an_entry() -> None:
    lua = constants(LUA, "include/entry")
    assert (lua["NOTIFICATION"], lua["QUOTA_MARKER"]) == (NOTIFICATION, QUOTA_MARKER)
    raw = Entry(b"m" * 24, 0x01020304, 3, b"t" * 25).pack()
    assert raw[: lua["MESSAGE_ID"]] == b"m" * 24
    assert raw[lua["TIME"] - 1 :][:4] == b"\1\2\3\4"
    assert raw[lua["FLAGS"] - 1] == 3


def test_python_and_lua_have_the_same_layout_of_a_notification() -> None:
    lua = constants(LUA, "include/item")
    raw = NtfItem(0x01020304, b"n" * 24, b"meta").pack()
    assert raw[lua["ITEM_TIME"] - 1 :][:4] == b"\1\2\3\4"
    assert raw[lua["NONCE"] - 1 : lua["NONCE_END"]] == b"n" * 24


def test_python_and_lua_have_the_same_kinds_of_events() -> None:
    assert constants(LUA, "include/event") == {kind.name: kind.value.decode() for kind in Kind}


def test_every_include_is_used() -> None:
    assert unused_includes(LUA) == set()


def test_pokes_stay_in_their_slot_on_a_cluster() -> None:
    assert "redis.call('SPUBLISH'" in expand(LUA, "send", sharded=True)
    assert "redis.call('SPUBLISH'" not in expand(LUA, "send")
    assert Scripts(LUA).shas["send"] != Scripts(LUA, sharded=True).shas["send"]


def test_nothing_reads_a_body() -> None:
    """Bodies never enter Lua: no script GETs what may be a body."""
    for name in names(LUA):
        keys_read = re.findall(r"'GET', ([^,)]+)", expand(LUA, name))
        assert not [key for key in keys_read if ":b:" in key or "body" in key], name
