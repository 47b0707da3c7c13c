"""Messages to their owners: from a SEND on this edge, from the inbox, and past messages that have vanished.

A subscription has at most one message it has not acknowledged; the store's in-flight mark says which, and for whom.
What is decided here is only whether the connection still has that subscription: events name its generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import time
from typing import TYPE_CHECKING

from weir.router.op import encode_error
from weir.router.subscriptions import Sub
from weir.store.core import awaited
from weir.store.records import (
    UNAVAILABLE,
    AckResult,
    BlockedEvent,
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    Event,
    Held,
    HeldNtf,
    MovedEvent,
    MsgEvent,
    NtfEvent,
    Owner,
    QueueRecord,
    Status,
    Unavailable,
)
from weir.wire.commands import ServiceRole
from weir.wire.errors import Blocked
from weir.wire.message import encrypt_quota
from weir.wire.replies import ENDS
from weir.wire.smp import encode_reply
from weir.wire.versions import DELETED_EVENT

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.router import Router

Body = Callable[[bytes | Unavailable | None], None]

_END, _DELD = b"END", b"DELD"
_SLICE = 64  # subscriptions let go of, or asserted again, in one call
_RELEASE_TRIES = 10
_RETRY = 1.0


class Delivery:
    __slots__ = ("_ending", "_reassert_again", "_reasserting", "_router")

    def __init__(self, router: Router) -> None:
        self._router = router
        self._ending: set[Client] = set()  # clients that were told END in this turn
        self._reasserting = False
        self._reassert_again = False

    # Messages.

    def given(self, owner: Owner, rcv_id: bytes, entry: Entry, body: bytes | None) -> None:
        """The store has marked this message as in flight to a connection of this edge."""
        client = self._router.clients.get(owner.conn)
        if client is None:
            return
        if client.early is not None:
            client.early.append(MsgEvent(rcv_id, entry, owner.conn, owner.gen))
            return
        sub = client.subs.get(rcv_id)
        if client.service is None:
            if sub is None or sub.gen != owner.gen:
                return
        elif client.epoch != owner.gen:
            return
        elif sub is None:
            sub = client.subs[rcv_id] = Sub(owner.gen)
        if not sub.give(entry.msg_id):
            return
        if body is None:
            client.out.message(rcv_id, sub, entry)
        else:
            client.out.body(rcv_id, sub, entry, body)

    def body(self, rcv_id: bytes, entry: Entry, done: Body) -> None:
        """The body of a message; a quota marker's is made when it is needed."""
        if entry.quota:
            _Quota(self._router, entry, done).begin(rcv_id)
        else:
            self._router.store.body(rcv_id, entry.msg_id, done)

    def skip(self, client: Client, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """A message without a body has expired, or a GET client has acknowledged it: on to the next one."""
        _Skip(self._router, client, rcv_id, sub, entry).begin()

    # Events of other connections and edges.

    def on_event(self, event: Event) -> None:
        kind = type(event)
        if kind is MsgEvent:
            self.given(Owner(event.conn, event.gen), event.rcv_id, event.entry, None)  # type: ignore[union-attr]
            return
        client = self._router.clients.get(event.conn)
        if client is None:
            return
        if client.early is not None:
            client.early.append(event)
        elif kind is NtfEvent:
            self._router.notifications.ready(event.conn, event.gen, event.ntf_id)  # type: ignore[union-attr]
        elif isinstance(event, (EndEvent, MovedEvent, DeldEvent)):
            self._end(client, event)
        elif isinstance(event, EndsEvent):
            self._ends(client, event)
        elif isinstance(event, BlockedEvent) and self._is_current(client, event.rcv_id, event.gen):
            client.out.event(event.rcv_id, encode_error(client.session.version, Blocked(event.info)))

    def _is_current(self, client: Client, entity_id: bytes, gen: int) -> bool:
        if client.service is not None:
            return client.epoch == gen
        sub = client.subs.get(entity_id)
        return (sub is not None and sub.gen == gen) or client.ntf_gen(entity_id) == gen

    def _end(self, client: Client, event: EndEvent | MovedEvent | DeldEvent) -> None:
        """Another connection has the queue now, or it was taken out of the service, or deleted."""
        entity_id = event.entity_id
        if not self._is_current(client, entity_id, event.gen):
            return
        client.subs.pop(entity_id, None)
        client.out.forget(entity_id)
        client.ntf_subs.pop(entity_id, None)
        client.ntf_waiting.discard(entity_id)
        if client.service is not None:
            client.totals.subtract(entity_id)
        deleted = isinstance(event, DeldEvent)
        self._count_end(client)
        client.out.event(entity_id, _DELD if deleted and client.session.version >= DELETED_EVENT else _END)

    def _count_end(self, client: Client) -> None:
        """ENDs of one turn leave in one batch."""
        stats = self._router.stats
        stats.qSubEnd += 1
        if client not in self._ending:
            if not self._ending:
                self._router.loop.call_soon(self._ending.clear)
            self._ending.add(client)
            stats.qSubEndB += 1

    def _ends(self, client: Client, event: EndsEvent) -> None:
        if client.epoch == event.gen:
            self.lost_service(client)

    def lost_service(self, client: Client) -> None:
        """Another connection has the service now; what this one was told of it is over."""
        assert client.service is not None
        client.end_service()
        count, ids_hash = client.totals.take()
        stats = self._router.stats
        (stats.rcvServices if client.service.role is ServiceRole.MESSAGING else stats.ntfServices).srvSubEnd += 1
        client.out.event(client.service.service_id, encode_reply(client.session.version, ENDS(count, ids_hash)))

    # Disconnection, and Redis coming back.

    def release(self, client: Client) -> None:
        rcv_ids = [] if client.service is not None else [i for i, sub in client.subs.items() if not sub.prohibit]
        ntf_rcv_ids = [rcv_id for _, rcv_id in client.ntf_subs.values()]
        if rcv_ids or ntf_rcv_ids or client.epoch is not None:
            self._router.spawn(self._release(client, rcv_ids, ntf_rcv_ids))

    async def _release(self, client: Client, rcv_ids: list[bytes], ntf_rcv_ids: list[bytes]) -> None:
        """In slices: a client with 100,000 queues that leaves must not be felt by the others."""
        store = self._router.store
        for _ in range(_RELEASE_TRIES):
            try:
                if client.service is not None and client.epoch is not None:
                    await store.release_service(client.service.service_id, client.id, client.epoch)
                for at in range(0, max(len(rcv_ids), len(ntf_rcv_ids)), _SLICE):
                    await self._release_slice(client, rcv_ids[at : at + _SLICE], ntf_rcv_ids[at : at + _SLICE])
                return
            except Unavailable:
                await asyncio.sleep(_RETRY)

    async def _release_slice(self, client: Client, rcv_ids: list[bytes], ntf_rcv_ids: list[bytes]) -> None:
        await awaited(partial(self._router.store.release, rcv_ids, ntf_rcv_ids, client.id))

    async def reassert(self) -> None:
        """Redis was away: say again what every connection has. What was missed comes as events."""
        if self._reasserting:
            self._reassert_again = True
            return
        self._reasserting = True
        try:
            self._reassert_again = True
            while self._reassert_again:
                self._reassert_again = False
                await self._reassert()
        except Unavailable:
            pass  # it is away again: the next time it comes back brings us here
        finally:
            self._reasserting = False

    async def _reassert(self) -> None:
        router = self._router
        store = router.store
        for client in list(router.clients.values()):
            if client.service is not None:
                await router.services.reassert(client)
                continue
            subs = [
                Held(rcv_id, client.id, sub.gen, sub.msg_id or b"")
                for rcv_id, sub in client.subs.items()
                if not sub.prohibit
            ]
            for at in range(0, len(subs), _SLICE):
                await store.reassert(subs[at : at + _SLICE], router.expire_before(int(time())))
            ntfs = [HeldNtf(rcv_id, ntf_id, client.id, gen) for ntf_id, (gen, rcv_id) in client.ntf_subs.items()]
            for at in range(0, len(ntfs), _SLICE):
                await store.reassert_ntfs(ntfs[at : at + _SLICE])


class _Quota:
    """The quota message: encrypted with the queue's secret, which is in its record."""

    __slots__ = ("_done", "_entry", "_router")

    def __init__(self, router: Router, entry: Entry, done: Body) -> None:
        self._router = router
        self._entry = entry
        self._done = done

    def begin(self, rcv_id: bytes) -> None:
        record = self._router.rcv.cache.get(rcv_id)
        if record is None:
            self._router.store.fetch_rcv(rcv_id, self._fetched)
        else:
            self._fetched(record)

    def _fetched(self, record: QueueRecord | Unavailable | None) -> None:
        if isinstance(record, QueueRecord):
            self._done(encrypt_quota(record.dh_secret, self._entry.msg_id, self._entry.ts))
        else:
            self._done(record)


class _Skip:
    """Acknowledges, for the client, a message that is not there any more, and gives it the next one."""

    __slots__ = ("_client", "_entry", "_rcv_id", "_router", "_sub")

    def __init__(self, router: Router, client: Client, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        self._router = router
        self._client = client
        self._rcv_id = rcv_id
        self._sub = sub
        self._entry = entry

    def begin(self) -> None:
        self._router.store.fetch_rcv(self._rcv_id, self._fetched)

    def _fetched(self, record: QueueRecord | Unavailable | None) -> None:
        if isinstance(record, QueueRecord):
            now = int(time())
            self._router.store.ack(
                record,
                self._client.id,
                self._sub.gen,
                self._entry.msg_id,
                self._router.expire_before(now),
                now // 86400,
                self._acked,
            )
        elif record is UNAVAILABLE:
            self._router.loop.call_later(_RETRY, self._again)

    def _again(self) -> None:
        """The client would wait for ever: for the store its message is in flight."""
        if self._is_current():
            self.begin()

    def _is_current(self) -> bool:
        client, sub = self._client, self._sub
        return not client.closed and client.subs.get(self._rcv_id) is sub and sub.msg_id == self._entry.msg_id

    def _acked(self, result: AckResult | Unavailable) -> None:
        client, sub = self._client, self._sub
        if result is UNAVAILABLE:
            self._router.loop.call_later(_RETRY, self._again)
            return
        if not self._is_current():
            return
        assert isinstance(result, AckResult)
        if result.status is Status.STALE:
            self.begin()
        elif result.status is Status.OK:
            sub.clear()
            if result.next is not None and sub.give(result.next.msg_id):
                client.out.message(self._rcv_id, sub, result.next)
