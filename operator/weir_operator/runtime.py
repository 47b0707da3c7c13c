"""The operator at work: kopf's watches in, looks at objects out. One per process, while it holds the Lease."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable

import aiohttp
import kopf

from weir_operator import handlers, metrics, names
from weir_operator.api import Api, ApiError
from weir_operator.cache import Cache, Key
from weir_operator.events import Recorder
from weir_operator.model import CUSTOM_METRICS, KEDA, PROMETHEUS
from weir_operator.observer import Observer
from weir_operator.routers import Routers, World
from weir_operator.services import Services
from weir_operator.settings import Settings
from weir_operator.workqueue import WorkQueue

_log = logging.getLogger("weir.operator")
_DISCOVER_SECONDS = 60.0
_OPTIONAL = frozenset((KEDA, PROMETHEUS, CUSTOM_METRICS))
_OBSERVERS = 4
_RELIST_EARLY = (3.0, 15.0)
_RELIST_SECONDS = 600.0
_TROUBLE = (ApiError, aiohttp.ClientError, OSError, TimeoutError)


class Runtime:
    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._settings = settings
        self._cache = Cache()
        self._world = World(settings.defaults)
        self._recorder = Recorder(api, settings.identity)
        self._queue: WorkQueue[Key] = WorkQueue(self._look_after, workers=settings.workers)
        self._observer = Observer(api, self._cache, settings.observe_seconds, self._wake_now)
        self._observations: WorkQueue[Key] = WorkQueue(self._observer.look, workers=_OBSERVERS)
        self._routers = Routers(api, self._cache, self._recorder, self._world, self._observer.looks)
        self._services = Services(
            api, self._cache, self._recorder, self._observer.store_target, settings.observe_seconds
        )
        self._ready_counts: dict[Key, tuple[int, int]] = {}

    async def run(self, stop: asyncio.Event, on_kopf: Callable[[], None]) -> None:
        """Until `stop` is set, or the cluster has learnt or forgotten an API that matters (then start a new one)."""
        await self._prepare(stop)
        if stop.is_set():
            return
        metrics.count_with(self.count)
        tasks = [
            asyncio.create_task(self._queue.run()),
            asyncio.create_task(self._observations.run()),
            asyncio.create_task(self._recorder.run()),
            asyncio.create_task(self._discover(stop)),
            asyncio.create_task(self._relist()),
            asyncio.create_task(_when_up(kopf_is_up := asyncio.Event(), on_kopf)),
        ]
        # Let them start first: kopf waits at its end for all tasks that came after it.
        await asyncio.sleep(0)
        try:
            await kopf.operator(
                registry=handlers.registry(self._cache, self._wake, self._world.apis),
                settings=handlers.settings(self._world.apis),
                clusterwide=not self._settings.namespaces,
                namespaces=self._settings.namespaces,
                stop_flag=stop,
                ready_flag=kopf_is_up,
            )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._observer.close()

    async def _prepare(self, stop: asyncio.Event) -> None:
        """Waits for our CRDs, learns which optional APIs there are, and lists all children once."""
        told = False
        while not stop.is_set():
            try:
                if set(names.PLURALS) <= await self._api.resources(names.API_VERSION):
                    for kind in names.PLURALS:
                        await self._api.served(kind, next(iter(self._settings.namespaces), None))
                    self._world.apis = _OPTIONAL & await self._api.groups()
                    await self._list_children()
                    return
                if not told:
                    _log.warning("the CRDs of %s are not installed yet; waiting for them", names.API_VERSION)
                    told = True
            except _TROUBLE as error:
                _log.warning("the API server cannot be asked yet: %s", error)
            await asyncio.sleep(2)

    async def _list_children(self) -> set[Key]:
        """Before the first router is looked at: a half-known world looks like a damaged one. And later, for what went
        between this list and the beginning of a watch. Returns whose children were not as they were known."""
        mine = {names.MANAGED_BY: names.MANAGER}
        stale: set[Key] = set()
        for kind in handlers.watched_children(self._world.apis):
            for namespace in self._settings.namespaces or (None,):
                bodies, version = await self._api.list_all(kind.name, namespace, mine)
                for body in bodies:
                    owner = self._cache.child_event(kind.name, body, gone=False)
                    if owner is not None:
                        stale.add(owner)
                there = {body["metadata"]["uid"] for body in bodies}
                stale |= self._cache.drop_missing(kind.name, namespace, there, version)
        return stale

    async def _relist(self) -> None:
        """Watches tell everything from their beginning on; this is for what was before, and a net under the rest."""
        for delay in itertools.chain(_RELIST_EARLY, itertools.repeat(_RELIST_SECONDS)):
            await asyncio.sleep(delay)
            try:
                for key in await self._list_children():
                    self._wake(key, 0.0)
            except _TROUBLE as error:
                _log.warning("children cannot be listed now: %s", error)

    async def _discover(self, stop: asyncio.Event) -> None:
        while True:
            await asyncio.sleep(_DISCOVER_SECONDS)
            try:
                apis = _OPTIONAL & await self._api.groups()
            except _TROUBLE:
                continue
            if apis != self._world.apis:
                _log.info("the cluster's optional APIs are now: %s", ", ".join(sorted(apis)) or "none")
                stop.set()

    # --- what asks for a look ---

    def _wake(self, key: Key, delay: float) -> None:
        self._queue.add(key, delay)
        if self._readiness_changed(key):
            self._observations.add(key, delay + 0.2)

    def _wake_now(self, key: Key) -> None:
        self._queue.add(key)

    def _readiness_changed(self, key: Key) -> bool:
        """Edges or Redis have come or gone, so that a look at them may find something new."""
        if key.kind == names.SMP_SERVICE or key not in self._cache.objects:
            return False
        deployment = self._cache.child(key, "Deployment", key.name)
        redis = self._cache.child(key, "StatefulSet", names.redis(key.name))
        count = (deployment.facts["ready"] if deployment else -1, redis.facts["ready"] if redis else -1)
        if self._ready_counts.get(key) == count:
            return False
        self._ready_counts[key] = count
        return True

    # --- the look ---

    async def _look_after(self, key: Key) -> float | None:
        began = time.monotonic()
        try:
            after = self._services.reconcile if key.kind == names.SMP_SERVICE else self._routers.reconcile
            again = await after(key)
        except BaseException:
            metrics.RECONCILES.labels(key.kind, "error").inc()
            raise
        finally:
            metrics.RECONCILE_SECONDS.labels(key.kind).observe(time.monotonic() - began)
        metrics.RECONCILES.labels(key.kind, "ok").inc()
        if key not in self._cache.objects:
            self._ready_counts.pop(key, None)
        return again

    def count(self) -> None:
        """Numbers that are only worth counting when somebody asks."""
        metrics.QUEUE_DEPTH.set(self._queue.depth)
        counts = {(kind, ready): 0 for kind in names.PLURALS for ready in ("true", "false")}
        for key, found in self._cache.objects.items():
            conditions = found.status.get("conditions") or ()
            well = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
            counts[key.kind, "true" if well else "false"] += 1
        for (kind, ready), count in counts.items():
            metrics.OBJECTS.labels(kind, ready).set(count)


async def _when_up(kopf_is_up: asyncio.Event, then: Callable[[], None]) -> None:
    await kopf_is_up.wait()
    await asyncio.sleep(0.1)
    then()
