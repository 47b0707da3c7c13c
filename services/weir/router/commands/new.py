"""NEW: a queue is made, with its ids in one partition, and subscribed to unless the client declines."""

from __future__ import annotations

from hashlib import sha3_384, sha256

from weir.crypto.keys import dh, generate
from weir.redis.errors import Unavailable
from weir.router.commands.handler import StandaloneHandler, handles
from weir.router.commands.password import password_fits
from weir.router.commands.sub import subscribe
from weir.router.delivery.ownership import ensure_owner, lose_service
from weir.router.session.subscriptions import Sub
from weir.router.store.records import NewLink, NewNotifier, NewQueue, Owner, Status
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.smp.codec import decode_reply, encode_command, encode_reply
from weir.wire.smp.commands import NEW, ContactReq, MessagingReq, QueueMode
from weir.wire.smp.replies import IDS, ServerNtfCreds
from weir.wire.versions import RCV_SERVICE

_TRIES = 3
_ID_LENGTH = 24
_KEPT_VERSION = RCV_SERVICE  # of the answer that is kept for a repeated NEW


@handles(NEW)
class NewHandler(StandaloneHandler):
    __slots__ = ("_key", "_ntf_key", "_ntf_secret", "_placed", "_secret")

    def likely_key(self) -> bytes | None:
        command = self.t.command
        assert isinstance(command, NEW)
        return command.rcv_auth_key

    def prepare(self) -> ErrorType | None:
        command = self.t.command
        assert isinstance(command, NEW)
        error = self._refused(command)
        if error is not None:
            return error
        keys = generate("x25519")
        self._key, self._secret = keys.public, dh(command.rcv_dh_key, keys.private)
        if command.ntf_creds is not None:
            keys = generate("x25519")
            self._ntf_key, self._ntf_secret = keys.public, dh(command.ntf_creds.dh_key, keys.private)
        self._place(command)
        return None

    async def execute(self) -> None:
        session, command = self.session, self.t.command
        assert isinstance(command, NEW)
        try:
            for again in range(_TRIES):
                if session.service is not None:
                    await ensure_owner(session)
                if again:
                    self._place(command)
                new, ids = self._queue(command)
                result = await session.shared.store.queues.new(new)
                if result.status is Status.OK:
                    await self._created(new, ids)
                    return
                if result.status is Status.EXISTS and result.answer is not None:
                    await self._repeated(command, result.answer)
                    return
                if result.status is Status.FENCED:
                    assert new.owner is not None
                    lose_service(session, new.owner.gen)
                elif new.request:
                    self.fail(Simple.AUTH)  # an id that the client chose is taken
                    return
        except Unavailable:
            pass
        self.fail(Simple.INTERNAL)

    def _refused(self, command: NEW) -> ErrorType | None:
        auth = self.session.shared.config.auth
        if not auth.new_queues or not password_fits(auth.create_password, command.basic_auth):
            return Simple.AUTH
        if self.session.service is not None and not command.subscribe:
            return CommandError.PROHIBITED
        chosen = _chosen_snd_id(command)
        if chosen is not None and chosen != sha3_384(self.t.corr_id).digest()[:_ID_LENGTH]:
            # A client that could choose any id would find out by NEW whether a queue with that id exists.
            return CommandError.PROHIBITED
        return None

    def _place(self, command: NEW) -> None:
        """Draw new ids, all in one partition."""
        self._placed = self.session.shared.store.placement.new_ids(
            _chosen_snd_id(command), command.ntf_creds is not None
        )

    def _queue(self, command: NEW) -> tuple[NewQueue, IDS]:
        session, shared = self.session, self.session.shared
        rcv_id, snd_id, ntf_id = self._placed
        request = command.queue_req
        mode, link = None, None
        if isinstance(request, MessagingReq):
            mode = QueueMode.MESSAGING
            if request.data is not None:
                link = NewLink(shared.random_id(), request.data[1])
        elif isinstance(request, ContactReq):
            mode = QueueMode.CONTACT
            if request.data is not None:
                link = NewLink(request.data[0], request.data[1][1])
        notifier, creds = None, None
        if command.ntf_creds is not None:
            assert ntf_id is not None
            notifier = NewNotifier(ntf_id, command.ntf_creds.auth_key, self._ntf_secret)
            creds = ServerNtfCreds(ntf_id, self._ntf_key)
        service_id = None if session.service is None else session.service.service_id
        ids = IDS(rcv_id, snd_id, self._key, mode, None if link is None else link.link_id, service_id, creds)
        owner = None
        if session.subscriptions.epoch is not None and session.service is not None:
            owner = Owner(session.id, session.subscriptions.epoch)
        elif command.subscribe:
            owner = Owner(session.id, shared.next_gen())
        new = NewQueue(
            rcv_id,
            snd_id,
            command.rcv_auth_key,
            self._secret,
            shared.today(),
            mode,
            notifier,
            link,
            owner,
            service_id,
        )
        if _chosen_snd_id(command) is not None:
            new.request = _request_hash(command)
            new.answer = encode_reply(_KEPT_VERSION, ids)
        return new, ids

    async def _created(self, new: NewQueue, ids: IDS) -> None:
        session, shared = self.session, self.session.shared
        stats = shared.stats
        stats.qCreated += 1
        if new.notifier is not None:
            stats.ntfNewCreated += 1
        if session.service is not None:
            session.subscriptions.totals.add(new.rcv_id)
        elif new.owner is not None:
            if session.closed:
                shared.store.subscriptions.release([new.rcv_id], [], session.id, _ignore)
            else:
                session.subscriptions.queues[new.rcv_id] = Sub(new.owner.gen, answered=True)
        self.answer(encode_reply(self.origin.framing.version, ids))

    async def _repeated(self, command: NEW, kept: bytes) -> None:
        """Answer the same NEW again: the queue exists, but the first answer was lost."""
        session = self.session
        ids = decode_reply(_KEPT_VERSION, kept)
        assert isinstance(ids, IDS)
        if command.subscribe and not await subscribe(session, ids.rcv_id):
            self.fail(Simple.AUTH)
        else:
            self.answer(encode_reply(self.origin.framing.version, ids))


def _chosen_snd_id(command: NEW) -> bytes | None:
    request = command.queue_req
    if request is None or request.data is None:
        return None
    return request.data[0] if isinstance(request, MessagingReq) else request.data[1][0]


def _request_hash(command: NEW) -> bytes:
    return sha256(encode_command(_KEPT_VERSION, command)).digest()


def _ignore(_: object) -> None:
    return None
