"""SEND, ACK, GET and bodies."""

import os
from collections.abc import Callable
from typing import Any

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.forms import Constant, Field, Fixed, Key, Length, Number, Variable, wire_forms
from weir.redis.resp import RETRY_FLAG, bulk
from weir.router.store import keys
from weir.router.store.core import STATUS, Core
from weir.router.store.records import (
    ENTRY_FORM,
    AckResult,
    Entry,
    NtfItem,
    Owner,
    QueueInfo,
    QueueRecord,
    SendResult,
    Status,
)

_BODY_SLACK = 3600  # seconds that a body outlives its entry, so that no entry is without its body
EXPIRED, REMOVED = 15, 16  # answers of ACK; REMOVED + the flags of the message (lua/include/acked.lua)
_SENT = {code: SendResult(status) for code, status in STATUS.items()}
_SENT_OK = _SENT[0]
_ACKED = {code: AckResult(status) for code, status in STATUS.items()} | {
    EXPIRED: AckResult(Status.OK),
    **{REMOVED + flags: AckResult(Status.OK, flags) for flags in range(4)},
}


class Messages:
    def __init__(self, core: Core) -> None:
        config, topology = core.config, core.topology
        self._core = core
        self._keys = core.keys
        self._muxes = core.muxes
        self._edge = core.edge
        self._partition = core.partition
        self._unsaved = core.unsaved
        self._tombstone_ms = int(config.deadline * 3000)
        self._op_prefix = os.urandom(4)
        self._op = 0
        scripts, tags = topology.scripts, topology.partitions.tags
        queue, messages = Key("q", "rcv_id", keys.ID_LENGTH), Key("m", "rcv_id", keys.ID_LENGTH)
        body = Key("b", "msg_id", keys.ID_LENGTH)
        ttl = b"%d" % ((config.message_ttl + _BODY_SLACK) * 1000)
        rest_of_set = b"\r\n" + bulk(b"NX") + bulk(b"PX") + bulk(ttl)
        send: list[Field] = [
            queue,
            messages,
            body,
            Variable("rev"),
            Variable("entry"),
            Constant(self._edge),
            Number("day", keys.DAY_DIGITS),
            Number("expire_before", 16),
            Constant(b"%d" % config.quota),
            Variable("service"),
        ]
        notification: list[Field] = [
            Variable("ntf_id"),
            Variable("ntf_service"),
            Variable("item"),
            Constant(b"%d" % config.ntf_limit),
        ]
        ack: list[Field] = [
            queue,
            messages,
            Variable("rev"),
            Variable("token"),
            Variable("msg_id"),
            Fixed("operation", 8),
            Number("expire_before", 10),
            Number("day", keys.DAY_DIGITS),
            Variable("service"),
            Constant(b"%d" % self._tombstone_ms),
        ]
        self._set_body = wire_forms(tags, b"*6\r\n$3\r\nSET\r\n", [body, Length("size")])
        self._get_body = wire_forms(tags, b"*2\r\n$3\r\nGET\r\n", [body])
        self._send = wire_forms(tags, rest_of_set + scripts.head("send", 3, 8), send, RETRY_FLAG)
        self._send_ntf = wire_forms(tags, rest_of_set + scripts.head("send", 3, 12), send + notification, RETRY_FLAG)
        self._ack = wire_forms(tags, scripts.head("ack", 2, 9), ack, RETRY_FLAG)

    def send(
        self,
        rec: QueueRecord,
        msg_id: bytes,
        ts: int,
        notification: bool,
        body: bytes,
        day: int,
        expire_before: float,
        ntf: NtfItem | None,
        trace: bytes,
        done: Callable[[SendResult | Unavailable], None],
    ) -> None:
        """SEND: store a message whose body is already encrypted to the recipient. One round trip.

        The part of a second of `expire_before` is that of the time at which the SEND came. It travels with the event to
        an edge that delivers the message at once, and is not stored.
        """
        expire_before = int(expire_before * 1_000_000)
        p = rec.partition
        rcv_id = rec.rcv_id
        entry = ENTRY_FORM % (msg_id, ts.to_bytes(8, "big"), notification, trace)
        rev, service = b"%d" % rec.rev, rec.rcv_service or b""
        if ntf is None or rec.ntf_id is None:
            wire, on_reply = self._send[p](rcv_id, msg_id, rev, entry, day, expire_before, service), self._sent
        else:
            ntf_service, item = rec.ntf_service or b"", ntf.pack()
            wire = self._send_ntf[p](
                rcv_id, msg_id, rev, entry, day, expire_before, service, rec.ntf_id, ntf_service, item
            )
            on_reply = self._sent_ntf
        self._muxes[p].script_with_body(self._set_body[p](msg_id, len(body)), body, wire, on_reply, done)

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
        """ACK: remove the message in flight to (conn, gen); `msg_id` b"" means any. Puts the next message in flight."""
        p = rec.partition
        self._op = (self._op + 1) & 0xFFFFFFFF
        wire = self._ack[p](
            rec.rcv_id,
            b"%d" % rec.rev,
            self._core.token(conn, gen),
            msg_id,
            self._op_prefix + self._op.to_bytes(4, "big"),
            expire_before,
            day,
            rec.rcv_service or b"",
        )
        self._muxes[p].script(wire, self._acked, done, late=True)

    def _sent(self, raw: Any, done: Callable[[SendResult | Unavailable], None]) -> None:
        if raw == 0:
            self._unsaved.messages += 1
            done(_SENT_OK)
        elif raw.__class__ is int:
            done(_SENT[raw])
        elif raw is UNAVAILABLE:
            done(UNAVAILABLE)
        else:
            self._unsaved.messages += 1 - raw[2]
            done(SendResult(Status.OK, _owner(raw[0]), _owner(raw[1]), raw[2], raw[3]))

    def _sent_ntf(self, raw: Any, done: Callable[[SendResult | Unavailable], None]) -> None:
        if raw.__class__ is list:
            self._unsaved.notifications += 1 - raw[3]
        elif raw == 0:
            self._unsaved.notifications += 1
        self._sent(raw, done)

    def _acked(self, raw: Any, done: Callable[[AckResult | Unavailable], None]) -> None:
        if raw.__class__ is int:
            if raw >= REMOVED:
                self._unsaved.messages -= 1
            done(_ACKED[raw])
        elif raw is UNAVAILABLE:
            done(UNAVAILABLE)
        else:
            code, entry, expired = raw
            flags = code - REMOVED if code >= REMOVED else None
            self._unsaved.messages -= expired + (flags is not None)
            done(AckResult(Status.OK, flags, Entry.parse(entry) if entry else None, expired))

    def body(self, rcv_id: bytes, msg_id: bytes, done: Callable[[bytes | Unavailable | None], None]) -> None:
        """Read a body. None if it has expired or was removed."""
        p = self._partition(rcv_id)
        self._muxes[p].read(self._get_body[p](msg_id), _got, done)

    async def info(self, rec: QueueRecord, expire_before: int) -> QueueInfo | Status:
        """QUE: the number of messages and the first message. The owner and the in-flight mark stay unchanged."""
        p = rec.partition
        raw = await self._core.call(
            p,
            "peek",
            [self._keys.queue(p, rec.rcv_id), self._keys.messages(p, rec.rcv_id)],
            [rec.rev, expire_before, rec.rcv_service or b""],
        )
        if isinstance(raw, int):
            return STATUS[raw]
        return QueueInfo(raw[0], Entry.parse(raw[1]) if raw[1] else None)

    async def peek(self, rec: QueueRecord, expire_before: int) -> Entry | Status | None:
        """GET: the first message."""
        info = await self.info(rec, expire_before)
        return info if isinstance(info, Status) else info.head

    async def ack_get(self, rec: QueueRecord, msg_id: bytes, day: int) -> AckResult:
        """ACK of a message that GET brought: remove the message if it is still the first."""
        p = rec.partition
        raw = await self._core.call(
            p,
            "ack_get",
            [self._keys.queue(p, rec.rcv_id), self._keys.messages(p, rec.rcv_id)],
            [rec.rev, msg_id, day, rec.rcv_service or b"", self._tombstone_ms],
        )
        if raw >= REMOVED:
            self._unsaved.messages -= 1
        return _ACKED[raw]


def _owner(token: bytes) -> Owner | None:
    if not token:
        return None
    _, conn, gen = token.split(b":")
    return Owner(int(conn), int(gen))


def _got(raw: Any, done: Callable[[bytes | Unavailable | None], None]) -> None:
    done(raw or None)
