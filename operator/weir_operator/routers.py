"""SMPRouter and NTFRouter: from what is written to what is there, and back to status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from weir_operator import names
from weir_operator.api import Api, ApiError
from weir_operator.apply import Applied, Applier
from weir_operator.cache import Cache, Key, read
from weir_operator.children import desired_state
from weir_operator.children.desired import published_hosts, published_port
from weir_operator.children.scaling import scaling_metric
from weir_operator.events import Recorder
from weir_operator.identity import read_online
from weir_operator.keys import KeyMaker, Keys
from weir_operator.metrics import CERTIFICATE_EXPIRY
from weir_operator.model import Defaults, Observed, Router
from weir_operator.observer import Look
from weir_operator.status import Findings, address_of, router_status, same
from weir_operator.teardown import Teardown

# Certificates end and days pass without any event.
_RESYNC_SECONDS = 300.0
# A given Secret carries none of our labels, so no watch tells of it.
_GIVEN_SECONDS = 30.0
_MISSING_SECONDS = 5.0
_TOLD = frozenset(("Ready", "CertificateValid", "StoreReachable", "DurabilityReady"))
# What every router goes through when it is new.
_EARLY = frozenset(("Pending", "NoEdges", "NoEdgeReady", "StoreUnreachable", "Valid", "Answered", "Proved", "Stopped"))


@dataclass(slots=True)
class World:
    """What is the same for all routers."""

    defaults: Defaults
    apis: frozenset[str] = frozenset()


class Routers:
    def __init__(self, api: Api, cache: Cache, recorder: Recorder, world: World, looks: dict[Key, Look]) -> None:
        self._api = api
        self._cache = cache
        self._say = recorder.say
        self._world = world
        self._looks = looks
        self._keys = KeyMaker(api, cache)
        self._applier = Applier(api, cache)
        self._teardown = Teardown(api, cache)

    def forget(self, key: Key) -> None:
        self._keys.forget(key)
        self._applier.forget(key)

    async def reconcile(self, key: Key) -> float | None:
        router = self._cache.objects.get(key)
        if router is None:
            self.forget(key)
            return None
        if router.deleting:
            return await self._teardown.step(key, router)
        if names.FINALIZER not in router.finalizers:
            router = await self._guard(key, router)
        observed = self._observed(key, router)
        paused = router.spec["maintenance"]["paused"]
        keys = await self._keys.keys(key, router, observed)
        for reason, message in keys.news:
            self._say(key, router.uid, reason, message)
        hosts = published_hosts(router, observed)
        known = keys.online.fingerprint if keys.online is not None and keys.problem is None else None
        address = address_of(router, known, hosts, published_port(router, observed)) if known else None
        observed = replace(
            observed,
            edge_secret=keys.edge,
            edge_annotations=keys.annotations,
            address=address or router.status.get("address"),
        )
        done = Applied()
        if not paused:
            desired = desired_state(router, observed)
            # With the edges' Secret missing the Deployment is not in the list, and must not be taken for unwanted.
            done = await self._applier.bring(key, router.uid, desired, prune=keys.edge is not None)
            self._tell(key, router, done)
        await self._write_status(key, router, observed, keys, done, known, address)
        if "secretName" in router.spec["identity"]:
            return _GIVEN_SECONDS if keys.problem is None else _MISSING_SECONDS
        return _RESYNC_SECONDS

    async def _guard(self, key: Key, router: Router) -> Router:
        """The finalizer comes before the first child."""
        patch = {
            "metadata": {
                "resourceVersion": router.resource_version,
                "finalizers": [*router.finalizers, names.FINALIZER],
            }
        }
        found = await self._api.merge(router.kind, router.namespace, router.name, patch)
        self._cache.object_event(router.kind, found, gone=False)
        return replace(read(found, router.kind), just_read=True)

    def _observed(self, key: Key, router: Router) -> Observed:
        deployment = self._cache.child(key, "Deployment", router.name)
        service = self._cache.child(key, "Service", router.name)
        return Observed(
            defaults=self._world.defaults,
            apis=self._world.apis,
            public_host=service.facts["public"] if service else None,
            node_port=service.facts["node_ports"].get("smp" if router.smp else "ntf") if service else None,
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
        # What the edges have, not what they should have: handing a certificate over may have failed.
        edge = self._cache.child(key, "Secret", names.edge(router.name))
        online = read_online(edge.facts["data"]) if edge else None
        look = self._looks.get(key, Look())
        findings = Findings(
            deployment=deployment.facts if deployment else None,
            online=online,
            fingerprint=fingerprint,
            placement_check=keys.placement_check,
            address=address,
            key_problem=keys.problem,
            apply_problems=tuple(done.problems),
            pod_problem=look.pod_problem,
            store=look.store,
            fleet=look.fleet,
            looked=key in self._looks,
            scaled_by=scaling_metric(router, observed) if router.smp else None,
        )
        now = datetime.now(UTC)
        status = router_status(router, findings, now)
        if online is not None:
            CERTIFICATE_EXPIRY.labels(key.namespace, key.name).set((online.not_after - now).total_seconds())
        if same(status, router.status):
            return
        self._tell_conditions(key, router, status)
        try:
            found = await self._api.put_status(router.kind, router.namespace, router.name, router.uid, status)
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._cache.object_event(router.kind, found, gone=False)

    def _tell(self, key: Key, router: Router, done: Applied) -> None:
        if done.made:
            self._say(key, router.uid, "Created", f"made {', '.join(f'{kind} {name}' for kind, name in done.made)}")
        for kind, name in done.changed:
            self._say(key, router.uid, "Repaired", f"{kind} {name} had been changed or deleted and is back")
        for kind, name in done.removed:
            self._say(key, router.uid, "Removed", f"{kind} {name} is no longer asked for")
        for problem in done.problems:
            self._say(key, router.uid, problem.reason, problem.message, warning=True)

    def _tell_conditions(self, key: Key, router: Router, status: Mapping[str, Any]) -> None:
        """What became better or worse; a router that is still being made is no news but for real trouble."""
        before = {one["type"]: one for one in router.status.get("conditions") or ()}
        for one in status["conditions"]:
            was = before.get(one["type"], {})
            if one["type"] not in _TOLD or was.get("reason") == one["reason"]:
                continue
            if was.get("status") in (None, "Unknown") and one["reason"] in _EARLY:
                continue
            text = f"{one['type']} is {one['status']}: {one['message']}"
            self._say(key, router.uid, one["reason"], text, warning=one["status"] != "True")
