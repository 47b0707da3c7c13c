"""SUB, asserting subscriptions after Redis was unavailable, and releasing them when a connection closes."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from weir.redis.connection import ReplyError
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.forms import Constant, Fixed, Key, Number, Variable, wire_form, wire_forms
from weir.redis.resp import RETRY_FLAG
from weir.router.store import keys
from weir.router.store.core import ASSOC, CHANGED_ASSOC, STATUS, Core
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
from weir.runtime.state.calls import gather_into
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
        self._keys = core.keys
        self._muxes = core.muxes
        self._emit = emit
        self._scripts = core.topology.scripts
        tags = core.topology.partitions.tags
        # The parts of a SUB: a key for each queue, what the queues share, and the credentials of each queue.
        self._sub_key = wire_forms(tags, b"", [Key("q", "rcv_id", keys.ID_LENGTH)])
        self._sub_shared = wire_form(
            [Variable("token"), Number("day", keys.DAY_DIGITS), Number("expire_before", 10), Variable("service")]
        )
        self._sub_same_service = wire_form([Variable("rev"), Constant(b"")])
        self._sub_other_service = wire_form([Variable("rev"), Fixed("hash", ids_hash.SIZE)])

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
        self.sub_many([rec], conn, gen, service, day, expire_before, lambda _, result: done(result))

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
        shared = self._sub_shared(self._core.token(conn, gen), day, expire_before, service or b"")
        for p, places in by_partition.items():
            for at in range(0, len(places), _SUB_BATCH):
                self._sub_some(p, recs, places[at : at + _SUB_BATCH], service, shared, on_result)

    def _sub_some(
        self,
        p: int,
        recs: Sequence[QueueRecord],
        places: list[int],
        service: bytes | None,
        shared: bytes,
        on_result: Callable[[int, SubResult | Unavailable], None],
    ) -> None:
        key = self._sub_key[p]
        queues: list[bytes] = []
        credentials: list[bytes] = []
        called: list[_Called] = []
        for place in places:
            rec = recs[place]
            rcv_id, rev = rec.rcv_id, rec.rev
            queues.append(key(rcv_id))
            if rec.rcv_service == service:
                credentials.append(self._sub_same_service(b"%d" % rev))
            else:
                credentials.append(self._sub_other_service(b"%d" % rev, ids_hash.of_id(rcv_id)))
            called.append((place, rec, rev))
        head = self._scripts.head("sub", len(places), 2 * len(places) + 5)
        wire = b"".join((head, *queues, shared, *credentials, RETRY_FLAG))
        self._muxes[p].script(wire, self._subscribed, (called, service, on_result), late=True)

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
        return self._core.call(p, "reassert", [self._keys.queue(p, sub.rcv_id) for sub in subs], known)

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
                by_partition.setdefault(p, []).append(self._keys.queue(p, rcv_id))
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
        self, raw: Any, ctx: tuple[list[_Called], bytes | None, Callable[[int, SubResult | Unavailable], None]]
    ) -> None:
        called, service, on_result = ctx
        if raw is UNAVAILABLE:
            for place, _, _ in called:
                on_result(place, UNAVAILABLE)
            return
        for (place, rec, rev), answer in zip(called, raw, strict=True):
            on_result(place, self._result(answer, rec, rev, service))

    def _result(self, answer: Any, rec: QueueRecord, rev: int, service: bytes | None) -> SubResult | Unavailable:
        if answer.__class__ is int:
            result = _WITHOUT_MESSAGE[answer]
        elif answer.__class__ is ReplyError:  # a key of this queue is damaged
            self._core.topology.failures.count(answer.code)
            return UNAVAILABLE
        else:
            code, entry, expired = answer
            result = SubResult(Status.OK, Entry.parse(entry) if entry else None, ASSOC[code - SUBSCRIBED], expired)
        if result.assoc in CHANGED_ASSOC and rec.rev == rev:
            rec.rev, rec.rcv_service = rev + 1, service
        return result
