"""The scripts as files: headers, includes, and what Python and Lua must have alike."""

import pytest

from tests.support.lua import check_header, constants, own_names, unused_includes
from weir.notifier.store import core, records
from weir.notifier.store.core import LUA
from weir.notifier.store.events import Kind
from weir.notifier.store.packing import SubLetter, TokenLetter
from weir.redis.scripts import expand


@pytest.mark.parametrize("name", own_names(LUA))
def test_a_header_says_what_it_does(name: str) -> None:
    check_header(LUA, name)


@pytest.mark.parametrize("name", own_names(LUA))
def test_includes_are_expanded_once(name: str) -> None:
    text = expand(LUA, name)
    assert "-- include:" not in text
    assert text.count("local tag =") <= 1


def test_every_include_is_used() -> None:
    assert unused_includes(LUA) == set()


def test_python_and_lua_have_the_same_outcomes() -> None:
    lua = constants(LUA, "include/status")
    assert lua == {name: getattr(core, name) for name in lua}


def test_python_and_lua_have_the_same_statuses() -> None:
    assert constants(LUA, "include/token_status") == {letter.name: letter.value for letter in TokenLetter}
    assert constants(LUA, "include/sub_status") == {f"SUB_{letter.name}": letter.value for letter in SubLetter}


def test_python_and_lua_have_the_same_kinds() -> None:
    assert constants(LUA, "include/event") == {kind.name: kind.value.decode() for kind in Kind}
    assert {kind.value.decode() for kind in records.PushKind} == {"v", "m", "k"}


def test_whatever_changes_an_association_counts_it() -> None:
    """Count and idsHash are exact: one include changes associations, and its users save the shares."""
    for name in own_names(LUA):
        text = expand(LUA, name)
        assert ("local function change(" in text) == ("\nsave_shares()\n" in text), name
        assert "'a', '1'" not in text or "associate(v, id, md5)" in text, name
