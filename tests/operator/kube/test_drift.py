"""Drift of children, as tables of (observed, desired)."""

from __future__ import annotations

from typing import Any

import pytest

from weir_operator.kube import drift

COVERED: list[tuple[str, Any, Any]] = [
    ("equal", {"a": 1}, {"a": 1}),
    ("defaults are more", {"a": 1, "b": 2}, {"a": 1}),
    ("nested", {"a": {"b": [{"c": 1, "d": 2}]}}, {"a": {"b": [{"c": 1}]}}),
    ("empty and missing are the same", {}, {"a": {}, "b": []}),
    ("null", {}, {"a": None}),
]
UNCOVERED: list[tuple[str, Any, Any]] = [
    ("another value", {"a": 1}, {"a": 2}),
    ("missing", {}, {"a": 1}),
    ("a longer list", {"a": [1, 2]}, {"a": [1]}),
    ("a shorter list", {"a": [1]}, {"a": [1, 2]}),
    ("another order", {"a": [2, 1]}, {"a": [1, 2]}),
    ("a number and a text", {"a": "1"}, {"a": 1}),
    ("inside a list", {"a": [{"b": 1}]}, {"a": [{"b": 2}]}),
    ("a map for a value", {"a": {"b": 1}}, {"a": 1}),
]


@pytest.mark.parametrize(("observed", "desired"), [row[1:] for row in COVERED], ids=[row[0] for row in COVERED])
def test_covers(observed: Any, desired: Any) -> None:
    assert drift.covers(observed, desired)


@pytest.mark.parametrize(("observed", "desired"), [row[1:] for row in UNCOVERED], ids=[row[0] for row in UNCOVERED])
def test_does_not_cover(observed: Any, desired: Any) -> None:
    assert not drift.covers(observed, desired)


def body(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "n", "resourceVersion": "7", "uid": "u"},
        **more,
    }


def test_content_leaves_out_what_the_server_writes() -> None:
    noisy = body(status={"x": 1}, data={"k": "v"})
    noisy["metadata"] |= {
        "generation": 3,
        "managedFields": [1],
        "annotations": {"deployment.kubernetes.io/revision": "4", "mine": "yes"},
    }
    found = drift.content(noisy)
    assert found == {"kind": "ConfigMap", "metadata": {"name": "n", "annotations": {"mine": "yes"}}, "data": {"k": "v"}}
    assert drift.unpack(drift.pack(noisy)) == found
    assert drift.digest(noisy) == drift.digest({**noisy, "status": {"x": 2}})


def test_a_secrets_values_are_kept_as_digests_only() -> None:
    secret = {**body(data={"k": "c2VjcmV0"}), "kind": "Secret"}
    assert b"c2VjcmV0" not in drift.pack(secret)
    assert drift.covers(drift.content(secret), drift.content({**secret, "metadata": {"name": "n"}}))
    assert not drift.covers(drift.content(secret), drift.content({**secret, "data": {"k": "b3RoZXI="}}))


def test_a_replacement_keeps_defaults_and_drops_additions() -> None:
    live = {
        "metadata": {"name": "n", "resourceVersion": "7"},
        "spec": {
            "clusterIP": "10.0.0.1",
            "ports": [
                {"name": "extra", "port": 1},
                {"name": "smp", "port": 9999, "nodePort": 30000},
            ],
            "template": {"containers": [{"name": "edge", "env": [{"name": "X", "value": "1"}], "tty": False}]},
        },
        "status": {"x": 1},
    }
    desired = {
        "metadata": {"name": "n"},
        "spec": {"ports": [{"name": "smp", "port": 5223}], "template": {"containers": [{"name": "edge", "env": []}]}},
    }
    made = drift.replacement(desired, live)
    assert made == {
        "metadata": {"name": "n", "resourceVersion": "7"},
        "spec": {
            "clusterIP": "10.0.0.1",
            "ports": [{"name": "smp", "port": 5223, "nodePort": 30000}],
            "template": {"containers": [{"name": "edge", "env": [], "tty": False}]},
        },
    }
    assert drift.covers(made, desired)
