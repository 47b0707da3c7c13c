"""An SMPService in its router's store: register the service, rotate its certificates, read back its state.

The operator opens the store as an edge does, but takes no lease: it serves no clients.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from redis.exceptions import RedisError

from weir.redis.errors import StoreError, Unavailable
from weir.router.store.core import StoreConfig
from weir.router.store.records import ServiceError, ServiceInfo
from weir.router.store.store import Store
from weir.wire.smp.commands import ServiceRole
from weir_operator.kinds.routers.probe import StoreTarget, target_url
from weir_operator.kube.conditions import Problem

ROLES: Mapping[str, ServiceRole] = {"Messaging": ServiceRole.MESSAGING, "Notifier": ServiceRole.NOTIFIER}
T = TypeVar("T")
_LIMIT = 15.0
_SERVICE_ID_BYTES = 24
_DRIFT = ("diff", "fewer", "more", "ok")  # worst first


@dataclass(frozen=True, slots=True)
class Registered:
    """A service as its router's store has it."""

    accepted: tuple[str, ...]
    queues: int
    connected: bool
    edge: str | None
    since: datetime | None
    drift: Mapping[str, int]
    fold: tuple[int, int, int] | None  # ready, delivered, left
    overlap_until: datetime | None
    rotated: str | None = None  # the rotation that was just made


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration that the spec asks for."""

    role: str
    fingerprints: tuple[str, ...]  # in the order of the spec; the last is the one to continue under
    overlap_seconds: int
    label: str = ""  # "": the one that the service has is kept


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """How to open a router's store."""

    target: StoreTarget
    namespace: str
    placement_key: bytes = field(repr=False)


def raw_fingerprint(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def text_fingerprint(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()


async def register(access: StoreAccess, registration: Registration) -> Registered | Problem:
    """Make the store agree with the registration. Repeating this changes nothing."""

    async def work(store: Store) -> Registered | Problem:
        return await _register(store, registration)

    return await _with_store(access, work)


async def forget(access: StoreAccess, fingerprints: tuple[str, ...]) -> int | Problem:
    """Delete the service of these certificates. Return the number of its queues."""

    async def work(store: Store) -> int | Problem:
        service = await _find(store, fingerprints)
        return (await store.registry.forget(service) or 0) if service is not None else 0

    return await _with_store(access, work)


async def _with_store(access: StoreAccess, work: Callable[[Store], Awaitable[T | Problem]]) -> T | Problem:
    config = StoreConfig(
        url=target_url(access.target, access.namespace),
        password=access.target.password,
        placement_key=access.placement_key,
        prefix=access.target.prefix,
    )
    try:
        async with asyncio.timeout(_LIMIT):
            store = await Store.open(config, edge=False)
            try:
                return await work(store)
            finally:
                await store.close()
    except StoreError as error:
        return Problem("StoreRefused", str(error))
    except (Unavailable, TimeoutError, OSError, RedisError):
        return Problem("StoreUnreachable", "the router's Redis does not answer")


async def _find(store: Store, fingerprints: tuple[str, ...]) -> bytes | None:
    for text in fingerprints:
        found = await store.registry.find_service(raw_fingerprint(text))
        if found is not None:
            return found
    return None


async def _register(store: Store, registration: Registration) -> Registered | Problem:
    service = await _find(store, registration.fingerprints)
    if service is None:
        fresh = secrets.token_bytes(_SERVICE_ID_BYTES)
        made = await store.registry.ensure_service(
            raw_fingerprint(registration.fingerprints[0]), ROLES[registration.role], fresh
        )
        if isinstance(made, ServiceError):
            return Problem("Refused", "the certificate was given up by an earlier rotation")
        service = made
    info = await store.registry.get_service(service)
    if info is None:
        return Problem("Refused", "the service was forgotten")
    if info.role is not ROLES[registration.role]:
        return Problem("RoleMismatch", f"the certificate is known in another role than {registration.role}")
    if registration.label and registration.label != info.label:
        await store.registry.set_label(service, registration.label)
    rotated = None
    try:
        for old, new, overlap in rotations(info, registration):
            await store.registry.rotate(raw_fingerprint(old), raw_fingerprint(new), overlap)
            rotated = "the service continues under the certificate listed last"
    except StoreError as error:
        return Problem("RotationRefused", str(error))
    if rotated is not None:
        info = await store.registry.get_service(service) or info
    return _registered(info, rotated)


def rotations(info: ServiceInfo, registration: Registration) -> list[tuple[str, str, int]]:
    """Rotations (from, to, overlap) that are still to be done: to the last fingerprint in the list, and away from every
    fingerprint that is not in it."""
    now = datetime.now(UTC).timestamp()
    in_use = [text_fingerprint(fp) for fp, until in info.fingerprints.items() if until is None]
    waning = [text_fingerprint(fp) for fp, until in info.fingerprints.items() if until is not None and until > now]
    listed = [text_fingerprint(raw_fingerprint(text)) for text in registration.fingerprints]
    wanted = listed[-1]
    found = []
    for old in in_use:
        if old != wanted:
            found.append((old, wanted, registration.overlap_seconds if old in listed else 0))
    found += [(old, wanted, 0) for old in waning if old not in listed and old != wanted]
    return found


def _registered(info: ServiceInfo, rotated: str | None) -> Registered:
    now = datetime.now(UTC).timestamp()
    alive = {fp: until for fp, until in info.fingerprints.items() if until is None or until > now}
    ends = [until for until in alive.values() if until is not None]
    totals, fold = info.totals, info.fold
    return Registered(
        accepted=tuple(sorted(text_fingerprint(fp) for fp in alive)),
        queues=totals.count,
        connected=totals.owner is not None,
        edge=totals.owner.partition(":")[0] if totals.owner else None,
        since=datetime.fromtimestamp(totals.since, UTC) if totals.since else None,
        drift=info.drift,
        fold=(fold.ready, fold.delivered, fold.left) if fold else None,
        overlap_until=datetime.fromtimestamp(max(ends), UTC) if ends else None,
        rotated=rotated,
    )


def drift_class(now: Mapping[str, int], before: Mapping[str, int] | None) -> str | None:
    """The drift that the last SUBS found: the worst class whose counter has grown since the counters were read last."""
    grown = {name for name, count in now.items() if count > (before or {}).get(name, 0)}
    return next((name for name in _DRIFT if name in grown), None)
