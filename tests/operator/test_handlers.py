"""What kopf is asked to watch: our kinds, and children by their label only."""

from __future__ import annotations

import kopf

from weir_operator import names
from weir_operator.cache import Cache
from weir_operator.handlers import registry, settings, watched_children
from weir_operator.kinds import KINDS
from weir_operator.model import KEDA, PROMETHEUS


def test_children_are_filtered_by_the_server() -> None:
    made = settings(frozenset())
    for kind in watched_children(frozenset()):
        selector = made.watching.label_selectors[kind.group, kind.version, kind.plural]
        assert selector == "app.kubernetes.io/managed-by=weir-operator"
    assert (names.GROUP, names.VERSION, "smprouters") not in made.watching.label_selectors


def test_nothing_is_asked_for_that_needs_rights_beyond_the_namespaces() -> None:
    made = settings(frozenset())
    assert made.scanning.disabled
    assert not made.posting.enabled
    assert made.peering.standalone


def test_optional_kinds_only_where_they_are() -> None:
    assert "ServiceMonitor" not in {kind.name for kind in watched_children(frozenset())}
    assert {kind.name for kind in watched_children(frozenset({KEDA, PROMETHEUS}))} >= {"ServiceMonitor", "ScaledObject"}


def test_every_kind_has_a_handler_and_kopf_writes_nothing() -> None:
    made = registry(Cache(), lambda _key, _delay: None, frozenset())
    assert isinstance(made, kopf.OperatorRegistry)
    watched = {handler.id for handler in made._watching.get_all_handlers()}
    assert watched == {KINDS[kind].plural for kind in names.PLURALS} | {
        kind.plural for kind in watched_children(frozenset())
    }
    # No handler of a kind that keeps its progress in annotations, or needs a finalizer of kopf's.
    assert not made._changing.get_all_handlers()
    assert not made._spawning.get_all_handlers()
