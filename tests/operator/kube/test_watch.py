"""The work that kopf is given: watch our kinds, and children by their label only; and to write nothing."""

from __future__ import annotations

import kopf

from weir_operator.kinds import names
from weir_operator.kinds.registry import read
from weir_operator.kinds.resources import KEDA, OWN, PROMETHEUS, child_kinds, facts, owner_of
from weir_operator.kube.cache import Cache
from weir_operator.kube.login import Login
from weir_operator.kube.objects import Key
from weir_operator.kube.watch import Watched, configure, registry

WATCHED = Watched(OWN, child_kinds(frozenset()), "app.kubernetes.io/managed-by=weir-operator")


def configured() -> kopf.OperatorSettings:
    made = kopf.OperatorSettings()
    configure(made, WATCHED)
    return made


async def nothing() -> None:
    pass


def wake(_key: Key, _delay: float) -> None:
    pass


def made() -> kopf.OperatorRegistry:
    cache = Cache(read, owner_of, facts)
    return registry(WATCHED, Login("test"), cache, wake, on_startup=nothing, on_cleanup=nothing)


def test_children_are_filtered_by_the_server() -> None:
    settings = configured()
    for kind in WATCHED.children:
        selector = settings.watching.label_selectors[kind.group, kind.version, kind.plural]
        assert selector == "app.kubernetes.io/managed-by=weir-operator"
    assert (names.GROUP, names.VERSION, "smprouters") not in settings.watching.label_selectors


def test_nothing_is_asked_for_that_needs_rights_beyond_the_namespaces() -> None:
    settings = configured()
    assert settings.scanning.disabled
    assert not settings.posting.enabled
    assert settings.peering.standalone


def test_optional_kinds_only_where_they_are() -> None:
    assert "ServiceMonitor" not in {kind.name for kind in child_kinds(frozenset())}
    assert {kind.name for kind in child_kinds(frozenset({KEDA, PROMETHEUS}))} >= {"ServiceMonitor", "ScaledObject"}


def test_every_kind_has_a_handler_and_kopf_writes_nothing() -> None:
    handlers = made()
    watched = {handler.id for handler in handlers._watching.get_all_handlers()}
    assert watched == {kind.plural for kind in (*WATCHED.own, *WATCHED.children)}
    # No handler of a kind that keeps its progress in annotations, or needs a finalizer of kopf's.
    assert not handlers._changing.get_all_handlers()
    assert not handlers._spawning.get_all_handlers()


def test_kopf_finds_its_startup_cleanup_and_login() -> None:
    found = {str(handler.id) for handler in made()._activities.get_all_handlers()}
    assert found == {"startup", "cleanup", "login"}
