"""Deletion, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.operator.world import Town, router_of
from weir_operator.kinds import names
from weir_operator.kinds.routers.teardown import kept_secrets_to_delete


async def deleting(**spec: Any) -> Town:
    town = Town(**spec)
    await town.reconcile()
    town.api.put({**town.body, "metadata": {**town.body["metadata"], "deletionTimestamp": "now"}})
    town.watch()
    return town


def gone(town: Town, kind: str, name: str) -> None:
    """The API server tells that an object has gone."""
    seen = town.cache.child(town.key, kind, name)
    assert seen is not None
    body = {"metadata": {"name": name, "namespace": "ns", "uid": seen.uid, "resourceVersion": "999"}}
    town.cache.child_event(kind, body, gone=True)


async def test_each_stage_waits_for_the_one_before() -> None:
    town = await deleting(autoscaling={"maxReplicas": 3})
    assert await town.reconcile() == ["delete HorizontalPodAutoscaler/r"]
    gone(town, "HorizontalPodAutoscaler", "r")
    assert await town.reconcile() == ["delete Deployment/r"]
    gone(town, "Deployment", "r")
    assert await town.reconcile() == ["delete StatefulSet/r-redis"]
    gone(town, "StatefulSet", "r-redis")
    assert await town.reconcile() == ["merge SMPRouter/r"]
    assert names.FINALIZER not in town.body["metadata"]["finalizers"]
    town.watch()
    assert await town.reconcile() == []


async def test_what_is_kept_is_kept() -> None:
    town = await deleting()
    for kind, name in (("Deployment", "r"), ("StatefulSet", "r-redis")):
        await town.reconcile()
        gone(town, kind, name)
    await town.reconcile()
    assert ("Secret", "r-identity") in town.api.objects
    assert ("Secret", "r-store") in town.api.objects


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"identity": {"whenDeleted": "Delete"}}, ["r-identity"]),
        ({"identity": {"whenDeleted": "Delete", "secretName": "mine"}}, []),
        ({"redis": {"embedded": {"storage": {"whenDeleted": "Delete"}}}}, ["r-store"]),
        ({"redis": {"external": {"url": "redis://x"}}}, []),
    ],
)
def test_which_kept_secrets_go_with_the_router(spec: dict[str, Any], expected: list[str]) -> None:
    assert kept_secrets_to_delete(router_of(**spec)) == expected


async def test_other_finalizers_are_left_alone() -> None:
    town = await deleting(replicas=1)
    finalizers = ["other/one", names.FINALIZER]
    town.api.put({**town.body, "metadata": {**town.body["metadata"], "finalizers": finalizers}})
    town.watch()
    for kind, name in (("Deployment", "r"), ("StatefulSet", "r-redis")):
        await town.reconcile()
        gone(town, kind, name)
    await town.reconcile()
    assert town.body["metadata"]["finalizers"] == ["other/one"]


async def test_a_router_that_is_no_longer_ours_to_hold_is_left() -> None:
    town = await deleting()
    released = replace(town.cache.objects[town.key], finalizers=())
    town.cache.objects[town.key] = released
    assert await town.reconcile() == []
