"""The cache: owners of children, echoes of our own writes, old events, missed deletions; and it keeps no keys."""

from __future__ import annotations

import base64
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.registry import read
from weir_operator.kinds.resources import facts, owner_of
from weir_operator.kube.cache import Cache
from weir_operator.kube.objects import Key

OWNER = Key(names.SMP_ROUTER, "ns", "r")


def child(
    kind: str = "ConfigMap", version: int = 5, uid: str = "u", labels: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    marks = {names.MANAGED_BY: names.MANAGER, names.OWNER_KIND: "smprouter", names.ROUTER: "r"}
    meta = {"name": "c", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    return {"kind": kind, "metadata": {**meta, "labels": marks if labels is None else labels}, **more}


def test_owner_by_labels() -> None:
    assert owner_of(child()) == OWNER
    service = {names.MANAGED_BY: names.MANAGER, names.OWNER_KIND: "smpservice", names.SERVICE: "s"}
    assert owner_of(child(labels=service)) == Key(names.SMP_SERVICE, "ns", "s")
    for labels in (
        {},
        {names.ROUTER: "r"},
        {names.MANAGED_BY: "helm", names.OWNER_KIND: "smprouter", names.ROUTER: "r"},
    ):
        assert owner_of(child(labels=labels)) is None


def test_echoes_and_old_events_are_no_news() -> None:
    cache = Cache(read, owner_of, facts)
    assert cache.child_event("ConfigMap", child(version=5), gone=False) == OWNER
    assert cache.child_event("ConfigMap", child(version=5), gone=False) is None
    assert cache.child_event("ConfigMap", child(version=4), gone=False) is None
    assert cache.child_event("ConfigMap", child(version=6), gone=False) == OWNER
    # Another object of the same name is news, whatever its version.
    assert cache.child_event("ConfigMap", child(version=3, uid="v"), gone=False) == OWNER


def test_deletion_forgets_only_that_object() -> None:
    cache = Cache(read, owner_of, facts)
    cache.child_event("ConfigMap", child(uid="new", version=9), gone=False)
    assert cache.child_event("ConfigMap", child(uid="old", version=8), gone=True) == OWNER
    assert cache.child(OWNER, "ConfigMap", "c") is not None
    cache.child_event("ConfigMap", child(uid="new", version=10), gone=True)
    assert cache.child(OWNER, "ConfigMap", "c") is None


def test_a_child_without_its_labels_is_still_a_child() -> None:
    cache = Cache(read, owner_of, facts)
    cache.child_event("ConfigMap", child(), gone=False)
    assert cache.child_event("ConfigMap", child(version=6, labels={}), gone=False) == OWNER


def test_ghosts_are_dropped_but_not_what_came_after_the_list() -> None:
    cache = Cache(read, owner_of, facts)
    cache.child_event("ConfigMap", child(version=5), gone=False)
    assert cache.drop_missing("Secret", "ns", set(), 9) == set()
    assert cache.drop_missing("ConfigMap", "other", set(), 9) == set()
    assert cache.drop_missing("ConfigMap", "ns", {"u"}, 9) == set()
    assert cache.drop_missing("ConfigMap", "ns", set(), 4) == set()
    assert cache.drop_missing("ConfigMap", None, set(), 9) == {OWNER}
    assert cache.child(OWNER, "ConfigMap", "c") is None


def test_objects_have_their_defaults_and_go_forward_only() -> None:
    cache = Cache(read, owner_of, facts)

    def body(version: int, **spec: Any) -> dict[str, Any]:
        meta = {"name": "r", "namespace": "ns", "uid": "u", "resourceVersion": str(version), "generation": 1}
        return {"metadata": meta, "spec": spec}

    assert cache.object_event(names.SMP_ROUTER, body(5, replicas=3), gone=False) == OWNER
    cache.object_event(names.SMP_ROUTER, body(4, replicas=1), gone=False)
    assert cache.objects[OWNER].spec["replicas"] == 3
    assert cache.objects[OWNER].spec["limits"]["quota"] == 128
    cache.object_event(names.SMP_ROUTER, body(6), gone=True)
    assert OWNER not in cache.objects


def test_no_key_of_a_ca_or_a_service_is_kept() -> None:
    secret_text = base64.b64encode(b"the very secret").decode()
    data = {names.CA_KEY: secret_text, names.TLS_KEY: secret_text, names.CA_CERT: "cert"}
    cache = Cache(read, owner_of, facts)
    cache.child_event("Secret", child("Secret", data=data), gone=False)
    seen = cache.child(OWNER, "Secret", "c")
    assert seen is not None
    assert seen.facts["data"] == {names.CA_CERT: "cert"}
    assert seen.facts["has_ca_key"] is True
    assert secret_text not in str(seen)
