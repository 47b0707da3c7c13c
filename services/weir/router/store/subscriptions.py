"""SUB, asserting subscriptions after Redis was unavailable, and releasing them when a connection closes."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.forms import Field, Key, Number, Variable, key_start, wire_forms
from weir.redis.resp import RETRY_FLAG, bulk
from weir.router.store import keys
from weir.router.store.core import ASSOC, CHANGED_ASSOC, STATUS, Core, gather_into
from weir.router.store.records import (
    Assoc,
    DeldEvent,
    EndEvent,
    Entry,
    Event,
    Held,
    MsgEvent,
    QueueRecord,
    Regained,
    Status,
    SubResult,
)
from weir.wire.smp import ids_hash

SUBSCRIBED = 16  # an answer of SUB is this + the association, or a status (lua/include/association.lua)
_WITHOUT_MESSAGE = {code: SubResult(status) for code, status in STATUS.items()} | {
    SUBSCRIBED + a.value: SubResult(Status.OK, None, a) for a in Assoc
}
_SUB_BATCH = 50  # queues of one script call, which blocks Redis while it runs
_RELEASE_BATCH = 100  # queues of one release or reassert call

_Called = tuple[int, QueueRecord, int]  # place, record, the revision that the script compares


class Subscriptions:
    def __init__(self, core: Core, emit: Callable[[Event], None]) -> None:
        self._core = core
        self._muxes = core.muxes
        self._edge = core.edge
        self._emit = emit
        self._scripts = core.topology.scripts
        arguments: list[Field] = [
            Key("q", "rcv_id", keys.ID_LENGTH),
            Variable("token"),
            Number("day", keys.DAY_DIGITS),
            Number("expire_before", 10),
            Variable("service"),
            Variable("rev"),
            Variable("hash"),
        ]
        self._sub = wire_forms(self._scripts.head("sub", 1, 7), arguments, RETRY_FLAG)
        self._key_starts = [key_start(p, "q", keys.ID_LENGTH) for p in range(keys.PARTITIONS)]

    def sub(
        self,
        rec: QueueRecord,
        conn: int,
        gen: int,
        service: bytes | None,
        day: int,
        expire_before: int,
        done: Callable[[SubResult | Unavailable], None],
    ) -> None:
        """SUB. With `service` (gen is then its epoch) it associates the queue; without, it ends an association."""
        p, rev = rec.partition, rec.rev
        wire = self._sub[p](
            rec.rcv_id,
            b"%b:%d:%d" % (self._edge, conn, gen),
            day,
            expire_before,
            service or b"",
            b"%d" % rev,
            b"" if rec.rcv_service == service else ids_hash.of_id(rec.rcv_id),
        )
        self._muxes[p].script(wire, _subscribed, (rec, rev, service, done), late=True)

    def sub_many(
        self,
        recs: Sequence[QueueRecord],
        conn: int,
        gen: int,
        service: bytes | None,
        day: int,
        expire_before: int,
        on_result: Callable[[int, SubResult | Unavailable], None],
    ) -> None:
        """SUB of different queues, with one script call for those of one partition.

        `on_result` gets each queue's place in `recs` with its result. After UNAVAILABLE, a queue may get a late result.
        """
        by_partition: dict[int, list[int]] = {}
        for place, rec in enumerate(recs):
            places = by_partition.get(rec.partition)
            if places is None:
                by_partition[rec.partition] = [place]
            else:
                places.append(place)
        owner = bulk(b"%b:%d:%d" % (self._edge, conn, gen))
        common = owner + bulk(b"%05d" % day) + bulk(b"%010d" % expire_before) + bulk(service or b"")
        for p, places in by_partition.items():
            for at in range(0, len(places), _SUB_BATCH):
                self._sub_some(p, recs, places[at : at + _SUB_BATCH], service, common, on_result)

    def _sub_some(
        self,
        p: int,
        recs: Sequence[QueueRecord],
        places: list[int],
        service: bytes | None,
        common: bytes,
        on_result: Callable[[int, SubResult | Unavailable], None],
    ) -> None:
        start = self._key_starts[p]
        queues: list[bytes] = []
        credentials: list[bytes] = []
        called: list[_Called] = []
        for place in places:
            rec = recs[place]
            rcv_id, rev = rec.rcv_id, rec.rev
            queues.append(b"%b%b\r\n" % (start, rcv_id))
            text = b"%d" % rev
            if rec.rcv_service == service:
                credentials.append(b"$%d\r\n%b\r\n$0\r\n\r\n" % (len(text), text))
            else:
                credentials.append(b"$%d\r\n%b\r\n$16\r\n%b\r\n" % (len(text), text, ids_hash.of_id(rcv_id)))
            called.append((place, rec, rev))
        head = self._scripts.head("sub", len(places), 2 * len(places) + 5)
        wire = b"%b%b%b%b%b" % (head, b"".join(queues), common, b"".join(credentials), RETRY_FLAG)
        self._muxes[p].script(wire, _subscribed_many, (called, service, on_result), late=True)

    async def reassert(self, subs: Iterable[Held], expire_before: int) -> None:
        """After Redis was unavailable: assert the subscriptions. Missed events are emitted: MSG, END or DELD."""
        call = partial(self._reassert, expire_before)
        async for sub, answer in self._core.call_in_batches(subs, _RELEASE_BATCH, call):
            if isinstance(answer, bytes):
                self._emit(MsgEvent(sub.rcv_id, Entry.parse(answer), sub.conn, sub.gen))
            elif answer == Regained.DISPLACED:
                self._emit(EndEvent(sub.rcv_id, sub.conn, sub.gen))
            elif answer == Regained.MISSING:
                self._emit(DeldEvent(sub.rcv_id, sub.conn, sub.gen))

    def _reassert(self, expire_before: int, p: int, subs: list[Held]) -> "asyncio.Future[Any]":
        known: list[bytes | int] = [expire_before]
        for sub in subs:
            known += [self._core.token(sub.conn, sub.gen), sub.msg_id]
        return self._core.call(p, "reassert", [keys.queue(p, sub.rcv_id) for sub in subs], known)

    def release(
        self, rcv_ids: Iterable[bytes], ntf_rcv_ids: Iterable[bytes], conn: int, done: Callable[[Any], None]
    ) -> None:
        """End the ownership of a connection that has closed. A notifier is named by its queue's recipient id."""
        own = self._core.own(conn)
        calls: list[tuple[int, bytes]] = []
        for field, ids in ((b"o", rcv_ids), (b"no", ntf_rcv_ids)):
            by_partition: dict[int, list[bytes]] = {}
            for rcv_id in ids:
                p = self._core.partition(rcv_id)
                by_partition.setdefault(p, []).append(keys.queue(p, rcv_id))
            for p, queues in by_partition.items():
                for start in range(0, len(queues), _RELEASE_BATCH):
                    batch = queues[start : start + _RELEASE_BATCH]
                    calls.append((p, self._core.script_wire("release", batch, [field, own])))
        if not calls:
            done(None)
            return
        reply = gather_into(len(calls), lambda results: done(UNAVAILABLE if results is UNAVAILABLE else None))
        for place, (p, wire) in enumerate(calls):
            self._muxes[p].script(wire, reply, place)


def _subscribed(
    raw: Any, ctx: tuple[QueueRecord, int, bytes | None, Callable[[SubResult | Unavailable], None]]
) -> None:
    rec, rev, service, done = ctx
    done(UNAVAILABLE if raw is UNAVAILABLE else _result(raw[0], rec, rev, service))


def _subscribed_many(
    raw: Any, ctx: tuple[list[_Called], bytes | None, Callable[[int, SubResult | Unavailable], None]]
) -> None:
    called, service, on_result = ctx
    if raw is UNAVAILABLE:
        for place, _, _ in called:
            on_result(place, UNAVAILABLE)
        return
    for (place, rec, rev), answer in zip(called, raw, strict=True):
        on_result(place, _result(answer, rec, rev, service))


def _result(answer: Any, rec: QueueRecord, rev: int, service: bytes | None) -> SubResult:
    if answer.__class__ is int:
        result = _WITHOUT_MESSAGE[answer]
    else:
        code, entry, expired = answer
        result = SubResult(Status.OK, Entry.parse(entry) if entry else None, ASSOC[code - SUBSCRIBED], expired)
    if result.assoc in CHANGED_ASSOC and rec.rev == rev:
        rec.rev, rec.rcv_service = rev + 1, service
    return result
