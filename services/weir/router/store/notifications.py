"""Notifiers: NKEY, NDEL, NSUB, and the notifications that wait for their notifier."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.store.core import ASSOC, CHANGED_ASSOC, STATUS, Core
from weir.router.store.packing import notifier_fields
from weir.router.store.records import (
    DeldEvent,
    DeleteResult,
    EndEvent,
    Event,
    HeldNtf,
    NewNotifier,
    NsubResult,
    NtfEvent,
    NtfItem,
    QueueRecord,
    Regained,
    Status,
    TakenNtfs,
)
from weir.wire.smp import ids_hash

_BATCH = 100  # notifications of one answer, or notifiers of one call
_MISSED: dict[int, type[EndEvent | DeldEvent | NtfEvent]] = {
    Regained.DISPLACED: EndEvent,
    Regained.MISSING: DeldEvent,
    Regained.NTFS_WAIT: NtfEvent,
}


class Notifications:
    def __init__(self, core: Core, emit: Callable[[Event], None]) -> None:
        self._core = core
        self._keys = core.keys
        self._muxes = core.muxes
        self._unsaved = core.unsaved
        self._emit = emit

    async def set_notifier(self, rec: QueueRecord, ntf: NewNotifier, conn: int) -> DeleteResult:
        """NKEY. A previous notifier id is removed with its notifications. DUPLICATE if the new notifier id is taken."""
        p = rec.partition
        raw = await self._core.call(
            p,
            "set_notifier",
            [self._keys.queue(p, rec.rcv_id), self._keys.notifier(p, ntf.ntf_id)],
            [rec.rev, self._core.own(conn), ids_hash.of_id(rec.ntf_id or b""), *notifier_fields(ntf)],
        )
        if isinstance(raw, int):
            return DeleteResult(STATUS[raw])
        rec.rev = raw[1]
        rec.ntf_id, rec.ntf_key, rec.ntf_dh_secret = ntf
        rec.ntf_service = None
        self._unsaved.notifications -= raw[0]
        return DeleteResult(Status.OK, notifications=raw[0])

    async def delete_notifier(self, rec: QueueRecord, conn: int) -> DeleteResult:
        """NDEL. OK also when the queue has no notifier."""
        p = rec.partition
        raw = await self._core.call(
            p,
            "delete_notifier",
            [self._keys.queue(p, rec.rcv_id)],
            [rec.rev, self._core.own(conn), ids_hash.of_id(rec.ntf_id or b"")],
        )
        if isinstance(raw, int):
            return DeleteResult(STATUS[raw])
        rec.rev = raw[1]
        rec.ntf_id = rec.ntf_key = rec.ntf_dh_secret = rec.ntf_service = None
        self._unsaved.notifications -= raw[0]
        return DeleteResult(Status.OK, notifications=raw[0])

    def nsub(
        self,
        rec: QueueRecord,
        conn: int,
        gen: int,
        service: bytes | None,
        done: Callable[[NsubResult | Unavailable], None],
    ) -> None:
        """NSUB of `rec.ntf_id`. When the result is `pending`, notifications wait: call `take_ntfs`."""
        assert rec.ntf_id is not None
        p = rec.partition
        wire = self._core.script_wire(
            "nsub",
            [self._keys.queue(p, rec.rcv_id), self._keys.notifications(p, rec.ntf_id)],
            [
                rec.rev,
                self._core.token(conn, gen),
                self._core.own(conn),
                rec.ntf_id,
                service or b"",
                ids_hash.of_id(rec.ntf_id),
            ],
        )
        self._muxes[p].script(wire, _nsubscribed, (rec, rec.rev, service, done), late=True)

    def take_ntfs(
        self,
        ntf_id: bytes,
        conn: int,
        gen: int,
        holder: bytes,
        service: bool,
        last: bytes | None,
        expire_before: int,
        done: Callable[[TakenNtfs | Unavailable], None],
    ) -> None:
        """The waiting notifications of a notifier, in order.

        `holder` is the queue's recipient id or, with `service`, the service id. `last` is the nonce of the notification
        that was sent last: this one and all before it are removed.
        """
        p = self._core.partition(ntf_id)
        wire = self._core.script_wire(
            "take_ntfs",
            [self._keys.notifications(p, ntf_id)],
            [
                self._core.token(conn, gen),
                self._keys.service(p, holder) if service else self._keys.queue(p, holder),
                b"o" if service else b"no",
                ntf_id,
                last or b"",
                expire_before,
                _BATCH,
                holder if service else b"",
            ],
        )
        self._muxes[p].script(wire, self._taken, done)

    def _taken(self, raw: Any, done: Callable[[TakenNtfs | Unavailable], None]) -> None:
        if raw is UNAVAILABLE:
            done(UNAVAILABLE)
            return
        sent, expired, *items = raw
        self._unsaved.notifications -= sent + expired
        done(TakenNtfs([NtfItem.parse(item) for item in items], expired))

    async def reassert_ntfs(self, subs: Iterable[HeldNtf]) -> None:
        """After Redis was unavailable: assert subscriptions to notifiers. Emits missed events: NMSG, END, DELD."""
        async for sub, answer in self._core.call_in_batches(subs, _BATCH, self._reassert):
            if answer != Regained.UNCHANGED:
                self._emit(_MISSED[answer](sub.ntf_id, sub.conn, sub.gen))

    def _reassert(self, p: int, subs: list[HeldNtf]) -> "asyncio.Future[Any]":
        known: list[bytes | int] = []
        for sub in subs:
            known += [self._core.token(sub.conn, sub.gen), sub.ntf_id]
        return self._core.call(p, "reassert_ntfs", [self._keys.queue(p, sub.rcv_id) for sub in subs], known)


def _nsubscribed(
    raw: Any, ctx: tuple[QueueRecord, int, bytes | None, Callable[[NsubResult | Unavailable], None]]
) -> None:
    rec, rev, service, done = ctx
    if raw is UNAVAILABLE:
        done(UNAVAILABLE)
        return
    if raw.__class__ is int:
        done(NsubResult(STATUS[raw]))
        return
    assoc = ASSOC[raw[0]]
    if assoc in CHANGED_ASSOC and rec.rev == rev:
        rec.rev, rec.ntf_service = rev + 1, service
    done(NsubResult(STATUS[0], bool(raw[1]), assoc))
