"""NKEY, NDEL and NSUB, and the delivery of notifications: gathered for a while, then taken in batches."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from weir.crypto.keys import dh, generate
from weir.router.op import OK, ColdOp, Party, QueueOp
from weir.store.keys import PARTITIONS
from weir.store.records import (
    UNAVAILABLE,
    Assoc,
    EntityStatus,
    NewNotifier,
    NsubResult,
    NtfEvent,
    QueueRecord,
    Status,
    TakenNtfs,
    Unavailable,
)
from weir.wire.commands import NKEY
from weir.wire.errors import Blocked, Simple
from weir.wire.replies import NID, NMSG
from weir.wire.smp import encode_reply

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.router import Router

_TAKES = 64  # notifiers of one client that are asked about at once
_TRIES = 3
_RETRY = 1.0  # seconds until notifications that Redis did not give are asked for again
_PER_BLOCK = 80


class Notifications:
    """Notifications that wait for connections of this edge."""

    __slots__ = ("_router", "_scheduled", "_taking", "_waiting")

    def __init__(self, router: Router) -> None:
        self._router = router
        self._waiting: set[Client] = set()
        self._taking: dict[Client, set[bytes]] = {}  # → notifiers whose notifications are being taken
        self._scheduled = False

    def ready(self, conn: int, gen: int, ntf_id: bytes) -> None:
        """The store has notifications for this connection."""
        client = self._router.clients.get(conn)
        if client is None:
            return
        if client.early is not None:
            client.early.append(NtfEvent(ntf_id, conn, gen))
            return
        if client.ntf_gen(ntf_id) != gen:
            return
        client.ntf_waiting.add(ntf_id)
        self._waiting.add(client)
        if not self._scheduled:
            self._scheduled = True
            self._router.loop.call_later(self._router.config.queues.notification_interval, self._tick)

    def writable(self, client: Client) -> None:
        if client.ntf_waiting:
            self._take(client)

    def gone(self, client: Client) -> None:
        self._waiting.discard(client)
        self._taking.pop(client, None)

    def _tick(self) -> None:
        self._scheduled = False
        waiting, self._waiting = self._waiting, set()
        for client in waiting:
            self._take(client)

    def _take(self, client: Client) -> None:
        while client.ntf_waiting and not client.closed and not client.out.full:
            taking = self._taking.setdefault(client, set())
            if len(taking) >= _TAKES:
                break
            ntf_id = client.ntf_waiting.pop()
            if ntf_id not in taking:  # else the take that is under way finds the new ones, too
                taking.add(ntf_id)
                _Take(self._router, client, ntf_id).next()

    def taken(self, client: Client, ntf_id: bytes) -> None:
        taking = self._taking.get(client)
        if taking is not None:
            taking.discard(ntf_id)
            if not taking:
                del self._taking[client]
        self._take(client)

    async def fold(self, client: Client) -> None:
        """NSUBS: what waits for the service's notifiers is delivered like what comes later."""
        assert client.service is not None and client.epoch is not None
        epoch = client.epoch
        for partition in range(PARTITIONS):
            cursor: int | None = 0
            while cursor is not None:
                try:
                    page = await self._router.store.ntf_page(
                        client.service.service_id,
                        client.id,
                        epoch,
                        partition,
                        cursor,
                        self._router.config.queues.fold_page,
                    )
                except Unavailable:
                    return  # the next notification of each will find them
                if page.fenced or client.closed or client.epoch != epoch:
                    return
                for ntf_id in page.ntf_ids:
                    self.ready(client.id, epoch, ntf_id)
                cursor = page.cursor


class _Take:
    """Takes one notifier's notifications: what was sent is confirmed by the call that asks for more."""

    __slots__ = ("_client", "_last", "_ntf_id", "_router")

    def __init__(self, router: Router, client: Client, ntf_id: bytes) -> None:
        self._router = router
        self._client = client
        self._ntf_id = ntf_id
        self._last = b""

    def next(self) -> None:
        client = self._client
        service = client.service
        if service is None:
            sub = client.ntf_subs.get(self._ntf_id)
            gen, holder = (None, b"") if sub is None else sub
        else:
            gen, holder = client.epoch, service.service_id
        if gen is None or client.closed:
            self._router.notifications.taken(client, self._ntf_id)
            return
        expire_before = int(time() - self._router.config.queues.notification_ttl)
        self._router.store.take_ntfs(
            self._ntf_id, client.id, gen, holder, service is not None, self._last, expire_before, self._taken
        )

    def _taken(self, taken: TakenNtfs | Unavailable) -> None:
        client = self._client
        if not isinstance(taken, Unavailable):
            self._router.stats.msgNtfExpired += taken.expired
        if client.closed:
            return
        if isinstance(taken, Unavailable):
            # Those that come meanwhile do not tell of themselves: this one is not done until there are none.
            self._router.loop.call_later(_RETRY, self.next)
            return
        items = taken.items
        if not items:
            self._router.notifications.taken(client, self._ntf_id)
            return
        version = client.session.version
        for item in items:
            client.push(b"", self._ntf_id, encode_reply(version, NMSG(item.nonce, item.meta)))
        stats = self._router.stats
        stats.msgNtfs += len(items)
        stats.msgNtfsB += len(items) // _PER_BLOCK + 1
        self._last = items[-1].nonce
        self.next()


class NsubOp(QueueOp):
    __slots__ = ("_gen",)

    auth_stat = "ntfSubAuth"

    def _party(self) -> Party:
        return self.client.router.ntf

    def _key(self, record: QueueRecord) -> bytes | None:
        return record.ntf_key

    def run(self, record: QueueRecord) -> None:
        client = self.client
        router = client.router
        service = client.service
        if service is None:
            gen = router.next_gen()
            if self.t.entity_id in client.ntf_subs:
                router.stats.ntfSubDuplicate += 1
            else:
                router.stats.ntfSub += 1
            client.ntf_subs[self.t.entity_id] = (gen, record.rcv_id)
        elif client.epoch is None:
            client.hold += 1
            router.services.take_over(client, self._taken_over, record)
            return
        else:
            gen = client.epoch
        self._gen = gen
        self._record = record
        router.store.nsub(
            record,
            client.id,
            gen,
            None if service is None else service.service_id,
            self._subscribed,
        )

    def _subscribed(self, result: NsubResult | Unavailable) -> None:
        if result is UNAVAILABLE:
            self.too_late()
            return
        status, pending, assoc = result  # type: ignore[misc]
        client = self.client
        router = client.router
        ntf_id = self.t.entity_id
        if status is Status.OK:
            if client.service is not None or assoc is Assoc.REMOVED:
                router.services.associated(client, ntf_id, assoc, router.stats.ntfServices)
            if not self._late:
                self.answer(client.sok)
            if pending:
                router.notifications.ready(client.id, self._gen, ntf_id)
            return
        if client.service is None and client.ntf_gen(ntf_id) == self._gen:
            del client.ntf_subs[ntf_id]
        if self._late:
            pass
        elif status is Status.STALE:
            self.stale()
        elif status is Status.FENCED:
            router.delivery.lost_service(client)
            self.stale()
        else:
            self.gone()


class NkeyOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        router, command = self.client.router, self.t.command
        assert isinstance(command, NKEY)
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
            return
        keys = generate("x25519")
        secret = dh(command.dh_key, keys.private)
        router.forget(record)
        for _ in range(_TRIES):
            notifier = NewNotifier(router.store.placement.draw(record.partition), command.auth_key, secret)
            try:
                status = (await router.store.set_notifier(record, notifier, self.client.id)).status
            except Unavailable:
                break
            if status is Status.OK:
                router.stats.ntfCreated += 1
                self.answer(encode_reply(self.origin.session.version, NID(notifier.ntf_id, keys.public)))
                return
            if status is not Status.DUPLICATE:
                self.not_ok(status)
                return
        self.fail(Simple.INTERNAL)


class NdelOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        router = self.client.router
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
            return
        try:
            had_notifier = record.ntf_id is not None
            router.forget(record)
            status = (await router.store.delete_notifier(record, self.client.id)).status
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if status is Status.OK:
            router.stats.ntfDeleted += had_notifier
            self.answer(OK)
        else:
            self.not_ok(status)
