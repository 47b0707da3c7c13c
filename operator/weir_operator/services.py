"""SMPService: from what is written to what the router's store knows, and back to status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from weir_operator import identity, names
from weir_operator.api import Api, ApiError
from weir_operator.cache import Cache, Key
from weir_operator.children.common import child
from weir_operator.events import Recorder
from weir_operator.identity import Problem
from weir_operator.model import Manifest, Router
from weir_operator.observer import pace
from weir_operator.probe import StoreTarget, milliseconds
from weir_operator.service_desk import Account, Request, Visit, drift_class, forget, settle
from weir_operator.status import condition, timestamp, with_times

TargetOf = Callable[[Key, Router], Awaitable[StoreTarget | str | None]]


class Services:
    def __init__(self, api: Api, cache: Cache, recorder: Recorder, target_of: TargetOf, seconds: float) -> None:
        self._api = api
        self._cache = cache
        self._say = recorder.say
        self._target_of = target_of
        self._seconds = seconds
        self._drift: dict[Key, Mapping[str, int]] = {}

    async def reconcile(self, key: Key) -> float | None:
        service = self._cache.objects.get(key)
        if service is None:
            self._drift.pop(key, None)
            return None
        spec = service.spec
        if service.deleting:
            return await self._end(key, service, spec)
        await self._guard(key, service, spec)
        made = await self._key_pair(key, service, spec)
        if isinstance(made, Problem):
            await self._write(key, service, spec, None, made)
            return self._seconds
        listed = tuple(dict.fromkeys(filter(None, [made, *spec["fingerprints"]])))
        visit = await self._visit(key, spec["router"])
        if isinstance(visit, Problem):
            await self._write(key, service, spec, made, visit)
            return self._seconds / 3
        overlap = milliseconds(spec["rotation"]["overlap"]) // 1000
        found = await settle(visit, Request(spec["role"], listed, overlap))
        if isinstance(found, Account) and found.rotated:
            self._say(key, service.uid, "Rotated", found.rotated)
        await self._write(key, service, spec, made, found)
        return pace(self._seconds, sum(1 for _ in self._cache.of_kind(names.SMP_SERVICE)))

    # --- the key pair ---

    async def _key_pair(self, key: Key, service: Router, spec: Mapping[str, Any]) -> str | Problem | None:
        """The fingerprint of the pair that was asked for; made once, never again over one that is there."""
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
        found = identity.service_fingerprint(data)
        return found or Problem("KeyPairInvalid", f"{names.TLS_CERT} of Secret {name} is not a certificate")

    async def _make_pair(
        self, key: Key, service: Router, spec: Mapping[str, Any], name: str
    ) -> Mapping[str, str] | Problem:
        wanted = spec["keyPair"]
        data = identity.make_service_identity(
            identity.KEY_TYPES[wanted["keyType"]], service.name, wanted["lifetimeDays"]
        )
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
            self._say(key, service.uid, "KeyPairCreated", f"a key pair was made in Secret {name}")
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

    async def _visit(self, key: Key, router_name: str) -> Visit | Problem:
        at = Key(names.SMP_ROUTER, key.namespace, router_name)
        router = self._cache.objects.get(at)
        if router is None or router.deleting:
            return Problem("RouterMissing", f"there is no SMPRouter {router_name}")
        target = await self._target_of(at, router)
        secret = self._cache.child(at, "Secret", names.store(router_name))
        raw = identity.decode(secret.facts["data"], names.PLACEMENT_KEY) if secret else None
        if raw is None or target is None:
            return Problem("RouterNotReady", f"SMPRouter {router_name} is still being made")
        if isinstance(target, str):
            return Problem("StoreMisconfigured", target)
        return Visit(target, key.namespace, raw if len(raw) == 32 else bytes.fromhex(raw.decode().strip()))

    # --- the end ---

    async def _guard(self, key: Key, service: Router, spec: Mapping[str, Any]) -> None:
        """A finalizer only while there is something to do at the end."""
        wanted = spec["whenDeleted"] == "Forget"
        if wanted == (names.FINALIZER in service.finalizers):
            return
        rest = [one for one in service.finalizers if one != names.FINALIZER]
        await self._set_finalizers(service, [*rest, names.FINALIZER] if wanted else rest)

    async def _end(self, key: Key, service: Router, spec: Mapping[str, Any]) -> float | None:
        if names.FINALIZER not in service.finalizers:
            return None
        visit = await self._visit(key, spec["router"])
        known = tuple(service.status.get("fingerprints") or spec["fingerprints"])
        # Without its router there is no store left to forget it in.
        if isinstance(visit, Visit) and known:
            done = await forget(visit, known)
            if isinstance(done, Problem):
                self._say(
                    key, service.uid, done.reason, f"the service cannot be forgotten yet: {done.message}", warning=True
                )
                return self._seconds / 3
        await self._set_finalizers(service, [one for one in service.finalizers if one != names.FINALIZER])
        return None

    async def _set_finalizers(self, service: Router, finalizers: list[str]) -> None:
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
        self, key: Key, service: Router, spec: Mapping[str, Any], made: str | None, found: Account | Problem
    ) -> None:
        now = datetime.now(UTC)
        status = service_status(service, spec, made, found, self._drift.get(key), now)
        if isinstance(found, Account):
            self._drift[key] = dict(found.drift)
        if status == service.status:
            return
        before = {one["type"]: one for one in service.status.get("conditions") or ()}.get("Ready")
        ready = status["conditions"][0]
        if before is None or (before["status"], before["reason"]) != (ready["status"], ready["reason"]):
            bad = ready["status"] != "True"
            self._say(key, service.uid, ready["reason"], ready["message"], warning=bad)
        try:
            body = await self._api.put_status(service.kind, service.namespace, service.name, service.uid, status)
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._cache.object_event(service.kind, body, gone=False)


def service_status(
    service: Router,
    spec: Mapping[str, Any],
    made: str | None,
    found: Account | Problem,
    drift_before: Mapping[str, int] | None,
    now: datetime,
) -> dict[str, Any]:
    """Pure. What is not known any more is kept as it was last known, except whether the service is connected."""
    status: dict[str, Any] = {k: v for k, v in service.status.items() if k not in ("conditions", "observedGeneration")}
    if isinstance(found, Problem):
        ready = condition("Ready", False, found.reason, found.message)
        rotating = condition("Rotating", None, found.reason, "not known")
        status.pop("connected", None)
        status.pop("edge", None)
    else:
        ready = condition("Ready", True, "Accepted", "the router knows the service by the listed certificates")
        rotating = condition("Rotating", False, "Settled", "one certificate is accepted")
        if found.overlap_until is not None:
            end = timestamp(found.overlap_until)
            rotating = condition("Rotating", True, "Overlap", f"the certificate before is accepted until {end}")
        status |= {"fingerprints": list(found.accepted), "queues": found.queues, "connected": found.connected}
        status.pop("edge", None)
        if found.edge:
            status["edge"] = found.edge
        if found.since is not None:
            status["lastSubscribed"] = timestamp(found.since)
        kind = drift_class(found.drift, drift_before) or status.get("drift")
        if kind:
            status["drift"] = kind
        if found.fold is not None:
            status["fold"] = dict(zip(("ready", "delivered", "left"), found.fold, strict=True))
    if made is not None:
        status["secretName"] = spec["keyPair"].get("secretName") or names.service_keys(service.name)
    status["observedGeneration"] = service.generation
    status["conditions"] = with_times([ready, rotating], service.status, service.generation, now)
    return status
