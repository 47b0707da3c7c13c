"""The services' registry: certificates, roles, rotation; what the operator sees of a service."""

import asyncio
import time
from typing import Any

from weir.store import keys
from weir.store.core import Core
from weir.store.records import FoldProgress, ServiceError, ServiceInfo, StoreError
from weir.store.resp import command
from weir.store.services import Services
from weir.store.topology import REGISTRY
from weir.wire.commands import ServiceRole

_FORGET_PAGE = 100
_FOLD_TTL_MS = 86_400_000


class Registry(Services, Core):
    async def ensure_service(self, fp: bytes, role: ServiceRole, new_id: bytes) -> bytes | ServiceError:
        """The ServiceId of an identity certificate, made when it is new."""
        raw = await self.call(
            REGISTRY,
            "ensure_service",
            [keys.fingerprint(fp), keys.service_record(new_id), keys.SERVICES],
            [fp, role.value, new_id, int(time.time())],
        )
        if isinstance(raw, bytes):
            return raw
        return ServiceError.ROLE_MISMATCH if raw == 1 else ServiceError.REFUSED

    async def rotate(self, from_fp: bytes, to_fp: bytes, overlap: int = 0) -> bytes:
        """Lets a new certificate continue the service of an old one, which is refused after `overlap` seconds.
        Raises StoreError."""
        if from_fp == to_fp:
            raise StoreError("the old and the new certificate are the same")
        empty = b""
        other = await self.ask_registry(b"HGET", keys.fingerprint(to_fp), b"s")
        if other is not None and (await self.service_totals(other)).count == 0:
            empty = other
        raw = await self.call(
            REGISTRY,
            "rotate",
            [keys.fingerprint(from_fp), keys.fingerprint(to_fp)],
            [from_fp, to_fp, int(time.time()) + overlap, empty],
        )
        if raw == 1:
            raise StoreError("no service has the old certificate")
        if raw == 2:
            raise StoreError("the new certificate has a service with queues of its own")
        return bytes(raw)

    async def find_service(self, fp: bytes) -> bytes | None:
        """The ServiceId of a certificate, in use or not."""
        found: bytes | None = await self.ask_registry(b"HGET", keys.fingerprint(fp), b"s")
        return found

    async def forget(self, service_id: bytes) -> int | None:
        """Ends a service: its owner hears ENDS, its queues belong to nobody, its certificates may start anew.
        Answers how many queues it had."""
        info = await self.get_service(service_id)
        if info is None:
            return None
        home = self.partition(service_id)
        forgotten = 0
        for p in (home, *(p for p in range(keys.PARTITIONS) if p != home)):
            while True:
                page: int = await self.call(
                    p,
                    "forget_page",
                    [keys.service(p, service_id)],
                    [service_id, info.role.value, _FORGET_PAGE, p == home],
                )
                forgotten += page
                if page == 0:
                    break
        record = keys.service_record(service_id)
        await self.call(REGISTRY, "forget_service", [record, record + b":fold", keys.SERVICES], [service_id])
        return forgotten

    async def list_services(self) -> list[ServiceInfo]:
        ids: list[bytes] = await self.look_registry(b"SMEMBERS", keys.SERVICES)
        found = [await self.get_service(service_id) for service_id in sorted(ids)]
        return [info for info in found if info is not None]

    async def get_service(self, service_id: bytes) -> ServiceInfo | None:
        record = keys.service_record(service_id)
        flat, fold, totals = await asyncio.gather(
            self.look_registry(b"HGETALL", record),
            self.look_registry(b"HGETALL", record + b":fold"),
            self.service_totals(service_id),
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
        )

    def set_fold(self, service_id: bytes, progress: FoldProgress) -> None:
        """Where a fold is, for the operator; nobody waits for it."""
        key = keys.service_record(service_id) + b":fold"
        values: list[bytes | int] = []
        for name, value in zip(progress._fields, progress, strict=True):
            values += [name.encode(), str(int(value) if isinstance(value, bool) else value).encode()]
        mux = self.muxes[REGISTRY]
        mux.submit(command(b"HSET", key, *values), _nothing, None)
        mux.submit(command(b"PEXPIRE", key, _FOLD_TTL_MS), _nothing, None)

    def note_drift(self, service_id: bytes, kind: str) -> None:
        """What a SUBS expected against what there was: ok, more, fewer or diff; nobody waits for it."""
        wire = command(b"HINCRBY", keys.service_record(service_id), b"d" + kind.encode(), 1)
        self.muxes[REGISTRY].submit(wire, _nothing, None)


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
