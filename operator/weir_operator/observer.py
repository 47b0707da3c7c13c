"""Looks at what no watch tells: whether Redis keeps its promise, what the edges count, why pods do not start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp

from weir_operator import names
from weir_operator.api import Api, ApiError
from weir_operator.cache import Cache, Key
from weir_operator.children.common import component, selector
from weir_operator.children.config import redis_url
from weir_operator.identity import decode
from weir_operator.model import Router
from weir_operator.probe import StoreTarget, probe
from weir_operator.status import Fleet, StoreHealth

_HTTP_LIMIT = aiohttp.ClientTimeout(total=5)
_RATE = 1.0  # looks per second over all objects of a kind, at most: at rest they are all there is to do
# Why pods do not start is asked at the first looks that find nothing new, then only now and then.
_EARLY_LOOKS = 3
_PODS_SECONDS = 300.0


@dataclass(slots=True)
class Look:
    """What was last found out about a router."""

    store: StoreHealth | None = None
    fleet: Fleet | None = None
    pod_problem: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the Deployment at that time
    quiet: int = 0  # looks in a row before this one that found nothing new


def pace(seconds: float, objects: int) -> float:
    """How long to wait for the next look at one of so many objects."""
    return max(seconds, objects / _RATE)


class Observer:
    def __init__(self, api: Api, cache: Cache, seconds: float, changed: Callable[[Key], None]) -> None:
        self._api = api
        self._cache = cache
        self._seconds = seconds
        self._changed = changed
        self.looks: dict[Key, Look] = {}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def forget(self, key: Key) -> None:
        self.looks.pop(key, None)

    async def look(self, key: Key) -> float | None:
        """One look at one router; the answer is when to look again."""
        router = self._cache.objects.get(key)
        if router is None or router.deleting:
            self.forget(key)
            return None
        deployment = self._cache.child(key, "Deployment", router.name)
        facts: Mapping[str, Any] = deployment.facts if deployment else {}
        before = self.looks.get(key, Look())
        quiet = before.quiet if facts == before.facts else 0
        rest = pace(self._seconds, len(self.looks))
        ask_pods = quiet < _EARLY_LOOKS or quiet % max(1, round(_PODS_SECONDS / rest)) == 0
        missing = facts.get("ready", 0) < facts.get("replicas", 0)
        store, fleet, pods = await asyncio.gather(
            self._store(key, router),
            self._fleet(key, router) if facts.get("ready") and router.smp else _nothing(),
            self._pods(router) if missing and ask_pods else _nothing(),
        )
        if missing and not ask_pods:
            pods = before.pod_problem
        now = Look(store, fleet or (before.fleet if facts.get("ready") else None), pods, facts)
        self.looks[key] = now
        if _news(before, now):
            self._changed(key)
        else:
            now.quiet = quiet + 1
        settled = store is not None and store.reachable and store.durable and not missing
        if settled:
            return pace(self._seconds, len(self.looks))
        soon = min(self._seconds / 3 * 2**quiet, self._seconds)
        # Pods that were just made are not yet known to be stuck: however many routers there are, one more look at them.
        return soon if facts != before.facts else pace(soon, len(self.looks))

    async def _store(self, key: Key, router: Router) -> StoreHealth | None:
        redis = self._cache.child(key, "StatefulSet", names.redis(router.name))
        if router.embedded is not None and (redis is None or not redis.facts["ready"]):
            return StoreHealth(False, False, "StoreUnreachable", "the embedded Redis is not ready")
        target = await self.store_target(key, router)
        if target is None:
            return None
        if isinstance(target, str):
            return StoreHealth(False, False, "StoreMisconfigured", target)
        return await probe(target, router.namespace)

    async def store_target(self, key: Key, router: Router) -> StoreTarget | str | None:
        """Where Redis is; a text says why that is not known, None that it is too early to say."""
        redis = router.spec["redis"]
        url: str | None
        if router.embedded is not None:
            service = self._cache.child(key, "Service", names.redis(router.name))
            secret = self._cache.child(key, "Secret", names.store(router.name))
            if service is None or secret is None or not service.facts["ip"]:
                return None
            raw = decode(secret.facts["data"], names.REDIS_PASSWORD)
            password = raw.decode() if raw else None
            url = f"redis://{_host(service.facts['ip'])}:{names.REDIS_PORT}/0"
        else:
            external = redis["external"]
            url, password = redis_url(router), None
            for part in ("urlSecret", "passwordSecret"):
                if part not in external:
                    continue
                value = await self._secret_value(router, external[part]["name"], external[part]["key"])
                if value is None:
                    return f"Secret {external[part]['name']} has no key {external[part]['key']}"
                url, password = (value, password) if part == "urlSecret" else (url, value)
        if url is None:
            return "no URL of Redis is given"
        return StoreTarget(url, password, redis["durability"], redis["replicas"], redis["replicaTimeout"])

    async def _secret_value(self, router: Router, name: str, key: str) -> str | None:
        found = await self._api.get("Secret", router.namespace, name)
        raw = decode((found or {}).get("data") or {}, key)
        return raw.decode(errors="replace").strip() if raw is not None else None

    async def _fleet(self, key: Key, router: Router) -> Fleet | None:
        service = self._cache.child(key, "Service", names.http_service(router.name))
        if service is None or not service.facts["ip"]:
            return None
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=_HTTP_LIMIT)
        url = f"http://{_host(service.facts['ip'])}:{router.spec['ports']['http']}/status.json"
        try:
            async with self._session.get(url) as response:
                if response.status != 200:
                    return None
                told = await response.json()
            connections, queues, messages = (int(told.get(n) or 0) for n in ("connections", "queues", "messages"))
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError, AttributeError):
            return None
        return Fleet(connections, queues, messages, datetime.now(UTC))

    async def _pods(self, router: Router) -> str | None:
        """Why pods are not ready, in the kubelet's words."""
        try:
            found = await self._api.list_some("Pod", router.namespace, selector(router, component(router)), 20)
        except ApiError:
            return None
        problems = sorted(filter(None, (pod_problem(pod) for pod in found)))
        return problems[0] if problems else None


def pod_problem(pod: Mapping[str, Any]) -> str | None:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    for one in status.get("containerStatuses") or ():
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"pod {name}: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    for one in status.get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return f"pod {name}: {one.get('reason')}: {one.get('message', '')}".rstrip(": ")
    return None


def _news(before: Look, now: Look) -> bool:
    """Numbers are news as well; the moment they were counted is not."""

    def numbers(look: Look) -> tuple[int, ...] | None:
        return (look.fleet.connections, look.fleet.queues, look.fleet.messages) if look.fleet else None

    return (before.store, before.pod_problem, numbers(before)) != (now.store, now.pod_problem, numbers(now))


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


async def _nothing() -> None:
    return None
