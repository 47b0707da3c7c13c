"""Queue records: reading them, NEW, and the commands that change credentials."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from weir.crypto.keys import pack_key
from weir.store import keys
from weir.store.core import STATUS, Core, awaited, gather_into, ids_hash
from weir.store.packing import key_fields, new_record, notifier_fields, pack_status, parse_record, record_fields
from weir.store.records import (
    UNAVAILABLE,
    DeleteResult,
    EntityStatus,
    NewNotifier,
    NewQueue,
    NewResult,
    QueueRecord,
    Status,
    Unavailable,
)
from weir.store.resp import bulk, command
from weir.wire.commands import LinkData
from weir.wire.errors import BlockingInfo

Fetched = QueueRecord | None | Unavailable


class Queues(Core):
    # Reading: one round trip, a miss as a hit.

    def fetch_rcv(self, rcv_id: bytes, done: Callable[[Fetched], None]) -> None:
        p = self.partition(rcv_id)
        wire = b"*2\r\n$7\r\nHGETALL\r\n" + bulk(keys.queue(p, rcv_id))
        self.muxes[p].read(wire, _fetched, (rcv_id, p, done))

    def fetch_many_rcv(
        self, rcv_ids: list[bytes], done: Callable[[list[QueueRecord | None] | Unavailable], None]
    ) -> None:
        if not rcv_ids:
            done([])
            return
        reply = gather_into(len(rcv_ids), done)
        for place, rcv_id in enumerate(rcv_ids):
            self.fetch_rcv(rcv_id, partial(_in_place, reply, place))

    def fetch_snd(self, snd_id: bytes, done: Callable[[Fetched], None]) -> None:
        p = self.partition(snd_id)
        wire = self.script_wire("fetch", [keys.sender(p, snd_id)], [])
        self.muxes[p].script(wire, _fetched_by, (p, done))

    def fetch_ntf(self, ntf_id: bytes, done: Callable[[Fetched], None]) -> None:
        p = self.partition(ntf_id)
        wire = self.script_wire("fetch", [keys.notifier(p, ntf_id)], [])
        self.muxes[p].script(wire, _fetched_by, (p, done))

    def fetch_link(self, link_id: bytes, done: Callable[[Fetched], None]) -> None:
        """Two round trips, hit or miss: the index is in the link id's own partition."""

        def found(raw: Any, _ctx: Any) -> None:
            if raw is UNAVAILABLE:
                done(UNAVAILABLE)
                return
            self.fetch_rcv(raw or link_id, lambda rec: done(_with_link(rec, link_id)))

        p = self.partition(link_id)
        self.muxes[p].read(command(b"GET", keys.link(p, link_id)), found, None)

    async def get_rcv(self, rcv_id: bytes) -> QueueRecord | None:
        return await awaited(lambda done: self.fetch_rcv(rcv_id, done))

    async def get_snd(self, snd_id: bytes) -> QueueRecord | None:
        return await awaited(lambda done: self.fetch_snd(snd_id, done))

    # Changes

    async def new(self, new: NewQueue) -> NewResult:
        """NEW. The ids come from `new_ids`; a link id is anywhere."""
        p = self.partition(new.rcv_id)
        token = self.token(*new.owner) if new.owner else None
        if new.link is not None and not await self._claim_link(new.link.link_id, new.rcv_id):
            kept = await self.ask(p, b"GET", keys.creation(p, new.snd_id))
            if new.request and kept and kept.startswith(new.request):
                return NewResult(Status.EXISTS, answer=kept[len(new.request) :])
            return NewResult(Status.DUPLICATE)
        snd = keys.sender(p, new.snd_id)
        raw = await self.call(
            p,
            "new",
            [
                keys.queue(p, new.rcv_id),
                snd,
                keys.creation(p, new.snd_id),
                keys.link_data(p, new.rcv_id),
                keys.notifier(p, new.notifier.ntf_id) if new.notifier else snd,
            ],
            [
                new.request,
                new.answer,
                token or b"",
                new.service or b"",
                ids_hash(new.rcv_id),
                *(new.link.data if new.link else (b"", b"")),
                *record_fields(new, token),
            ],
        )
        if raw == 0:
            return NewResult(Status.OK, new_record(new, p))
        if new.link is not None:
            await self._give_link_back(new.link.link_id, new.rcv_id, new.snd_id)
        if isinstance(raw, list):
            return NewResult(Status.EXISTS, answer=raw[1])
        return NewResult(STATUS[raw])

    async def secure(self, rec: QueueRecord, key: bytes) -> Status:
        """KEY, SKEY, LKEY: CONFLICT when the queue has another key."""
        raw = await self._change(rec, "secure", [pack_key(key)])
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.snd_key = -raw, key
        return Status.OK

    async def set_rcv_keys(self, rec: QueueRecord, rcv_keys: tuple[bytes, ...]) -> Status:
        """RKEY."""
        raw = await self._change(rec, "set_rcv_keys", key_fields(rcv_keys))
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.rcv_keys = -raw, rcv_keys
        return Status.OK

    async def set_link(self, rec: QueueRecord, link_id: bytes, data: LinkData) -> Status:
        """LSET: CONFLICT for another link id, other fixed data, or a link id that another queue has."""
        if not await self._claim_link(link_id, rec.rcv_id):  # always: an index that was lost is there again
            return Status.CONFLICT
        p = rec.partition
        raw = await self.call(
            p, "set_link", [keys.queue(p, rec.rcv_id), keys.link_data(p, rec.rcv_id)], [rec.rev, link_id, *data]
        )
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.link_id = -raw, link_id
        return Status.OK

    async def delete_link(self, rec: QueueRecord) -> Status:
        """LDEL; OK when there is none."""
        p = rec.partition
        raw = await self.call(p, "delete_link", [keys.queue(p, rec.rcv_id), keys.link_data(p, rec.rcv_id)], [rec.rev])
        if raw > 0:
            return STATUS[raw]
        link_id, rec.rev, rec.link_id = rec.link_id, -raw, None
        if link_id is not None:
            await self._free_link(link_id, rec.rcv_id)
        return Status.OK

    async def get_link_data(self, rec: QueueRecord) -> LinkData | None:
        p = rec.partition
        fixed, user = await self.look(p, b"HMGET", keys.link_data(p, rec.rcv_id), b"f", b"u")
        return None if fixed is None else LinkData(fixed, user)

    async def set_notifier(self, rec: QueueRecord, ntf: NewNotifier, conn: int) -> DeleteResult:
        """NKEY: a previous notifier id goes with its notifications. DUPLICATE when the new id is taken."""
        p = rec.partition
        raw = await self.call(
            p,
            "set_notifier",
            [keys.queue(p, rec.rcv_id), keys.notifier(p, ntf.ntf_id)],
            [rec.rev, self.own(conn), ids_hash(rec.ntf_id or b""), *notifier_fields(ntf)],
        )
        if isinstance(raw, int):
            return DeleteResult(STATUS[raw])
        rec.rev = raw[1]
        rec.ntf_id, rec.ntf_key, rec.ntf_dh_secret = ntf
        rec.ntf_service = None
        self.ntf_delta -= raw[0]
        return DeleteResult(Status.OK, notifications=raw[0])

    async def delete_notifier(self, rec: QueueRecord, conn: int) -> DeleteResult:
        """NDEL; OK when there is none."""
        p = rec.partition
        raw = await self.call(
            p, "delete_notifier", [keys.queue(p, rec.rcv_id)], [rec.rev, self.own(conn), ids_hash(rec.ntf_id or b"")]
        )
        if isinstance(raw, int):
            return DeleteResult(STATUS[raw])
        rec.rev = raw[1]
        rec.ntf_id = rec.ntf_key = rec.ntf_dh_secret = rec.ntf_service = None
        self.ntf_delta -= raw[0]
        return DeleteResult(Status.OK, notifications=raw[0])

    async def suspend(self, rec: QueueRecord) -> Status:
        """OFF."""
        return await self._set_status(rec, EntityStatus.OFF)

    async def delete(self, rec: QueueRecord, conn: int | None) -> DeleteResult:
        """DEL; conn None for the operator: then every owner hears of it."""
        p = rec.partition
        raw = await self.call(
            p,
            "delete",
            [keys.queue(p, rec.rcv_id), keys.messages(p, rec.rcv_id)],
            [
                rec.rev,
                b"" if conn is None else self.own(conn),
                ids_hash(rec.rcv_id),
                ids_hash(rec.ntf_id or b""),
                b"",
            ],
        )
        if isinstance(raw, int):
            return DeleteResult(STATUS[raw])
        if raw[2]:
            await self._free_link(raw[2], rec.rcv_id)
        self.stored_delta -= raw[0]
        self.ntf_delta -= raw[1]
        return DeleteResult(Status.OK, raw[0], raw[1])

    # By the operator, by sender id: (status before, record) or None

    async def block(self, snd_id: bytes, info: BlockingInfo) -> QueueRecord | None:
        """The record as it was; its owner hears BLOCKED."""
        return await self._set_status_of(snd_id, info)

    async def unblock(self, snd_id: bytes) -> QueueRecord | None:
        """The record as it was; only a blocked queue changes."""
        return await self._set_status_of(snd_id, EntityStatus.ACTIVE)

    async def _set_status_of(self, snd_id: bytes, status: EntityStatus | BlockingInfo) -> QueueRecord | None:
        while (rec := await self.get_snd(snd_id)) is not None:
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
        return self.call(rec.partition, name, [keys.queue(rec.partition, rec.rcv_id)], [rec.rev, *args])

    async def _claim_link(self, link_id: bytes, rcv_id: bytes) -> bool:
        """Points a link id at a queue, unless it leads to another queue that still has it."""
        p = self.partition(link_id)
        key = keys.link(p, link_id)
        await self.ask(p, b"SET", key, rcv_id, b"NX")
        holder = await self.ask(p, b"GET", key)
        if holder is None or holder == rcv_id:
            return bool(holder == rcv_id)
        other = await self.get_rcv(holder)
        if other is not None and other.link_id == link_id:
            return False
        await self.call(p, "move_link", [key], [holder, rcv_id])
        return bool(await self.ask(p, b"GET", key) == rcv_id)

    async def _give_link_back(self, link_id: bytes, rcv_id: bytes, snd_id: bytes) -> None:
        """A queue that was not made lets go of its link: to the attempt that was faster, if it is that one's."""
        made = await self.get_snd(snd_id)
        if made is None or made.link_id != link_id:
            await self._free_link(link_id, rcv_id)
        else:
            await self._claim_link(link_id, made.rcv_id)

    async def _free_link(self, link_id: bytes, rcv_id: bytes) -> None:
        p = self.partition(link_id)
        await self.call(p, "move_link", [keys.link(p, link_id)], [rcv_id, b""])


def _in_place(reply: Callable[[Any, int], None], place: int, record: Fetched) -> None:
    reply(record, place)


def _with_link(rec: Fetched, link_id: bytes) -> Fetched:
    """An index entry may outlive its link."""
    return None if isinstance(rec, QueueRecord) and rec.link_id != link_id else rec


def _fetched(raw: Any, ctx: tuple[bytes, int, Callable[[Fetched], None]]) -> None:
    rcv_id, p, done = ctx
    if raw is UNAVAILABLE:
        done(UNAVAILABLE)
    else:
        done(parse_record(rcv_id, p, raw) if raw else None)


def _fetched_by(raw: Any, ctx: tuple[int, Callable[[Fetched], None]]) -> None:
    p, done = ctx
    if raw is UNAVAILABLE:
        done(UNAVAILABLE)
    else:
        done(parse_record(raw[0], p, raw[1:]) if raw else None)
