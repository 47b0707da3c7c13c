"""NEW, KEY, SKEY, RKEY, OFF and DEL: the life of a queue."""

from __future__ import annotations

import hmac
from functools import partial
from hashlib import sha3_384, sha256
from time import time
from typing import TYPE_CHECKING

from weir.crypto.keys import dh, generate
from weir.router.op import OK, ColdOp, Party, SessionOp
from weir.router.subscriptions import Sub
from weir.store.core import awaited
from weir.store.records import (
    EntityStatus,
    NewLink,
    NewNotifier,
    NewQueue,
    Owner,
    QueueRecord,
    Status,
    SubResult,
    Unavailable,
)
from weir.wire.commands import KEY, NEW, RKEY, SKEY, ContactReq, MessagingReq, QueueMode
from weir.wire.errors import Blocked, CommandError, ErrorType, Simple
from weir.wire.replies import IDS, ServerNtfCreds
from weir.wire.smp import decode_reply, encode_command, encode_reply
from weir.wire.versions import RCV_SERVICE

if TYPE_CHECKING:
    from weir.router.connection import Client

_TRIES = 3
_ID_LENGTH = 24
_KEPT_VERSION = RCV_SERVICE  # in which the answer is kept for a repeated NEW


class NewOp(SessionOp):
    __slots__ = ("_key", "_ntf_key", "_ntf_secret", "_placed", "_secret")

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

    async def work(self) -> None:
        client, command = self.client, self.t.command
        assert isinstance(command, NEW)
        try:
            for again in range(_TRIES):
                if client.service is not None:
                    await client.router.services.owned(client)
                if again:
                    self._place(command)
                new, ids = self._queue(command)
                result = await client.router.store.new(new)
                if result.status is Status.OK:
                    await self._created(new, ids)
                    return
                if result.status is Status.EXISTS and result.answer is not None:
                    await self._again(command, result.answer)
                    return
                if result.status is Status.FENCED:
                    client.router.delivery.lost_service(client)
                elif new.request:
                    self.fail(Simple.AUTH)  # an id that the client chose is taken
                    return
        except Unavailable:
            pass
        self.fail(Simple.INTERNAL)

    def _refused(self, command: NEW) -> ErrorType | None:
        auth = self.client.router.config.auth
        if not auth.new_queues or not password_fits(auth.create_password, command.basic_auth):
            return Simple.AUTH
        if self.client.service is not None and not command.subscribe:
            return CommandError.PROHIBITED
        chosen = _chosen_snd_id(command)
        if chosen is not None and chosen != sha3_384(self.t.corr_id).digest()[:_ID_LENGTH]:
            # An id of the client's choosing could otherwise ask whether a queue exists.
            return CommandError.PROHIBITED
        return None

    def _place(self, command: NEW) -> None:
        """Fresh ids, all in one partition."""
        self._placed = self.client.router.store.new_ids(_chosen_snd_id(command), command.ntf_creds is not None)

    def _queue(self, command: NEW) -> tuple[NewQueue, IDS]:
        client = self.client
        router = client.router
        rcv_id, snd_id, ntf_id = self._placed
        request = command.queue_req
        mode, link = None, None
        if isinstance(request, MessagingReq):
            mode = QueueMode.MESSAGING
            if request.data is not None:
                link = NewLink(router.random_id(), request.data[1])
        elif isinstance(request, ContactReq):
            mode = QueueMode.CONTACT
            if request.data is not None:
                link = NewLink(request.data[0], request.data[1][1])
        notifier, creds = None, None
        if command.ntf_creds is not None:
            assert ntf_id is not None
            notifier = NewNotifier(ntf_id, command.ntf_creds.auth_key, self._ntf_secret)
            creds = ServerNtfCreds(ntf_id, self._ntf_key)
        service_id = None if client.service is None else client.service.service_id
        ids = IDS(rcv_id, snd_id, self._key, mode, None if link is None else link.link_id, service_id, creds)
        owner = None
        if client.epoch is not None and client.service is not None:
            owner = Owner(client.id, client.epoch)
        elif command.subscribe:
            owner = Owner(client.id, router.next_gen())
        new = NewQueue(
            rcv_id,
            snd_id,
            command.rcv_auth_key,
            self._secret,
            router.today(),
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
        client = self.client
        router = client.router
        stats = router.stats
        stats.qCreated += 1
        if new.notifier is not None:
            stats.ntfNewCreated += 1
        if client.service is not None:
            client.totals.add(new.rcv_id)
        elif new.owner is not None:
            if client.closed:
                router.store.release([new.rcv_id], [], client.id, _ignore)
            else:
                client.subs[new.rcv_id] = Sub(new.owner.gen)
        self.answer(encode_reply(self.origin.session.version, ids))

    async def _again(self, command: NEW, kept: bytes) -> None:
        """The same NEW once more: its first answer was lost on the way, the queue is there."""
        client = self.client
        ids = decode_reply(_KEPT_VERSION, kept)
        assert isinstance(ids, IDS)
        if command.subscribe and not await _subscribe(client, ids.rcv_id):
            self.fail(Simple.AUTH)
        else:
            self.answer(encode_reply(self.origin.session.version, ids))


async def _subscribe(client: Client, rcv_id: bytes) -> bool:
    """SUB for a queue whose creation is repeated; a message that came meanwhile follows."""
    router = client.router
    while True:
        record = await router.store.get_rcv(rcv_id)
        if record is None:
            return False
        service = client.service
        if service is not None:
            await router.services.owned(client)
        gen = router.next_gen() if service is None or client.epoch is None else client.epoch
        sub = client.subs[rcv_id] = Sub(gen)
        service_id = None if service is None else service.service_id
        now = int(time())
        before = router.expire_before(now)
        call = partial(router.store.sub, record, client.id, gen, service_id, now // 86400, before)
        result: SubResult = await awaited(call)
        if result.status is Status.OK:
            if result.head is not None and sub.give(result.head.msg_id):
                client.out.message(rcv_id, sub, result.head)
            return True
        if result.status is Status.GONE:
            client.subs.pop(rcv_id, None)
            return False
        if result.status is Status.FENCED:
            router.delivery.lost_service(client)


class SecureOp(ColdOp):
    """KEY: by the recipient. SKEY: by the sender, where the queue's mode lets it."""

    __slots__ = ()

    def _party(self) -> Party:
        router = self.client.router
        return router.snd if isinstance(self.t.command, SKEY) else router.rcv

    def _key(self, record: QueueRecord) -> bytes | None:
        command = self.t.command
        return command.key if isinstance(command, SKEY) else record.rcv_keys[0]

    async def work(self, record: QueueRecord) -> None:
        command = self.t.command
        assert isinstance(command, (KEY, SKEY))
        if await secured(self, record, command.key):
            self.answer(OK)


async def secured(op: ColdOp, record: QueueRecord, key: bytes) -> bool:
    """Set the sender's key; False when the op has been answered instead."""
    router = op.client.router
    if not isinstance(record.status, EntityStatus):
        op.fail(Blocked(record.status))
        return False
    status = await op.status_of(router.store.secure(record, key))
    if status is not Status.OK:
        return False
    router.forget(record)
    router.stats.qSecured += 1
    return True


class RkeyOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        command = self.t.command
        assert isinstance(command, RKEY)
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
        elif record.mode is not QueueMode.CONTACT:
            self.fail(Simple.AUTH)
        elif await self.status_of(self.client.router.store.set_rcv_keys(record, command.keys)) is Status.OK:
            self.client.router.forget(record)
            self.answer(OK)


class OffOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        if await self.status_of(self.client.router.store.suspend(record)) is Status.OK:
            self.client.router.forget(record)
            self.answer(OK)


class DelOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        client = self.client
        router = client.router
        try:
            result = await router.store.delete(record, client.id)
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if result.status is not Status.OK:
            self.not_ok(result.status)
            return
        router.forget(record)
        client.subs.pop(record.rcv_id, None)
        client.out.forget(record.rcv_id)
        if client.service is not None and record.rcv_service == client.service.service_id:
            client.totals.subtract(record.rcv_id)
        router.stats.qDeletedAll += 1
        if record.snd_key is None:
            router.stats.qDeletedNew += 1
        else:
            router.stats.qDeletedSecured += 1
        self.answer(OK)


def password_fits(password: str | None, given: bytes | None) -> bool:
    return password is None or (given is not None and hmac.compare_digest(password.encode(), given))


def _chosen_snd_id(command: NEW) -> bytes | None:
    request = command.queue_req
    if request is None or request.data is None:
        return None
    return request.data[0] if isinstance(request, MessagingReq) else request.data[1][0]


def _request_hash(command: NEW) -> bytes:
    return sha256(encode_command(_KEPT_VERSION, command)).digest()


def _ignore(_: object) -> None:
    return None
