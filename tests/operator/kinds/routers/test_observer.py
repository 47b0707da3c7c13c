"""Observations: where Redis is, why pods do not start, and what counts as a change."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from aiohttp import web

from tests.operator.world import Town
from tests.support.redis import discard, start_server
from weir_operator.kinds import names
from weir_operator.kinds.registry import ROUTER_KINDS
from weir_operator.kinds.routers.observer import Observation, Observer, pod_problem
from weir_operator.kinds.routers.probe import StoreTarget
from weir_operator.kinds.routers.redis_password import passwords
from weir_operator.kube.objects import Key


async def observing(**spec: Any) -> tuple[Town, Observer, list[Key]]:
    town = Town(**spec)
    await town.reconcile()
    news: list[Key] = []
    return town, Observer(ROUTER_KINDS, town.api, town.cache, 30, news.append), news


def serve(town: Town, name: str, ip: str) -> None:
    """The cluster gives a Service its address."""
    town.edit("Service", name, {"spec": {"clusterIP": ip}})


async def test_the_embedded_redis_is_reached_by_its_services_address() -> None:
    town, observer, _ = await observing()
    router = town.cache.objects[town.key]
    assert await observer.store_target(town.key, router) is None
    serve(town, "r-redis", "10.0.0.9")
    target = await observer.store_target(town.key, router)
    assert isinstance(target, StoreTarget)
    assert target.url == "redis://10.0.0.9:6379/0"
    raw = town.api.objects["Secret", "r-store"]["data"][names.REDIS_PASSWORD]
    assert target.password == base64.b64decode(raw).decode()


async def test_a_new_password_is_tried_until_redis_accepts_it() -> None:
    """The observer connects as the edges do, and reports a password that Redis accepts."""
    town, observer, news = await observing()
    (old,) = passwords(town.api.objects["Secret", "r-store"]["data"])
    town.annotate(rotate_redis_password="1")
    await town.reconcile()
    new = passwords(town.api.objects["Secret", "r-store"]["data"])[1]
    serve(town, "r-redis", "127.0.0.1")
    town.edit("StatefulSet", "r-redis", {"status": {"readyReplicas": 1}})
    redis = start_server(port=0, password=old)
    try:
        number = int(redis.url.rpartition(":")[2])
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(names, "REDIS_PORT", number)
            await observer.observe(town.key)
            assert observer.observations[town.key].accepted is None
            assert redis.accept_passwords((old, new))
            news.clear()
            await observer.observe(town.key)
        found = observer.observations[town.key]
        assert (found.accepted, news) == (new, [town.key])
        assert new not in repr(found)
    finally:
        discard(redis)


async def test_a_given_redis_comes_from_its_secrets() -> None:
    external = {"urlSecret": {"name": "s"}, "passwordSecret": {"name": "s", "key": "pw"}}
    town, observer, _ = await observing(redis={"external": external, "durability": "replicated", "replicas": 2})
    router = town.cache.objects[town.key]
    assert await observer.store_target(town.key, router) == "Secret s has no key url"
    data = {"url": base64.b64encode(b"redis://there:1\n").decode(), "pw": base64.b64encode(b"word").decode()}
    town.api.put({"kind": "Secret", "metadata": {"name": "s"}, "data": data})
    target = await observer.store_target(town.key, router)
    assert target == StoreTarget("redis://there:1", "word", "replicated", 2, "1s")
    assert "word" not in repr(target)


async def test_a_redis_that_is_not_ready_is_not_even_asked() -> None:
    town, observer, news = await observing()
    assert await observer.observe(town.key) == pytest.approx(10)
    found = observer.observations[town.key]
    assert found.store is not None
    assert found.store.message == "the embedded Redis is not ready"
    assert news == [town.key]
    await observer.observe(town.key)
    assert news == [town.key], "the same again is no news"


async def test_numbers_come_from_any_edge(unused_tcp_port: int) -> None:
    town, observer, news = await observing(ports={"http": unused_tcp_port})
    serve(town, "r-http", "127.0.0.1")
    town.edit("Deployment", "r", {"status": {"readyReplicas": 2, "replicas": 2}})
    told = {"connections": 5, "queues": 4, "messages": 3}
    app = web.Application()

    async def status(_request: web.Request) -> web.Response:
        return web.json_response(told)

    app.router.add_get("/status.json", status)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
        await observer.observe(town.key)
        counts = observer.observations[town.key].counts
        assert counts is not None
        assert (counts["connections"], counts["queues"], counts["messages"]) == (5, 4, 3)
        await observer.observe(town.key)
        assert len(news) == 1
        told["queues"] = 9
        await observer.observe(town.key)
        assert len(news) == 2
    finally:
        await runner.cleanup()
        await observer.close()


async def test_a_router_that_is_gone_is_forgotten() -> None:
    town, observer, _ = await observing()
    await observer.observe(town.key)
    town.cache.object_event(names.SMP_ROUTER, town.body, gone=True)
    assert await observer.observe(town.key) is None
    assert observer.observations == {}


async def test_a_router_at_rest_is_observed_less_often() -> None:
    """Pods that do not start are listed again and again, but ever less often."""
    town, observer, _ = await observing()

    async def observe() -> tuple[float | None, int]:
        town.api.calls.clear()
        return await observer.observe(town.key), town.api.calls.count("list Pod")

    waits = [await observe() for _ in range(12)]
    assert [wait for wait, _ in waits] == [10, 10, 20] + 9 * [30], "Redis is asked as often as ever"
    assert [lists for _, lists in waits] == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    # The Deployment moves: why its pods are not ready may have changed.
    town.edit("Deployment", "r", {"status": {"replicas": 2, "updatedReplicas": 1}})
    assert await observe() == (10, 1)


async def test_all_routers_together_are_observed_once_a_second() -> None:
    town, observer, _ = await observing()
    for number in range(200):
        observer.observations[Key(names.SMP_ROUTER, "ns", f"r{number}")] = Observation()
    assert await observer.observe(town.key) == 10, "its Deployment is new: pods may get stuck in a moment"
    assert [await observer.observe(town.key) for _ in range(3)] == [201, 201, 201]


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": status}


def test_why_a_pod_does_not_start() -> None:
    def waiting(reason: str, message: str = "") -> dict[str, Any]:
        return pod(containerStatuses=[{"state": {"waiting": {"reason": reason, "message": message}}}])

    assert pod_problem(pod()) is None
    assert pod_problem(waiting("ContainerCreating")) is None
    assert pod_problem(waiting("ImagePullBackOff", "no such image")) == "pod p: ImagePullBackOff: no such image"
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    assert pod_problem(pod(conditions=[unscheduled])) == "pod p: Unschedulable: 0/1 nodes"
    assert pod_problem(pod(containerStatuses=[{"state": {"running": {}}}])) is None
