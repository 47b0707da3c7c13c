"""Observes what no watch reports: whether Redis is reachable and durable, the counts of the pods, and why pods fail.

A healthy router is observed every `seconds`, and less often when there are many routers. A router with a problem is
observed sooner, with pauses that double. When an observation differs from the one before, the router is reconciled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp

from weir_operator.kinds import names
from weir_operator.kinds.metadata import selector
from weir_operator.kinds.routers.config import redis_url
from weir_operator.kinds.routers.model import Counts, Router, RouterKind, embedded_settings
from weir_operator.kinds.routers.probe import StoreTarget, accepts, probe
from weir_operator.kinds.routers.redis_password import passwords, stored
from weir_operator.kinds.routers.status import StoreHealth
from weir_operator.kinds.secrets import decode
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache
from weir_operator.kube.conditions import timestamp
from weir_operator.kube.objects import Key

_HTTP_LIMIT = aiohttp.ClientTimeout(total=5)
_RATE = 1.0  # observations per second of all routers together, at most: nothing else costs anything at rest
# Pods are listed for the first observations that find nothing new, and then only now and then.
_EARLY_OBSERVATIONS = 3
_PODS_SECONDS = 300.0


@dataclass(slots=True)
class Observation:
    """The last observation of a router."""

    store: StoreHealth | None = None
    counts: Counts | None = None
    pod_problem: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the Deployment at that time
    accepted: str | None = field(default=None, repr=False)  # a new password that the embedded Redis accepts
    unchanged: int = 0  # observations in a row, before this one, that found nothing new


def interval(seconds: float, objects: int) -> float:
    """Seconds between two observations of one of so many objects."""
    return max(seconds, objects / _RATE)


class Observer:
    """`kinds` are the kinds of routers; `changed` is called with each router whose observation has changed."""

    def __init__(
        self, kinds: Mapping[str, RouterKind], api: Api, cache: Cache, seconds: float, changed: Callable[[Key], None]
    ) -> None:
        self._kinds = kinds
        self._api = api
        self._cache = cache
        self._seconds = seconds
        self._changed = changed
        self.observations: dict[Key, Observation] = {}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def forget(self, key: Key) -> None:
        self.observations.pop(key, None)

    async def observe(self, key: Key) -> float | None:
        """Observe one router once. Return the seconds until the next observation."""
        router = self._cache.objects.get(key)
        if router is None or router.deleting:
            self.forget(key)
            return None
        kind = self._kinds[key.kind]
        deployment = self._cache.child(key, "Deployment", router.name)
        facts: Mapping[str, Any] = deployment.facts if deployment else {}
        before = self.observations.get(key, Observation())
        unchanged = before.unchanged if facts == before.facts else 0
        pause = interval(self._seconds, len(self.observations))
        list_pods = unchanged < _EARLY_OBSERVATIONS or unchanged % max(1, round(_PODS_SECONDS / pause)) == 0
        missing = facts.get("ready", 0) < facts.get("replicas", 0)
        store, accepted, counts, pods = await asyncio.gather(
            self._store(key, router),
            self._accepted(key, router),
            self._counts(kind, key, router) if facts.get("ready") else _nothing(),
            self._pods(kind, router) if missing and list_pods else _nothing(),
        )
        if missing and not list_pods:
            pods = before.pod_problem
        now = Observation(store, counts or (before.counts if facts.get("ready") else None), pods, facts, accepted)
        self.observations[key] = now
        if _changed(before, now):
            self._changed(key)
        else:
            now.unchanged = unchanged + 1
        settled = store is not None and store.reachable and store.durable and not missing
        if settled:
            return interval(self._seconds, len(self.observations))
        soon = min(self._seconds / 3 * 2**unchanged, self._seconds)
        # Pods that were just made are not known to be stuck yet, so they are observed once more at once, however many
        # routers there are.
        return soon if facts != before.facts else interval(soon, len(self.observations))

    async def _store(self, key: Key, router: Router) -> StoreHealth | None:
        redis = self._cache.child(key, "StatefulSet", names.redis(router.name))
        if embedded_settings(router) is not None and (redis is None or not redis.facts["ready"]):
            return StoreHealth(False, False, "StoreUnreachable", "the embedded Redis is not ready")
        target = await self.store_target(key, router)
        if target is None:
            return None
        if isinstance(target, str):
            return StoreHealth(False, False, "StoreMisconfigured", target)
        return await probe(target, router.namespace)

    async def _accepted(self, key: Key, router: Router) -> str | None:
        """The new password of the embedded Redis, if a rotation waits for Redis and Redis accepts the password."""
        secret = self._cache.child(key, "Secret", names.store(router.name))
        if secret is None or embedded_settings(router) is None:
            return None
        new = stored(secret.facts).untried
        target = await self.store_target(key, router) if new is not None else None
        if not isinstance(target, StoreTarget) or not await accepts(replace(target, password=new), router.namespace):
            return None
        return new

    async def store_target(self, key: Key, router: Router) -> StoreTarget | str | None:
        """How to reach the router's Redis, or a text that says why this is unknown. None: it is too early to know."""
        redis = router.spec["redis"]
        url: str | None
        if embedded_settings(router) is not None:
            service = self._cache.child(key, "Service", names.redis(router.name))
            secret = self._cache.child(key, "Secret", names.store(router.name))
            if service is None or secret is None or not service.facts["ip"]:
                return None
            password = next(iter(passwords(secret.facts["data"])), None)
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
        prefix = redis.get("prefix", "")
        return StoreTarget(url, password, redis["durability"], redis["replicas"], redis["replicaTimeout"], prefix)

    async def _secret_value(self, router: Router, name: str, key: str) -> str | None:
        found = await self._api.get("Secret", router.namespace, name)
        raw = decode((found or {}).get("data") or {}, key)
        return raw.decode(errors="replace").strip() if raw is not None else None

    async def _counts(self, kind: RouterKind, key: Key, router: Router) -> Counts | None:
        service = self._cache.child(key, "Service", names.http_service(router.name))
        if service is None or not service.facts["ip"]:
            return None
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=_HTTP_LIMIT)
        url = f"http://{_host(service.facts['ip'])}:{router.spec['ports']['http']}/status.json"
        numbers = await read_numbers(self._session, url, kind.numbers)
        return None if numbers is None else {**kind.counts(numbers), "observedAt": timestamp(datetime.now(UTC))}

    async def _pods(self, kind: RouterKind, router: Router) -> str | None:
        """Why pods are not ready, in the kubelet's words."""
        try:
            found = await self._api.list_some("Pod", router.namespace, selector(router, kind.component), 20)
        except ApiError:
            return None
        problems = sorted(filter(None, (pod_problem(pod) for pod in found)))
        return problems[0] if problems else None


async def read_numbers(session: aiohttp.ClientSession, url: str, names: tuple[str, ...]) -> dict[str, int] | None:
    """Ask one edge, which knows the totals of all. None when it does not answer as it should."""
    try:
        async with session.get(url) as response:
            if response.status != 200:
                return None
            answer = await response.json()
        return {name: int(answer.get(name) or 0) for name in names}
    except (aiohttp.ClientError, OSError, ValueError, TypeError, TimeoutError, AttributeError):
        return None


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


def _changed(before: Observation, now: Observation) -> bool:
    """Whether two observations differ, apart from the time of their counts."""

    def numbers(one: Observation) -> dict[str, Any]:
        return {**(one.counts or {}), "observedAt": None}

    def parts(one: Observation) -> tuple[Any, ...]:
        return one.store, one.pod_problem, one.accepted, numbers(one)

    return parts(before) != parts(now)


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


async def _nothing() -> None:
    return None
