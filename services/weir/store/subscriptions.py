"""SUB, NSUB, waiting notifications, and the end of a connection."""

from collections.abc import Callable, Iterable
from typing import Any

from weir.store import keys
from weir.store.core import STATUS, Core, StoreConfig, gather_into, ids_hash
from weir.store.records import (
    UNAVAILABLE,
    Assoc,
    DeldEvent,
    EndEvent,
    Entry,
    Held,
    HeldNtf,
    MsgEvent,
    NsubResult,
    NtfEvent,
    NtfItem,
    QueueRecord,
    SubResult,
    TakenNtfs,
    Unavailable,
)
from weir.store.resp import RETRY_FLAG
from weir.store.topology import Topology

_ASSOC = {a.value: a for a in Assoc}
_CHANGED = (Assoc.NEW, Assoc.UPDATED, Assoc.REMOVED)
_NO_HEAD = {16 + a.value: SubResult(STATUS[0], None, a) for a in Assoc}
_REFUSED = {code: SubResult(status) for code, status in STATUS.items()}
_RELEASE_BATCH = 100  # keys of one release call
_NTF_BATCH = 100


class Subscriptions(Core):
    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(config, topology)
        heads = [b"$%d\r\n{%d}:" % (len(b"{%d}:x:" % p) + keys.ID_LENGTH, p) for p in range(keys.PARTITIONS)]
        script = topology.scripts.head("sub", 2, 8)
        args = b"$%d\r\n%b\r\n" * 4 + b"$10\r\n%010d\r\n$%d\r\n%b\r\n$16\r\n%b\r\n" + RETRY_FLAG
        self._sub_forms = [script + h + b"q:%b\r\n" + h + b"m:%b\r\n" + args for h in heads]

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
        """SUB; with `service` (gen is its epoch) it associates the queue, without it ends an association."""
        p = rec.partition
        rcv_id = rec.rcv_id
        rev = b"%d" % rec.rev
        token = b"%b:%d:%d" % (self.edge, conn, gen)
        own = b"%b:%d:" % (self.edge, conn)
        today = b"%d" % day
        svc = service or b""
        wire = self._sub_forms[p] % (
            rcv_id,
            rcv_id,
            len(rev),
            rev,
            len(token),
            token,
            len(own),
            own,
            len(today),
            today,
            expire_before,
            len(svc),
            svc,
            ids_hash(rcv_id),
        )
        self.muxes[p].script(wire, _subscribed, (rec, rec.rev, service, done), late=True)

    def nsub(
        self,
        rec: QueueRecord,
        conn: int,
        gen: int,
        service: bytes | None,
        done: Callable[[NsubResult | Unavailable], None],
    ) -> None:
        """NSUB of `rec.ntf_id`; `pending`: notifications wait, take them."""
        assert rec.ntf_id is not None
        p = rec.partition
        wire = self.script_wire(
            "nsub",
            [keys.queue(p, rec.rcv_id), keys.notifications(p, rec.ntf_id)],
            [rec.rev, self.token(conn, gen), self.own(conn), rec.ntf_id, service or b"", ids_hash(rec.ntf_id)],
        )
        self.muxes[p].script(wire, _nsubscribed, (rec, rec.rev, service, done), late=True)

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
        """What waits for a notifier, in order. `holder` is the queue's recipient id, or the service id with `service`;
        `last` is the nonce of the last one that was sent: it and those before it are removed."""
        p = self.partition(ntf_id)
        wire = self.script_wire(
            "take_ntfs",
            [keys.notifications(p, ntf_id)],
            [
                self.token(conn, gen),
                keys.service(p, holder) if service else keys.queue(p, holder),
                b"o" if service else b"no",
                ntf_id,
                last or b"",
                expire_before,
                _NTF_BATCH,
                holder if service else b"",
            ],
        )
        self.muxes[p].script(wire, self._taken, done)

    def _taken(self, raw: Any, done: Callable[[TakenNtfs | Unavailable], None]) -> None:
        if raw is UNAVAILABLE:
            done(UNAVAILABLE)
            return
        sent, expired, *items = raw
        self.ntf_delta -= sent + expired
        done(TakenNtfs([NtfItem.parse(item) for item in items], expired))

    async def reassert(self, subs: Iterable[Held], expire_before: int) -> None:
        """Redis was away: says again who is subscribed. What was missed comes as events: MSG, END or DELD."""
        by_partition: dict[int, list[Held]] = {}
        for sub in subs:
            by_partition.setdefault(self.partition(sub.rcv_id), []).append(sub)
        for p, listed in by_partition.items():
            for at in range(0, len(listed), _RELEASE_BATCH):
                batch = listed[at : at + _RELEASE_BATCH]
                known: list[bytes | int] = [expire_before]
                for sub in batch:
                    known += [self.token(sub.conn, sub.gen), sub.msg_id]
                answers = await self.call(p, "reassert", [keys.queue(p, sub.rcv_id) for sub in batch], known)
                for sub, answer in zip(batch, answers, strict=True):
                    if isinstance(answer, bytes):
                        self.emit(MsgEvent(sub.rcv_id, Entry.parse(answer), sub.conn, sub.gen))
                    elif answer == 1:
                        self.emit(EndEvent(sub.rcv_id, sub.conn, sub.gen))
                    elif answer == 2:
                        self.emit(DeldEvent(sub.rcv_id, sub.conn, sub.gen))

    async def reassert_ntfs(self, subs: Iterable[HeldNtf]) -> None:
        """As `reassert`, for notifiers: NtfEvent, END or DELD."""
        by_partition: dict[int, list[HeldNtf]] = {}
        for sub in subs:
            by_partition.setdefault(self.partition(sub.rcv_id), []).append(sub)
        for p, listed in by_partition.items():
            for at in range(0, len(listed), _RELEASE_BATCH):
                batch = listed[at : at + _RELEASE_BATCH]
                known: list[bytes | int] = []
                for sub in batch:
                    known += [self.token(sub.conn, sub.gen), sub.ntf_id]
                answers = await self.call(p, "reassert_ntfs", [keys.queue(p, sub.rcv_id) for sub in batch], known)
                for sub, answer in zip(batch, answers, strict=True):
                    if answer:
                        kind = {1: EndEvent, 2: DeldEvent, 3: NtfEvent}[answer]
                        self.emit(kind(sub.ntf_id, sub.conn, sub.gen))

    def release(
        self, rcv_ids: Iterable[bytes], ntf_rcv_ids: Iterable[bytes], conn: int, done: Callable[[Any], None]
    ) -> None:
        """A connection has closed: it owns nothing any more. Notifiers are named by their queue's recipient id."""
        own = self.own(conn)
        calls: list[tuple[int, bytes]] = []
        for field, ids in ((b"o", rcv_ids), (b"no", ntf_rcv_ids)):
            by_partition: dict[int, list[bytes]] = {}
            for rcv_id in ids:
                p = self.partition(rcv_id)
                by_partition.setdefault(p, []).append(keys.queue(p, rcv_id))
            for p, queues in by_partition.items():
                for start in range(0, len(queues), _RELEASE_BATCH):
                    batch = queues[start : start + _RELEASE_BATCH]
                    calls.append((p, self.script_wire("release", batch, [field, own])))
        if not calls:
            done(None)
            return
        reply = gather_into(len(calls), lambda results: done(UNAVAILABLE if results is UNAVAILABLE else None))
        for place, (p, wire) in enumerate(calls):
            self.muxes[p].script(wire, reply, place)


def _subscribed(
    raw: Any, ctx: tuple[QueueRecord, int, bytes | None, Callable[[SubResult | Unavailable], None]]
) -> None:
    rec, rev, service, done = ctx
    if raw.__class__ is int:
        result = _NO_HEAD.get(raw) or _REFUSED[raw]
    elif raw is UNAVAILABLE:
        done(UNAVAILABLE)
        return
    else:
        code, entry, expired = raw
        result = SubResult(STATUS[0], Entry.parse(entry) if entry else None, _ASSOC[code - 16], expired)
    if result.assoc in _CHANGED and rec.rev == rev:
        rec.rev, rec.rcv_service = rev + 1, service
    done(result)


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
    assoc = _ASSOC[raw[0]]
    if assoc in _CHANGED and rec.rev == rev:
        rec.rev, rec.ntf_service = rev + 1, service
    done(NsubResult(STATUS[0], bool(raw[1]), assoc))
