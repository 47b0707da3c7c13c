"""SEND: the message is encrypted to its recipient here, once, and stored. Whoever delivers it forwards the bytes.

Messages of one session to one queue keep their order, whatever happens to the queue's credentials meanwhile. The SENDs
that are not answered are kept in order, one line per queue (`Session.sends`). If a SEND is not sent yet, must be sent
again, or was sent with another revision of the record, the SENDs behind it wait:

    line of a queue    [sent, rev 4] [sent, rev 4] [rev 5: waits]     ← a STALE answer to the first restarts all three
"""

from __future__ import annotations

import contextlib
from time import time

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.commands.handler import OK, QueueHandler, handles
from weir.router.commands.verification import is_secured_messaging
from weir.router.store.records import EntityStatus, Entry, NtfItem, QueueRecord, SendResult, Status
from weir.runtime.incoming import Hold
from weir.telemetry.tracing import Span
from weir.wire.errors import Blocked, ErrorType, Simple
from weir.wire.smp.commands import SEND, Command
from weir.wire.smp.message import NMsgMeta, RcvMsgBody, decrypt_message, encrypt_message, encrypt_nmsg_meta
from weir.wire.smp.transmission import ClientTransmission
from weir.wire.versions import SMP_RANGE, max_message_length

_ALWAYS_FITS = max_message_length(SMP_RANGE.max)  # bytes; older versions allow a little more

# Special values of `_sent_rev`. Revisions begin at 1.
_UNSENT = 0
_WAITING = -1  # for the SENDs before it in the line


@handles(SEND)
class SendHandler(QueueHandler):
    __slots__ = ("_at", "_body", "_line_hold", "_msg_id", "_secret", "_sent_rev", "_span", "_store_span")

    auth_stat = "msgSentAuth"
    traces_itself = True

    _at: float  # Unix time at which the SEND came: the time of the message, and the start of what is measured
    _sent_rev: int  # the record revision this message was sent with, or _UNSENT, or _WAITING
    _line_hold: Hold  # while _WAITING
    _span: Span
    _store_span: Span

    @staticmethod
    def key_of(record: QueueRecord, command: Command) -> bytes | None:
        return record.snd_key

    def begin(self) -> None:
        self._at = time()
        self._sent_rev = _UNSENT
        session, t = self.session, self.t
        session.sends.setdefault(t.entity_id, []).append(self)
        cache = self._credentials.cache
        record = cache.recent.get(t.entity_id)
        if (
            record is not None
            and record.status is EntityStatus.ACTIVE
            and not session.incoming.share.waiting
            and self.origin.verifier.at_once(t, record.snd_key)
        ):
            self.execute(record)  # the usual case, in fewer calls than `QueueHandler.begin`
        else:
            QueueHandler.begin(self)

    def execute(self, record: QueueRecord) -> None:
        session = self.session
        shared = session.shared
        command = self.t.command
        assert type(command) is SEND
        at = self._at
        now = int(at)
        day = now // 86400
        too_long = len(command.body) > _ALWAYS_FITS and self._is_too_long(len(command.body))
        if too_long or record.status is not EntityStatus.ACTIVE:
            self._refuse(record, too_long, day)
            return
        line = session.sends.get(self.t.entity_id)
        if line is not None and line[0] is not self and line[line.index(self) - 1]._sent_rev != record.rev:
            self._wait_in_line()
            return
        if record.link_id is not None and is_secured_messaging(record):
            shared.spawn(self._remove_link(record, session.incoming.hold()))
            return
        self._sent_rev = record.rev
        self._record = record
        self._msg_id = msg_id = shared.random_id()
        notification = command.notification
        self._secret = record.dh_secret
        self._body = body = encrypt_message(record.dh_secret, msg_id, now, notification, command.body)
        # Keep only the encrypted message while it is stored: three copies of each would not fit the CPU's caches.
        auth, service_sig, authorized, corr_id, entity_id, _ = self.t
        head = authorized[: len(authorized) - len(command.body)]
        self.t = ClientTransmission(auth, service_sig, head, corr_id, entity_id, SEND(notification, b""))
        ntf, nonce = None, b""
        if notification and record.ntf_id is not None and record.ntf_dh_secret is not None:
            nonce = shared.random_id()
            ntf = NtfItem(now, nonce, encrypt_nmsg_meta(record.ntf_dh_secret, nonce, NMsgMeta(msg_id, now)))
        self._span = span = shared.tracer.sample("SEND", always=session.traced, nonce=nonce)
        trace = self._begin_store_span(span) if span.recording else b""
        if span.recording and nonce:
            shared.tracer.begin_notification(nonce, span)
        shared.store.messages.send(
            record,
            msg_id,
            now,
            notification,
            body,
            day,
            at - shared.message_ttl,
            ntf,
            trace,
            self._stored,
        )

    def _restore_plain_body(self) -> None:
        """Put the message back into the transmission, so that the command can be verified again."""
        auth, service_sig, head, corr_id, entity_id, _ = self.t
        message = decrypt_message(self._secret, self._msg_id, self._body)
        assert isinstance(message, RcvMsgBody)
        command = SEND(message.notification, message.body)
        self.t = ClientTransmission(auth, service_sig, head + message.body, corr_id, entity_id, command)

    def _stored(self, result: SendResult | Unavailable) -> None:
        if result is UNAVAILABLE:
            if self._span.recording:
                self._end_spans("INTERNAL")
            self.time_out()
            return
        status, deliver, ntf_deliver, expired, ntfs_lost = result  # type: ignore[misc]
        if self._span.recording and not self._timed_out:
            self._end_spans(None if status is Status.OK else status.name)
        shared = self.session.shared
        stats = shared.stats
        if expired:
            stats.msgExpired += expired
        if ntfs_lost:
            stats.msgNtfLost += ntfs_lost
        if status is Status.OK:
            command, record = self.t.command, self._record
            assert record is not None and type(command) is SEND
            stats.msgSent += 1
            stats.send_stored.observe((time() - self._at) * 1e6)
            stats.active_queues.add(record.rcv_id)
            if command.notification:
                stats.msgSentNtf += 1
                stats.active_queues_ntf.add(record.rcv_id)
            if not self._timed_out:
                self.origin.answer(self, OK)
                self._leave_line()
            if deliver is not None:
                at = self._at
                entry = Entry(self._msg_id, int(at), int(command.notification), self._span.context(), at)
                shared.delivery.deliver(deliver, record.rcv_id, entry, self._body)
            if ntf_deliver is not None and record.ntf_id is not None:
                shared.notifications.ready(ntf_deliver.conn, ntf_deliver.gen, record.ntf_id)
        elif self._timed_out:
            pass
        elif status is Status.QUOTA:
            stats.msgSentQuota += 1
            self.fail(Simple.QUOTA)
        elif status is Status.STALE:
            self._send_again()
        else:
            self.queue_is_gone()

    def _begin_store_span(self, span: Span) -> bytes:
        """Return the context that the message carries."""
        self._store_span = span.child("store.send")
        return span.context()

    def _end_spans(self, error: str | None) -> None:
        self._store_span.end()
        self._span.end(error)

    # The line of SENDs to one queue.

    def answer(self, reply: bytes) -> None:
        self.origin.answer(self, reply)
        self._leave_line()

    def fail(self, error: ErrorType) -> None:
        QueueHandler.fail(self, error)
        self._leave_line()

    def _leave_line(self) -> None:
        """The SEND is answered: if the next SEND of the line waits for it, send the next one."""
        sends, snd_id = self.session.sends, self.t.entity_id
        line = sends.get(snd_id)
        if line is None or self not in line:
            return
        line.remove(self)
        if not line:
            del sends[snd_id]
            return
        first = line[0]
        if first._sent_rev == _WAITING:
            first._sent_rev = _UNSENT
            first.retry_stale()
            first._line_hold.release()

    def _wait_in_line(self) -> None:
        self._sent_rev = _WAITING
        self._line_hold = self.session.incoming.hold()

    def _send_again(self) -> None:
        line = self.session.sends.get(self.t.entity_id)
        if line is None:
            return  # the client has disconnected
        self._restore_plain_body()
        if line[0] is self:
            self.retry_stale()
        else:
            self._wait_in_line()

    # Special cases.

    def _is_too_long(self, size: int) -> bool:
        return size > max_message_length(self.origin.framing.version)

    def _refuse(self, record: QueueRecord, too_long: bool, day: int) -> None:
        """Refuse a message that is too long, or a queue that is not active. The day of last use counts even so."""
        shared = self.session.shared
        if record.day != day:
            shared.spawn(self._note_day(record, day))
        stats = shared.stats
        if too_long:
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
            await self.session.shared.store.queues.update_day(record, day)

    async def _remove_link(self, record: QueueRecord, hold: Hold) -> None:
        """Remove an invitation's link data, which nobody needs once the sender sends; then send."""
        with hold:
            try:
                await self.session.shared.store.links.delete_link(record)
            except Unavailable:
                self.fail(Simple.INTERNAL)
            else:
                self.session.shared.forget(record)
                self.retry_stale()
