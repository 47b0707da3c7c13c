"""Reconcile one kind of router: bring its children into the desired state, and write its status.

A reconciliation starts from the cache and does the same whatever the event was: it makes sure of the keys, computes the
desired children, applies those that differ, and writes the status when it has changed. It is never half done, so it can
be repeated at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.resources import PRUNED
from weir_operator.kinds.routers.identity import read_online
from weir_operator.kinds.routers.keys import KeyMaker, Keys
from weir_operator.kinds.routers.model import Defaults, Observed, Router, RouterKind
from weir_operator.kinds.routers.network import published_hosts, published_port
from weir_operator.kinds.routers.observer import Observation
from weir_operator.kinds.routers.scaling import scaling_metric
from weir_operator.kinds.routers.status import Findings, address_of, router_status, same
from weir_operator.kinds.routers.teardown import Teardown
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.apply import Applied, Applier
from weir_operator.kube.cache import Cache
from weir_operator.kube.events import Recorder
from weir_operator.kube.objects import CustomObject, Key
from weir_operator.metrics import CERTIFICATE_EXPIRY, DRIFT_REPAIRS

# Certificates expire and days pass without any event.
_RESYNC_SECONDS = 300.0
# A Secret that the spec names carries no label of ours, so no watch reports it.
_GIVEN_SECONDS = 30.0
_MISSING_SECONDS = 5.0
_REPORTED = frozenset(("Ready", "CertificateValid", "StoreReachable", "DurabilityReady", "PushReady"))
# A condition with this reason is true, and some clients cannot connect.
_SHUTS_OUT = "Ed448"
# Reasons that every new router goes through.
_EARLY = frozenset(
    ("Pending", "NoEdges", "NoEdgeReady", "StoreUnreachable", "Valid", "Answered", "Proved", "Configured", "Stopped")
)


@dataclass(slots=True)
class Surroundings:
    """Facts of the cluster, the same for all its routers."""

    defaults: Defaults
    operator_namespace: str
    apis: frozenset[str] = frozenset()


class RouterReconciler:
    """`read` parses a router's body; `observations` are those of the observer."""

    def __init__(
        self,
        kind: RouterKind,
        read: Callable[[Mapping[str, Any], str], CustomObject],
        api: Api,
        cache: Cache,
        recorder: Recorder,
        surroundings: Surroundings,
        observations: Mapping[Key, Observation],
    ) -> None:
        self._kind = kind
        self._read = read
        self._api = api
        self._cache = cache
        self._record = recorder.record
        self._surroundings = surroundings
        self._observations = observations
        self._keys = KeyMaker(kind, api, cache)
        self._applier = Applier(api, cache, PRUNED, lambda child: DRIFT_REPAIRS.labels(child).inc())
        self._teardown = Teardown(api, cache)

    def forget(self, key: Key) -> None:
        self._keys.forget(key)
        self._applier.forget(key)

    async def reconcile(self, key: Key) -> float | None:
        """Return the seconds until the next reconciliation, or None when only an event should start it."""
        router = self._cache.objects.get(key)
        if router is None:
            self.forget(key)
            return None
        if router.deleting:
            return await self._teardown.step(key, router)
        if names.FINALIZER not in router.finalizers:
            router = await self._add_finalizer(key, router)
        observed = self._observed(key, router)
        paused = router.spec["maintenance"]["paused"]
        observation = self._observations.get(key, Observation())
        keys = await self._keys.keys(key, router, observed, observation.accepted)
        for reason, message in keys.events:
            self._record(key, router.uid, reason, message)
        hosts = published_hosts(router, observed)
        known = keys.online.fingerprint if keys.online is not None and keys.problem is None else None
        port = published_port(router, observed, self._kind.protocol)
        address = address_of(self._kind, known, hosts, port) + keys.own.query if known else None
        observed = replace(
            observed,
            edge_secret=keys.edge,
            edge_annotations=keys.annotations,
            control_secret=keys.control,
            address=address or router.status.get("address"),
        )
        done = Applied()
        if not paused:
            desired = self._kind.desired_state(router, observed)
            # Without the pods' Secret the Deployment is not in the list. It is not unwanted, so nothing is pruned then.
            done = await self._applier.apply_all(key, router.uid, desired, prune=keys.edge is not None)
            self._record_changes(key, router, done)
        await self._write_status(key, router, observed, keys, done, known, address)
        pause = _RESYNC_SECONDS
        if "secretName" in router.spec["identity"] or keys.own.given:
            pause = _GIVEN_SECONDS if keys.problem is None and keys.own.problem is None else _MISSING_SECONDS
        return pause if keys.again is None else min(pause, keys.again)

    async def _add_finalizer(self, key: Key, router: Router) -> Router:
        """Before the first child is made."""
        patch = {
            "metadata": {
                "resourceVersion": router.resource_version,
                "finalizers": [*router.finalizers, names.FINALIZER],
            }
        }
        found = await self._api.merge(router.kind, router.namespace, router.name, patch)
        self._cache.object_event(router.kind, found, gone=False)
        return replace(self._read(found, router.kind), just_read=True)

    def _observed(self, key: Key, router: Router) -> Observed:
        deployment = self._cache.child(key, "Deployment", router.name)
        service = self._cache.child(key, "Service", router.name)
        return Observed(
            defaults=self._surroundings.defaults,
            operator_namespace=self._surroundings.operator_namespace,
            apis=self._surroundings.apis,
            public_host=service.facts["public"] if service else None,
            node_port=service.facts["node_ports"].get(self._kind.protocol) if service else None,
            replicas=deployment.facts["replicas"] if deployment else None,
        )

    async def _write_status(
        self,
        key: Key,
        router: Router,
        observed: Observed,
        keys: Keys,
        done: Applied,
        fingerprint: str | None,
        address: str | None,
    ) -> None:
        deployment = self._cache.child(key, "Deployment", router.name)
        # The certificate that the edges have. It differs from the desired one when applying the Secret has failed.
        edge = self._cache.child(key, "Secret", names.edge(router.name))
        online = read_online(edge.facts["data"]) if edge else None
        observation = self._observations.get(key, Observation())
        findings = Findings(
            deployment=deployment.facts if deployment else None,
            online=online,
            fingerprint=fingerprint,
            checks=keys.checks,
            own=keys.own,
            address=address,
            key_problem=keys.problem,
            apply_problems=tuple(done.problems),
            pod_problem=observation.pod_problem,
            store=observation.store,
            counts=observation.counts,
            observed=key in self._observations,
            scaled_by=scaling_metric(router, observed),
        )
        now = datetime.now(UTC)
        status = router_status(self._kind, router, findings, now)
        if online is not None:
            CERTIFICATE_EXPIRY.labels(key.namespace, key.name).set((online.not_after - now).total_seconds())
        if same(status, router.status):
            return
        self._record_conditions(key, router, status)
        try:
            found = await self._api.put_status(router.kind, router.namespace, router.name, router.uid, status)
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._cache.object_event(router.kind, found, gone=False)

    def _record_changes(self, key: Key, router: Router, done: Applied) -> None:
        if done.made:
            self._record(key, router.uid, "Created", f"made {', '.join(f'{kind} {name}' for kind, name in done.made)}")
        for kind, name in done.changed:
            self._record(key, router.uid, "Repaired", f"{kind} {name} had been changed or deleted and is back")
        for kind, name in done.removed:
            self._record(key, router.uid, "Removed", f"{kind} {name} is no longer asked for")
        for problem in done.problems:
            self._record(key, router.uid, problem.reason, problem.message, warning=True)

    def _record_conditions(self, key: Key, router: Router, status: Mapping[str, Any]) -> None:
        """Record conditions that have changed, but not the steps that every new router goes through."""
        before = {one["type"]: one for one in router.status.get("conditions") or ()}
        for one in status["conditions"]:
            was = before.get(one["type"], {})
            if one["type"] not in _REPORTED or was.get("reason") == one["reason"]:
                continue
            if was.get("status") in (None, "Unknown") and one["reason"] in _EARLY:
                continue
            text = f"{one['type']} is {one['status']}: {one['message']}"
            warning = one["status"] != "True" or one["reason"] == _SHUTS_OUT
            self._record(key, router.uid, one["reason"], text, warning=warning)
