"""SEND, ACK, GET and bodies."""

import os
from collections.abc import Callable
from typing import Any

from weir.store import keys
from weir.store.core import STATUS, Core, StoreConfig, gather_into
from weir.store.records import (
    UNAVAILABLE,
    AckResult,
    Entry,
    NtfItem,
    Owner,
    QueueInfo,
    QueueRecord,
    SendResult,
    Status,
    Unavailable,
)
from weir.store.resp import RETRY_FLAG, bulk
from weir.store.topology import Topology

_BODY_SLACK = 3600  # a body outlives its entry by this, so that an entry never lacks one
_SENT = {code: SendResult(status) for code, status in STATUS.items()}
_SENT_OK = _SENT[0]
_ACKED = {code: AckResult(status) for code, status in STATUS.items()} | {
    15: AckResult(Status.OK),
    **{16 + flags: AckResult(Status.OK, flags) for flags in range(4)},
}


class Messages(Core):
    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(config, topology)
        ttl = bulk(b"%d" % ((config.message_ttl + _BODY_SLACK) * 1000))
        set_end = b"\r\n$2\r\nNX\r\n$2\r\nPX\r\n" + ttl
        self._tombstone_ms = int(config.deadline * 3000)
        self._op_prefix = os.urandom(4)
        self._op = 0
        heads = [b"$%d\r\n{%d}:" % (len(b"{%d}:x:" % p) + keys.ID_LENGTH, p) for p in range(keys.PARTITIONS)]
        end = b"\r\n"
        send_args = b"$%d\r\n%b\r\n$%d\r\n%b\r\n" + bulk(self.edge) + b"$%d\r\n%b\r\n$10\r\n%010d\r\n"
        send_args += bulk(b"%d" % config.quota) + b"$%d\r\n%b\r\n"
        ntf_args = b"$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" + bulk(b"%d" % config.ntf_limit)

        def send_form(h: bytes, args: int) -> bytes:
            head = topology.scripts.head("send", 3, args)
            return set_end + head + h + b"q:%b\r\n" + h + b"m:%b\r\n" + h + b"b:%b\r\n" + send_args

        ack_head = topology.scripts.head("ack", 2, 9)
        ack_args = b"$%d\r\n%b\r\n" * 3 + b"$8\r\n%b\r\n$10\r\n%010d\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n"
        ack_args += bulk(b"%d" % self._tombstone_ms) + RETRY_FLAG
        self._set_forms = [b"*6\r\n$3\r\nSET\r\n" + h + b"b:%b" + end + b"$%d\r\n" for h in heads]
        self._send_forms = [send_form(h, 8) + RETRY_FLAG for h in heads]
        self._send_ntf_forms = [send_form(h, 12) + ntf_args + RETRY_FLAG for h in heads]
        self._ack_forms = [ack_head + h + b"q:%b\r\n" + h + b"m:%b\r\n" + ack_args for h in heads]
        self._get_forms = [b"*2\r\n$3\r\nGET\r\n" + h + b"b:%b" + end for h in heads]

    def send(
        self,
        rec: QueueRecord,
        msg_id: bytes,
        ts: int,
        notification: bool,
        body: bytes,
        day: int,
        expire_before: int,
        ntf: NtfItem | None,
        trace: bytes,
        done: Callable[[SendResult | Unavailable], None],
    ) -> None:
        """Stores a message that is encrypted to the recipient already; one round trip."""
        p = rec.partition
        rcv_id = rec.rcv_id
        entry = b"%b%b%c%b" % (msg_id, ts.to_bytes(8, "big"), notification, trace)
        rev = b"%d" % rec.rev
        today = b"%d" % day
        service = rec.rcv_service or b""
        args: tuple[Any, ...] = (
            rcv_id,
            rcv_id,
            msg_id,
            len(rev),
            rev,
            len(entry),
            entry,
            len(today),
            today,
            expire_before,
            len(service),
            service,
        )
        if ntf is None or rec.ntf_id is None:
            wire, on_reply = self._send_forms[p] % args, self._sent
        else:
            ntf_service = rec.ntf_service or b""
            item = ntf.pack()
            args += (len(rec.ntf_id), rec.ntf_id, len(ntf_service), ntf_service, len(item), item)
            wire, on_reply = self._send_ntf_forms[p] % args, self._sent_ntf
        self.muxes[p].script_with_body(self._set_forms[p] % (msg_id, len(body)), body, wire, on_reply, done)

    def ack(
        self,
        rec: QueueRecord,
        conn: int,
        gen: int,
        msg_id: bytes,
        expire_before: int,
        day: int,
        done: Callable[[AckResult | Unavailable], None],
    ) -> None:
        """Removes the message in flight to (conn, gen); b"" for whichever it is. The next one is then in flight."""
        p = rec.partition
        rcv_id = rec.rcv_id
        rev = b"%d" % rec.rev
        token = b"%b:%d:%d" % (self.edge, conn, gen)
        today = b"%d" % day
        service = rec.rcv_service or b""
        self._op = (self._op + 1) & 0xFFFFFFFF
        wire = self._ack_forms[p] % (
            rcv_id,
            rcv_id,
            len(rev),
            rev,
            len(token),
            token,
            len(msg_id),
            msg_id,
            self._op_prefix + self._op.to_bytes(4, "big"),
            expire_before,
            len(today),
            today,
            len(service),
            service,
        )
        self.muxes[p].script(wire, self._acked, done, late=True)

    def _sent(self, raw: Any, done: Callable[[SendResult | Unavailable], None]) -> None:
        if raw == 0:
            self.stored_delta += 1
            done(_SENT_OK)
        elif raw.__class__ is int:
            done(_SENT[raw])
        elif raw is UNAVAILABLE:
            done(UNAVAILABLE)
        else:
            self.stored_delta += 1 - raw[2]
            done(SendResult(Status.OK, _owner(raw[0]), _owner(raw[1]), raw[2], raw[3]))

    def _sent_ntf(self, raw: Any, done: Callable[[SendResult | Unavailable], None]) -> None:
        if raw.__class__ is list:
            self.ntf_delta += 1 - raw[3]
        elif raw == 0:
            self.ntf_delta += 1
        self._sent(raw, done)

    def _acked(self, raw: Any, done: Callable[[AckResult | Unavailable], None]) -> None:
        if raw.__class__ is int:
            if raw > 15:
                self.stored_delta -= 1
            done(_ACKED[raw])
        elif raw is UNAVAILABLE:
            done(UNAVAILABLE)
        else:
            code, entry, expired = raw
            flags = code - 16 if code > 15 else None
            self.stored_delta -= expired + (flags is not None)
            done(AckResult(Status.OK, flags, Entry.parse(entry) if entry else None, expired))

    def body(self, rcv_id: bytes, msg_id: bytes, done: Callable[[bytes | Unavailable | None], None]) -> None:
        """A stored body; None when it is gone."""
        p = self.partition(rcv_id)
        self.muxes[p].read(self._get_forms[p] % msg_id, _got, done)

    def bodies(
        self, which: list[tuple[bytes, bytes]], done: Callable[[list[bytes | None] | Unavailable], None]
    ) -> None:
        """Bodies of (recipient id, message id) pairs, in one pipeline."""
        if not which:
            done([])
            return
        reply = gather_into(len(which), lambda got: done(got if got is UNAVAILABLE else [b or None for b in got]))
        for place, (rcv_id, msg_id) in enumerate(which):
            p = self.partition(rcv_id)
            self.muxes[p].read(self._get_forms[p] % msg_id, reply, place)

    async def info(self, rec: QueueRecord, expire_before: int) -> QueueInfo | Status:
        """QUE, and the head for GET: nobody becomes an owner, nothing is in flight."""
        p = rec.partition
        raw = await self.call(
            p,
            "peek",
            [keys.queue(p, rec.rcv_id), keys.messages(p, rec.rcv_id)],
            [rec.rev, expire_before, rec.rcv_service or b""],
        )
        if isinstance(raw, int):
            return STATUS[raw]
        return QueueInfo(raw[0], Entry.parse(raw[1]) if raw[1] else None)

    async def peek(self, rec: QueueRecord, expire_before: int) -> Entry | Status | None:
        """GET."""
        info = await self.info(rec, expire_before)
        return info if isinstance(info, Status) else info.head

    async def ack_get(self, rec: QueueRecord, msg_id: bytes, day: int) -> AckResult:
        """ACK of a message that GET brought: removes it when it is still the first."""
        p = rec.partition
        raw = await self.call(
            p,
            "ack_get",
            [keys.queue(p, rec.rcv_id), keys.messages(p, rec.rcv_id)],
            [rec.rev, msg_id, day, rec.rcv_service or b"", self._tombstone_ms],
        )
        if raw > 15:
            self.stored_delta -= 1
        return _ACKED[raw]

    async def update_day(self, rec: QueueRecord, day: int) -> Status:
        """The day of last use, where no other script sets it (SEND to a blocked queue)."""
        raw = await self.call(rec.partition, "touch", [keys.queue(rec.partition, rec.rcv_id)], [day])
        return STATUS[raw]


def _owner(token: bytes) -> Owner | None:
    if not token:
        return None
    _, conn, gen = token.split(b":")
    return Owner(int(conn), int(gen))


def _got(raw: Any, done: Callable[[bytes | Unavailable | None], None]) -> None:
    done(raw or None)
