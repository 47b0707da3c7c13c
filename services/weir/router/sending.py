"""SEND: a message is encrypted to its recipient here, once, and stored; whoever delivers it forwards bytes.

Messages of one connection to one queue keep their order, whatever happens to its credentials meanwhile: those under way
stand in a line. Behind one that is not sent, has to be sent again, or was sent with another revision, nothing is sent.
"""

from __future__ import annotations

import contextlib
from time import time
from typing import TYPE_CHECKING

from weir.router.op import OK, Party, QueueOp
from weir.router.verification import is_secured_messaging
from weir.store.records import UNAVAILABLE, EntityStatus, Entry, NtfItem, QueueRecord, SendResult, Status, Unavailable
from weir.wire.commands import SEND
from weir.wire.errors import Blocked, ErrorType, Simple
from weir.wire.message import NMsgMeta, RcvMsgBody, decrypt_message, encrypt_message, encrypt_nmsg_meta
from weir.wire.transmission import ClientTransmission
from weir.wire.versions import max_message_length

if TYPE_CHECKING:
    from weir.telemetry.tracing import Span


_UNSENT = 0  # revisions begin at 1
_WAITS = -1  # for those before it in the line


class SendOp(QueueOp):
    __slots__ = ("_body", "_msg_id", "_secret", "_sent_rev", "_span", "_store_span", "_ts")

    auth_stat = "msgSentAuth"

    _sent_rev: int  # that it was last sent with, or one of the two above

    def begin(self) -> None:
        self._sent_rev = _UNSENT
        line = self.client.sending.get(self.t.entity_id)
        if line is None:
            self.client.sending[self.t.entity_id] = [self]
        else:
            line.append(self)
        QueueOp.begin(self)

    def _party(self) -> Party:
        return self.client.router.snd

    def _key(self, record: QueueRecord) -> bytes | None:
        return record.snd_key

    def run(self, record: QueueRecord) -> None:
        client = self.client
        router = client.router
        command = self.t.command
        assert type(command) is SEND
        now = int(time())
        day = now // 86400
        if record.status is not EntityStatus.ACTIVE or len(command.body) > max_message_length(
            self.origin.session.version
        ):
            self._refuse(record, len(command.body), day)
            return
        line = client.sending.get(self.t.entity_id)
        if line is not None and line[0] is not self and line[line.index(self) - 1]._sent_rev != record.rev:
            self._sent_rev = _WAITS
            client.hold += 1  # until it is its turn
            return
        if record.link_id is not None and is_secured_messaging(record):
            client.hold += 1
            router.spawn(self._without_link(record))
            return
        self._sent_rev = record.rev
        self._record = record
        self._ts = now
        self._msg_id = msg_id = router.random_id()
        notification = command.notification
        self._secret = record.dh_secret
        self._body = body = encrypt_message(record.dh_secret, msg_id, now, notification, command.body)
        self._lighten(command)
        ntf = None
        if notification and record.ntf_id is not None and record.ntf_dh_secret is not None:
            nonce = router.random_id()
            ntf = NtfItem(now, nonce, encrypt_nmsg_meta(record.ntf_dh_secret, nonce, NMsgMeta(msg_id, now)))
        trace = b""
        self._span: Span | None = None
        self._store_span: Span
        tracer = router.tracer
        if tracer is not None and (client.trace or tracer.sampled()):
            self._span = tracer.start("SEND")
            self._store_span = tracer.start("store.send", self._span)
            trace = self._span.context()
        router.store.send(
            record, msg_id, now, notification, body, day, router.expire_before(now), ntf, trace, self._sent
        )

    def _lighten(self, command: SEND) -> None:
        """While it is under way it holds its message once, encrypted: three copies of each would not fit the caches."""
        auth, service_sig, authorized, corr_id, entity_id, _ = self.t
        head = authorized[: len(authorized) - len(command.body)]
        light = SEND(command.notification, b"")
        self.t = ClientTransmission(auth, service_sig, head, corr_id, entity_id, light)

    def _restore(self) -> None:
        auth, service_sig, head, corr_id, entity_id, _ = self.t
        message = decrypt_message(self._secret, self._msg_id, self._body)
        assert isinstance(message, RcvMsgBody)
        command = SEND(message.notification, message.body)
        self.t = ClientTransmission(auth, service_sig, head + message.body, corr_id, entity_id, command)

    def _sent(self, result: SendResult | Unavailable) -> None:
        if self._span is not None and not self._late:
            error = "INTERNAL" if not isinstance(result, SendResult) else result.status.name
            self._store_span.end()
            self._span.end(None if error == "OK" else error)
        if result is UNAVAILABLE:
            self.too_late()
            return
        status, deliver, ntf_deliver, expired, ntfs_lost = result  # type: ignore[misc]
        router = self.client.router
        stats = router.stats
        if expired:
            stats.msgExpired += expired
        if ntfs_lost:
            stats.msgNtfLost += ntfs_lost
        if status is Status.OK:
            command, record = self.t.command, self._record
            assert record is not None and type(command) is SEND
            stats.msgSent += 1
            stats.active_queues.add(record.rcv_id)
            if command.notification:
                stats.msgSentNtf += 1
                stats.active_queues_ntf.add(record.rcv_id)
            if not self._late:
                self.origin.answer(self, OK)
                self._leave()
            if deliver is not None:
                trace = b"" if self._span is None else self._span.context()
                entry = Entry(self._msg_id, self._ts, int(command.notification), trace)
                router.delivery.given(deliver, record.rcv_id, entry, self._body)
            if ntf_deliver is not None and record.ntf_id is not None:
                router.notifications.ready(ntf_deliver.conn, ntf_deliver.gen, record.ntf_id)
        elif self._late:
            pass
        elif status is Status.QUOTA:
            stats.msgSentQuota += 1
            self.fail(Simple.QUOTA)
        elif status is Status.STALE:
            self._send_again()
        else:
            self.gone()

    def answer(self, reply: bytes) -> None:
        super().answer(reply)
        self._leave()

    def fail(self, error: ErrorType) -> None:
        super().fail(error)
        self._leave()

    def _leave(self) -> None:
        """Answered: the next one that has to be sent again has its turn."""
        sending, snd_id = self.client.sending, self.t.entity_id
        line = sending.get(snd_id)
        if line is None or self not in line:
            return
        line.remove(self)
        if not line:
            del sending[snd_id]
        elif line[0]._sent_rev == _WAITS:
            line[0]._sent_rev = _UNSENT
            line[0].stale()
            self.client.release()

    def _send_again(self) -> None:
        line = self.client.sending.get(self.t.entity_id)
        if line is None:
            return  # the client has left
        self._restore()
        if line[0] is self:
            self.stale()
        else:
            self._sent_rev = _WAITS
            self.client.hold += 1

    def _refuse(self, record: QueueRecord, size: int, day: int) -> None:
        """The day of last use counts for a blocked queue too."""
        router = self.client.router
        if record.day != day:
            router.spawn(self._note_day(record, day))
        stats = router.stats
        if size > max_message_length(self.origin.session.version):
            stats.msgSentLarge += 1
            self.fail(Simple.LARGE_MSG)
        elif record.status is EntityStatus.OFF:
            stats.msgSentAuth += 1
            self.fail(Simple.AUTH)
        else:
            assert not isinstance(record.status, EntityStatus)
            stats.msgSentBlock += 1
            self.fail(Blocked(record.status))

    async def _note_day(self, record: QueueRecord, day: int) -> None:
        with contextlib.suppress(Unavailable):
            await self.client.router.store.update_day(record, day)

    async def _without_link(self, record: QueueRecord) -> None:
        """An invitation's link data are not needed any more once its sender sends."""
        try:
            await self.client.router.store.delete_link(record)
        except Unavailable:
            self.fail(Simple.INTERNAL)
        else:
            self.client.router.forget(record)
            self.stale()
        finally:
            self.client.release()
