"""The operator at work, while it holds the Lease: kopf's watches in, reconciliations out.

kopf runs the watches, and its startup and cleanup handlers start and stop the tasks of this module. Each event puts one
object into the work queue. A worker reconciles the object with the reconciler of its kind.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from typing import Protocol

import kopf

from weir_operator import metrics
from weir_operator.kinds import names
from weir_operator.kinds.registry import DEFINITIONS, ROUTER_KINDS, read
from weir_operator.kinds.resources import CHILD_LABELS, OPTIONAL_APIS, OWN, child_kinds, facts, owner_of
from weir_operator.kinds.routers.observer import Observer
from weir_operator.kinds.routers.reconcile import RouterReconciler, Surroundings
from weir_operator.kinds.smpservice.reconcile import ServiceReconciler
from weir_operator.kube import watch
from weir_operator.kube.api import API_ERRORS, Api
from weir_operator.kube.cache import Cache
from weir_operator.kube.events import Recorder
from weir_operator.kube.login import Login
from weir_operator.kube.objects import Key
from weir_operator.kube.workqueue import WorkQueue
from weir_operator.settings import Settings

_log = logging.getLogger(__name__)
_DISCOVER_SECONDS = 60.0
_OBSERVERS = 4
_RELIST_EARLY = (3.0, 15.0)
_RELIST_SECONDS = 600.0


class Reconciler(Protocol):
    async def reconcile(self, key: Key) -> float | None: ...


class Runtime:
    """One run of kopf. It ends when it is told to stop, or when the cluster's optional APIs have changed."""

    def __init__(self, api: Api, login: Login, settings: Settings) -> None:
        self._api = api
        self._login = login
        self._settings = settings
        self._cache = Cache(read, owner_of, facts)
        self._surroundings = Surroundings(settings.defaults, settings.own_namespace)
        self._recorder = Recorder(api, names.API_VERSION, names.MANAGER, settings.identity)
        self._queue: WorkQueue[Key] = WorkQueue(self._reconcile, workers=settings.workers)
        self._observer = Observer(ROUTER_KINDS, api, self._cache, settings.observe_seconds, self._queue_now)
        self._observations: WorkQueue[Key] = WorkQueue(self._observer.observe, workers=_OBSERVERS)
        routers: dict[str, Reconciler] = {
            kind.name: RouterReconciler(
                kind, read, api, self._cache, self._recorder, self._surroundings, self._observer.observations
            )
            for kind in ROUTER_KINDS.values()
        }
        services = ServiceReconciler(
            api, self._cache, self._recorder, self._observer.store_target, settings.observe_seconds
        )
        self._reconcilers = routers | {names.SMP_SERVICE: services}
        self._ready_counts: dict[Key, tuple[int, int]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        """Work until `stop` is set. `on_ready` is called when kopf has started.

        `stop` is also set here, when an optional API was installed or removed, or when a job has failed. The caller
        then starts a new Runtime.
        """
        await self._prepare(stop)
        if stop.is_set():
            return
        metrics.before_each_page(self.update_gauges)
        ready = asyncio.Event()
        watched = watch.Watched(OWN, child_kinds(self._surroundings.apis), _selector())
        waiting = asyncio.create_task(_call_when_ready(ready, on_ready))

        async def on_startup() -> None:
            work = (
                self._queue.run(),
                self._observations.run(),
                self._recorder.run(),
                self._discover(stop),
                self._relist(),
            )
            self._tasks = [asyncio.create_task(one) for one in work]
            for task in self._tasks:
                task.add_done_callback(lambda task: _end_after_failure(task, stop))

        try:
            await kopf.operator(
                registry=watch.registry(
                    watched, self._login, self._cache, self._wake, on_startup=on_startup, on_cleanup=self._cleanup
                ),
                clusterwide=not self._settings.namespaces,
                namespaces=self._settings.namespaces,
                stop_flag=stop,
                ready_flag=ready,
            )
        finally:
            waiting.cancel()
            # kopf skips its cleanup handlers when its own startup fails.
            await self._cleanup()

    async def _cleanup(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._observer.close()

    async def _prepare(self, stop: asyncio.Event) -> None:
        """Wait for the CRDs, find out which optional APIs the cluster has, and list all children once."""
        logged = False
        while not stop.is_set():
            try:
                if set(DEFINITIONS) <= await self._api.resources(names.API_VERSION):
                    for kind in DEFINITIONS:
                        await self._api.served(kind, next(iter(self._settings.namespaces), None))
                    self._surroundings.apis = OPTIONAL_APIS & await self._api.groups()
                    await self._list_children()
                    return
                if not logged:
                    _log.warning("the CRDs of %s are not installed yet; waiting for them", names.API_VERSION)
                    logged = True
            except API_ERRORS as error:
                _log.warning("the API server does not answer yet: %s", error)
            await asyncio.sleep(2)

    async def _list_children(self) -> set[Key]:
        """List all children into the cache. Return the owners of children that were unknown or have changed.

        This comes before the first reconciliation, because a child that is merely unknown would be taken for a deleted
        one. It is repeated later, for changes between this list and the start of the watches.
        """
        stale: set[Key] = set()
        for kind in child_kinds(self._surroundings.apis):
            for namespace in self._settings.namespaces or (None,):
                bodies, version = await self._api.list_all(kind.name, namespace, CHILD_LABELS)
                for body in bodies:
                    owner = self._cache.child_event(kind.name, body, gone=False)
                    if owner is not None:
                        stale.add(owner)
                there = {body["metadata"]["uid"] for body in bodies}
                stale |= self._cache.drop_missing(kind.name, namespace, there, version)
        return stale

    async def _relist(self) -> None:
        """Find changes that no watch has reported: soon after the start, and then now and then."""
        for delay in itertools.chain(_RELIST_EARLY, itertools.repeat(_RELIST_SECONDS)):
            await asyncio.sleep(delay)
            try:
                for key in await self._list_children():
                    self._wake(key, 0.0)
            except API_ERRORS as error:
                _log.warning("children cannot be listed now: %s", error)

    async def _discover(self, stop: asyncio.Event) -> None:
        while True:
            await asyncio.sleep(_DISCOVER_SECONDS)
            try:
                apis = OPTIONAL_APIS & await self._api.groups()
            except API_ERRORS:
                continue
            if apis != self._surroundings.apis:
                _log.info("the cluster's optional APIs are now: %s", ", ".join(sorted(apis)) or "none")
                stop.set()

    # --- what starts a reconciliation ---

    def _wake(self, key: Key, delay: float) -> None:
        self._queue.add(key, delay)
        if self._readiness_changed(key):
            self._observations.add(key, delay + 0.2)

    def _queue_now(self, key: Key) -> None:
        self._queue.add(key)

    def _readiness_changed(self, key: Key) -> bool:
        """Whether the number of ready pods has changed, so that an observation may find something new."""
        if key.kind not in ROUTER_KINDS or key not in self._cache.objects:
            return False
        deployment = self._cache.child(key, "Deployment", key.name)
        redis = self._cache.child(key, "StatefulSet", names.redis(key.name))
        count = (deployment.facts["ready"] if deployment else -1, redis.facts["ready"] if redis else -1)
        if self._ready_counts.get(key) == count:
            return False
        self._ready_counts[key] = count
        return True

    # --- the reconciliation ---

    async def _reconcile(self, key: Key) -> float | None:
        began = time.monotonic()
        try:
            again = await self._reconcilers[key.kind].reconcile(key)
        except BaseException:
            metrics.RECONCILES.labels(key.kind, "error").inc()
            raise
        finally:
            metrics.RECONCILE_SECONDS.labels(key.kind).observe(time.monotonic() - began)
        metrics.RECONCILES.labels(key.kind, "ok").inc()
        if key not in self._cache.objects:
            self._ready_counts.pop(key, None)
        return again

    def update_gauges(self) -> None:
        """Set the gauges that are computed only when somebody asks for the metrics."""
        metrics.QUEUE_DEPTH.set(self._queue.depth)
        counts = {(kind, ready): 0 for kind in DEFINITIONS for ready in ("true", "false")}
        for key, found in self._cache.objects.items():
            conditions = found.status.get("conditions") or ()
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
            counts[key.kind, "true" if ready else "false"] += 1
        for (kind, state), count in counts.items():
            metrics.OBJECTS.labels(kind, state).set(count)


def _selector() -> str:
    return ",".join(f"{key}={value}" for key, value in CHILD_LABELS.items())


def _end_after_failure(task: asyncio.Task[None], stop: asyncio.Event) -> None:
    """End the run when one of its jobs has failed. The caller starts a new one."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a background job failed; the operator starts its work again", exc_info=error)
        metrics.JOB_FAILURES.inc()
        stop.set()


async def _call_when_ready(ready: asyncio.Event, then: Callable[[], None]) -> None:
    await ready.wait()
    await asyncio.sleep(0.1)
    then()
