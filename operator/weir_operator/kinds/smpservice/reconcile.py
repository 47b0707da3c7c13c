"""Reconcile SMPServices: register each in the store of its router, and write its status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child
from weir_operator.kinds.routers.model import Router
from weir_operator.kinds.routers.observer import interval
from weir_operator.kinds.routers.probe import StoreTarget, milliseconds
from weir_operator.kinds.secrets import KEY_TYPES, decode
from weir_operator.kinds.smpservice import key_pair
from weir_operator.kinds.smpservice.registration import Registered, Registration, StoreAccess, forget, register
from weir_operator.kinds.smpservice.status import service_status
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache
from weir_operator.kube.conditions import Problem
from weir_operator.kube.events import Recorder
from weir_operator.kube.objects import CustomObject, Key, Manifest

Service: TypeAlias = CustomObject
TargetOf = Callable[[Key, Router], Awaitable[StoreTarget | str | None]]


class ServiceReconciler:
    """`target_of` finds the Redis of a router."""

    def __init__(self, api: Api, cache: Cache, recorder: Recorder, target_of: TargetOf, seconds: float) -> None:
        self._api = api
        self._cache = cache
        self._record = recorder.record
        self._target_of = target_of
        self._seconds = seconds
        self._drift: dict[Key, Mapping[str, int]] = {}

    async def reconcile(self, key: Key) -> float | None:
        """Return the seconds until the next reconciliation, or None when only an event should start it."""
        service = self._cache.objects.get(key)
        if service is None:
            self._drift.pop(key, None)
            return None
        spec = service.spec
        if service.deleting:
            return await self._delete(key, service, spec)
        await self._adjust_finalizer(key, service, spec)
        made = await self._key_pair(key, service, spec)
        if isinstance(made, Problem):
            await self._write(key, service, spec, None, made)
            return self._seconds
        listed = tuple(dict.fromkeys(filter(None, [made, *spec["fingerprints"]])))
        access = await self._store_access(key, spec["router"])
        if isinstance(access, Problem):
            await self._write(key, service, spec, made, access)
            return self._seconds / 3
        overlap = milliseconds(spec["rotation"]["overlap"]) // 1000
        found = await register(access, Registration(spec["role"], listed, overlap, spec.get("label", "")))
        if isinstance(found, Registered) and found.rotated:
            self._record(key, service.uid, "Rotated", found.rotated)
        await self._write(key, service, spec, made, found)
        return interval(self._seconds, sum(1 for _ in self._cache.of_kind(names.SMP_SERVICE)))

    # --- the key pair ---

    async def _key_pair(self, key: Key, service: Service, spec: Mapping[str, Any]) -> str | Problem | None:
        """The fingerprint of the key pair that the spec asks for. The pair is made once and never replaced."""
        wanted = spec.get("keyPair")
        if wanted is None:
            return None
        name = wanted.get("secretName") or names.service_keys(service.name)
        seen = self._cache.child(key, "Secret", name)
        if seen is not None:
            data = seen.facts["data"]
        else:
            if service.status.get("secretName") == name and service.status.get("fingerprints"):
                live = await self._api.get("Secret", key.namespace, name)
                if live is None:
                    text = f"Secret {name} is gone; restore it, or name another in keyPair.secretName and rotate to it"
                    return Problem("KeyPairLost", text)
            made = await self._make_pair(key, service, spec, name)
            if isinstance(made, Problem):
                return made
            data = made
        found = key_pair.fingerprint(data)
        return found or Problem("KeyPairInvalid", f"{names.TLS_CERT} of Secret {name} is not a certificate")

    async def _make_pair(
        self, key: Key, service: Service, spec: Mapping[str, Any], name: str
    ) -> Mapping[str, str] | Problem:
        wanted = spec["keyPair"]
        data = key_pair.make(KEY_TYPES[wanted["keyType"]], service.name, wanted["lifetimeDays"])
        manifest: Manifest = child(
            service,
            "v1",
            "Secret",
            name,
            "service",
            owned=wanted["whenDeleted"] == "Delete",
            type="kubernetes.io/tls",
            data=data,
        )
        try:
            body = await self._api.create(manifest)
            self._record(key, service.uid, "KeyPairCreated", f"a key pair was made in Secret {name}")
        except ApiError as error:
            if error.status != 409:
                raise
            found = await self._api.get("Secret", key.namespace, name)
            marks = (found or {}).get("metadata", {}).get("labels") or {}
            if found is None or marks.get(names.SERVICE) != service.name:
                return Problem("NotOurs", f"there is a Secret {name} that is not the operator's; name another")
            body = found
        return dict(self._cache.remember(key, "Secret", body).facts["data"])

    # --- the store ---

    async def _store_access(self, key: Key, router_name: str) -> StoreAccess | Problem:
        at = Key(names.SMP_ROUTER, key.namespace, router_name)
        router = self._cache.objects.get(at)
        if router is None or router.deleting:
            return Problem("RouterMissing", f"there is no SMPRouter {router_name}")
        target = await self._target_of(at, router)
        secret = self._cache.child(at, "Secret", names.store(router_name))
        raw = decode(secret.facts["data"], names.PLACEMENT_KEY) if secret else None
        if raw is None or target is None:
            return Problem("RouterNotReady", f"SMPRouter {router_name} is still being created")
        if isinstance(target, str):
            return Problem("StoreMisconfigured", target)
        return StoreAccess(target, key.namespace, raw if len(raw) == 32 else bytes.fromhex(raw.decode().strip()))

    # --- deletion ---

    async def _adjust_finalizer(self, key: Key, service: Service, spec: Mapping[str, Any]) -> None:
        """The finalizer is there only while a deletion has something to do."""
        wanted = spec["whenDeleted"] == "Forget"
        if wanted == (names.FINALIZER in service.finalizers):
            return
        rest = [one for one in service.finalizers if one != names.FINALIZER]
        await self._set_finalizers(service, [*rest, names.FINALIZER] if wanted else rest)

    async def _delete(self, key: Key, service: Service, spec: Mapping[str, Any]) -> float | None:
        if names.FINALIZER not in service.finalizers:
            return None
        access = await self._store_access(key, spec["router"])
        known = tuple(service.status.get("fingerprints") or spec["fingerprints"])
        # Without its router there is no store to delete the service from.
        if isinstance(access, StoreAccess) and known:
            done = await forget(access, known)
            if isinstance(done, Problem):
                self._record(
                    key, service.uid, done.reason, f"the service cannot be forgotten yet: {done.message}", warning=True
                )
                return self._seconds / 3
        await self._set_finalizers(service, [one for one in service.finalizers if one != names.FINALIZER])
        return None

    async def _set_finalizers(self, service: Service, finalizers: list[str]) -> None:
        patch = {"metadata": {"resourceVersion": service.resource_version, "finalizers": finalizers}}
        try:
            found = await self._api.merge(service.kind, service.namespace, service.name, patch)
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._cache.object_event(service.kind, found, gone=False)

    # --- status ---

    async def _write(
        self, key: Key, service: Service, spec: Mapping[str, Any], made: str | None, found: Registered | Problem
    ) -> None:
        now = datetime.now(UTC)
        status = service_status(service, spec, made, found, self._drift.get(key), now)
        if isinstance(found, Registered):
            self._drift[key] = dict(found.drift)
        if status == service.status:
            return
        before = {one["type"]: one for one in service.status.get("conditions") or ()}.get("Ready")
        ready = status["conditions"][0]
        if before is None or (before["status"], before["reason"]) != (ready["status"], ready["reason"]):
            bad = ready["status"] != "True"
            self._record(key, service.uid, ready["reason"], ready["message"], warning=bad)
        try:
            body = await self._api.put_status(service.kind, service.namespace, service.name, service.uid, status)
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._cache.object_event(service.kind, body, gone=False)
