"""Queues: NEW, DEL, the commands that change credentials, and what the operator does to a queue."""

import asyncio
from typing import Any

from weir.crypto.keys import pack_key
from weir.router.store.core import STATUS, Core
from weir.router.store.links import Links
from weir.router.store.lookups import Lookups
from weir.router.store.packing import key_fields, new_record, pack_status, record_fields
from weir.router.store.records import DeleteResult, EntityStatus, NewQueue, NewResult, QueueRecord, Status
from weir.wire.errors import BlockingInfo
from weir.wire.smp import ids_hash


class Queues:
    def __init__(self, core: Core, lookups: Lookups, links: Links) -> None:
        self._core = core
        self._keys = core.keys
        self._unsaved = core.unsaved
        self._lookups = lookups
        self._links = links

    async def new(self, new: NewQueue) -> NewResult:
        """NEW. The ids come from `Placement.new_ids`; a link id may be in any partition."""
        p = self._core.partition(new.rcv_id)
        token = self._core.token(*new.owner) if new.owner else None
        if new.link is not None and not await self._links.claim(new.link.link_id, new.rcv_id):
            kept = await self._core.ask(p, b"GET", self._keys.creation(p, new.snd_id))
            if new.request and kept and kept.startswith(new.request):
                return NewResult(Status.EXISTS, answer=kept[len(new.request) :])
            return NewResult(Status.DUPLICATE)
        snd = self._keys.sender(p, new.snd_id)
        raw = await self._core.call(
            p,
            "new",
            [
                self._keys.queue(p, new.rcv_id),
                snd,
                self._keys.creation(p, new.snd_id),
                self._keys.link_data(p, new.rcv_id),
                self._keys.notifier(p, new.notifier.ntf_id) if new.notifier else snd,
            ],
            [
                new.request,
                new.answer,
                token or b"",
                new.service or b"",
                ids_hash.of_id(new.rcv_id),
                *(new.link.data if new.link else (b"", b"")),
                *record_fields(new, token),
            ],
        )
        if raw == 0:
            return NewResult(Status.OK, new_record(new, p))
        if new.link is not None:
            await self._links.give_back(new.link.link_id, new.rcv_id, new.snd_id)
        if isinstance(raw, list):
            return NewResult(Status.EXISTS, answer=raw[1])
        return NewResult(STATUS[raw])

    async def secure(self, rec: QueueRecord, key: bytes) -> Status:
        """KEY, SKEY, LKEY. CONFLICT if the queue has another sender key."""
        raw = await self._change(rec, "secure", [pack_key(key)])
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.snd_key = -raw, key
        return Status.OK

    async def set_rcv_keys(self, rec: QueueRecord, rcv_keys: tuple[bytes, ...]) -> Status:
        """RKEY: replace the recipient keys."""
        raw = await self._change(rec, "set_rcv_keys", key_fields(rcv_keys))
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.rcv_keys = -raw, rcv_keys
        return Status.OK

    async def suspend(self, rec: QueueRecord) -> Status:
        """OFF: suspend the queue."""
        return await self._set_status(rec, EntityStatus.OFF)

    async def delete(self, rec: QueueRecord, conn: int | None) -> DeleteResult:
        """DEL. With `conn` None (the operator), no owner is spared the DELD event."""
        p = rec.partition
        raw = await self._core.call(
            p,
            "delete",
            [self._keys.queue(p, rec.rcv_id), self._keys.messages(p, rec.rcv_id)],
            [
                rec.rev,
                b"" if conn is None else self._core.own(conn),
                ids_hash.of_id(rec.rcv_id),
                ids_hash.of_id(rec.ntf_id or b""),
                b"",
            ],
        )
        if isinstance(raw, int):
            return DeleteResult(STATUS[raw])
        if raw[2]:
            await self._links.free(raw[2], rec.rcv_id)
        self._unsaved.messages -= raw[0]
        self._unsaved.notifications -= raw[1]
        return DeleteResult(Status.OK, raw[0], raw[1])

    async def update_day(self, rec: QueueRecord, day: int) -> Status:
        """Set the day of last use where no other script does: after a SEND to a blocked queue."""
        raw = await self._core.call(rec.partition, "touch", [self._keys.queue(rec.partition, rec.rcv_id)], [day])
        return STATUS[raw]

    # For the operator of the router, by sender id

    async def block(self, snd_id: bytes, info: BlockingInfo) -> QueueRecord | None:
        """Block a queue; its owner hears BLOCKED. Returns the record with its status before."""
        return await self._set_status_of(snd_id, info)

    async def unblock(self, snd_id: bytes) -> QueueRecord | None:
        """Unblock a queue that is blocked. Returns the record with its status before."""
        return await self._set_status_of(snd_id, EntityStatus.ACTIVE)

    async def _set_status_of(self, snd_id: bytes, status: EntityStatus | BlockingInfo) -> QueueRecord | None:
        while (rec := await self._lookups.get_snd(snd_id)) is not None:
            before = rec.status
            unblocks_other = status is EntityStatus.ACTIVE and not isinstance(before, BlockingInfo)
            if before == status or unblocks_other:
                return rec
            if await self._set_status(rec, status) is Status.OK:
                rec.status = before
                return rec
        return None

    async def _set_status(self, rec: QueueRecord, status: EntityStatus | BlockingInfo) -> Status:
        raw = await self._change(rec, "set_status", [pack_status(status)])
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.status = -raw, status
        return Status.OK

    def _change(self, rec: QueueRecord, name: str, args: list[bytes]) -> "asyncio.Future[Any]":
        return self._core.call(rec.partition, name, [self._keys.queue(rec.partition, rec.rcv_id)], [rec.rev, *args])
