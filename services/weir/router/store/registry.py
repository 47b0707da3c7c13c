"""The services' registry: certificates, roles, rotation; information about services for the operator of the router.

Anybody can make a service: a certificate that connects for the first time gets one. Such a service expires when it has
no queues and no session, a day or two after the last handshake. A handshake notes its day, and so does a session that
takes its service over long after its handshake (delivery/ownership.py). Services that the operator of the router has
registered never expire.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from weir.redis.errors import StoreError
from weir.redis.partitions import REGISTRY
from weir.redis.resp import command
from weir.router.store import keys
from weir.router.store.core import Core
from weir.router.store.records import FoldProgress, ServiceError, ServiceInfo
from weir.router.store.services import Services
from weir.wire.smp.commands import ServiceRole

OTHER_ROLE, REPLACED = 1, 2  # answers of ensure_service.lua
UNKNOWN, TAKEN = 1, 2  # answers of rotate.lua
_FORGET_PAGE = 100
_FOLD_TTL_MS = 86_400_000
_UNUSED_DAYS = 1  # at least a day, because a day may begin a moment after the handshake


class Registry:
    def __init__(self, core: Core, services: Services) -> None:
        self._core = core
        self._keys = core.keys
        self._services = services

    async def ensure_service(
        self, fp: bytes, role: ServiceRole, new_id: bytes, *, day: int | None = None
    ) -> bytes | ServiceError:
        """The service id of an identity certificate. A new certificate gets a new service.

        The new service expires when it is not used. With `day` None, it never does.
        """
        raw = await self._core.call(
            REGISTRY,
            "ensure_service",
            [self._keys.fingerprint(fp), self._keys.service_record(new_id), self._keys.services],
            [fp, role.value, new_id, int(time.time()), b"" if day is None else day],
        )
        if isinstance(raw, bytes):
            return raw
        return {OTHER_ROLE: ServiceError.ROLE_MISMATCH, REPLACED: ServiceError.REFUSED}[raw]

    async def rotate(self, from_fp: bytes, to_fp: bytes, overlap: int = 0) -> bytes:
        """Let a new certificate continue the service of an old one. The old one is refused after `overlap` seconds.

        Raises StoreError.
        """
        if from_fp == to_fp:
            raise StoreError("the old and the new certificate are the same")
        empty = b""
        other = await self._core.ask_registry(b"HGET", self._keys.fingerprint(to_fp), b"s")
        if other is not None and (await self._services.service_totals(other)).count == 0:
            empty = other
        raw = await self._core.call(
            REGISTRY,
            "rotate",
            [self._keys.fingerprint(from_fp), self._keys.fingerprint(to_fp)],
            [from_fp, to_fp, int(time.time()) + overlap, empty],
        )
        if raw == UNKNOWN:
            raise StoreError("no service has the old certificate")
        if raw == TAKEN:
            raise StoreError("the new certificate has a service with queues of its own")
        return bytes(raw)

    async def find_service(self, fp: bytes) -> bytes | None:
        """The service id of a certificate, current or replaced."""
        found: bytes | None = await self._core.ask_registry(b"HGET", self._keys.fingerprint(fp), b"s")
        return found

    async def set_label(self, service_id: bytes, label: str) -> None:
        """Label a service, or remove its label with "". Raises StoreError when there is no such service."""
        record = self._keys.service_record(service_id)
        if not await self._core.call(REGISTRY, "label_service", [record], [label.encode()]):
            raise StoreError("there is no such service any more")

    async def labels(self, services: Iterable[bytes]) -> dict[bytes, str]:
        """The labels of those services that have one."""
        ids = list(services)
        found = await asyncio.gather(
            *(self._core.read_registry(b"HGET", self._keys.service_record(each), b"label") for each in ids)
        )
        return {each: label.decode() for each, label in zip(ids, found, strict=True) if label is not None}

    async def forget(self, service_id: bytes) -> int | None:
        """Delete a service. Its owner gets ENDS, its queues become free, its certificates may start a new service.

        Returns the number of queues it had.
        """
        info = await self.get_service(service_id)
        if info is None:
            return None
        home = self._core.partition(service_id)
        forgotten = 0
        for p in (home, *(p for p in range(keys.PARTITIONS) if p != home)):
            while True:
                page: int = await self._core.call(
                    p,
                    "forget_page",
                    [self._keys.service(p, service_id)],
                    [service_id, info.role.value, _FORGET_PAGE, int(p == home)],
                )
                forgotten += page
                if page == 0:
                    break
        record = self._keys.service_record(service_id)
        await self._core.call(
            REGISTRY, "forget_service", [record, record + b":fold", self._keys.services], [service_id, b""]
        )
        return forgotten

    async def expire(self, service_id: bytes, today: int) -> bool:
        """Forget a service that is not used. Return False if the service has queues or a session."""
        record, used = self._keys.service_record(service_id), today - _UNUSED_DAYS
        seen = await self._core.read_registry(b"HGET", record, b"seen")
        if seen is None or int(seen) >= used:
            return True
        totals = await self._services.service_totals(service_id)
        if totals.count or await self._is_connected(service_id, totals.owner):
            return False
        # Since then, somebody may have connected: the script compares the day.
        forgotten: int = await self._core.call(
            REGISTRY, "forget_service", [record, record + b":fold", self._keys.services], [service_id, used]
        )
        if forgotten:
            shares = (
                self._core.call(p, "expire_share", [self._keys.service(p, service_id)], [])
                for p in range(keys.PARTITIONS)
            )
            await asyncio.gather(*shares)
        return True

    async def _is_connected(self, service_id: bytes, owner: str | None) -> bool:
        if owner is None:
            return False
        p = self._core.partition(service_id)
        return bool(await self._core.read(p, b"EXISTS", self._keys.lease(p, owner.partition(":")[0].encode())))

    async def list_services(self) -> list[ServiceInfo]:
        ids: list[bytes] = await self._core.read_registry(b"SMEMBERS", self._keys.services)
        found = [await self.get_service(service_id) for service_id in sorted(ids)]
        return [info for info in found if info is not None]

    async def get_service(self, service_id: bytes) -> ServiceInfo | None:
        record = self._keys.service_record(service_id)
        flat, fold, totals = await asyncio.gather(
            self._core.read_registry(b"HGETALL", record),
            self._core.read_registry(b"HGETALL", record + b":fold"),
            self._services.service_totals(service_id),
        )
        if not flat:
            return None
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        return ServiceInfo(
            service_id,
            ServiceRole(fields[b"role"]),
            int(fields[b"created"]),
            {name[1:]: int(until) if until else None for name, until in fields.items() if name[:1] == b"f"},
            totals,
            _fold(fold),
            {name[1:].decode(): int(n) for name, n in fields.items() if name[:1] == b"d"},
            fields.get(b"label", b"").decode(),
        )

    def set_fold(self, service_id: bytes, progress: FoldProgress) -> None:
        """Publish the progress of a fold for the operator, without waiting for the answer."""
        key = self._keys.service_record(service_id) + b":fold"
        values: list[bytes | int] = []
        for name, value in zip(progress._fields, progress, strict=True):
            values += [name.encode(), str(int(value) if isinstance(value, bool) else value).encode()]
        mux = self._core.muxes[REGISTRY]
        mux.submit(command(b"HSET", key, *values), _nothing, None)
        mux.submit(command(b"PEXPIRE", key, _FOLD_TTL_MS), _nothing, None)

    def note_drift(self, service_id: bytes, kind: str) -> None:
        """Count a SUBS by the difference to what its client expected, without waiting for the answer."""
        wire = command(b"HINCRBY", self._keys.service_record(service_id), b"d" + kind.encode(), 1)
        self._core.muxes[REGISTRY].submit(wire, _nothing, None)


def _nothing(_raw: Any, _ctx: Any) -> None:
    pass


def _fold(flat: list[bytes]) -> FoldProgress | None:
    if not flat:
        return None
    f = dict(zip(flat[::2], flat[1::2], strict=True))
    return FoldProgress(
        int(f[b"ready"]),
        int(f[b"delivered"]),
        int(f[b"left"]),
        f[b"edge"].decode(),
        float(f[b"since"]),
        f[b"done"] == b"1",
    )
