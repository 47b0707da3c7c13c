"""Delivery of notifications: collected for a short time, then fetched from the store in batches and pushed as NMSG.

ready(ntf_id) ──► session.subscriptions.notifiers_ready ──tick──► _Fetch per notifier ──► NMSG … until none is left
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from time import time
from typing import TYPE_CHECKING

from weir.redis.errors import Unavailable
from weir.router.delivery.ready import ReadyWalk
from weir.router.store.records import NtfEvent, NtfPage, TakenNtfs
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.replies import NMSG

if TYPE_CHECKING:
    from weir.router.router import Shared
    from weir.router.session.session import Session

_FETCHES = 64  # notifiers of one session that are fetched at the same time
_RETRY = 1.0  # seconds until notifications are fetched again that Redis did not return
_PER_BLOCK = 80


class Notifications:
    """Notifications that wait for sessions of this edge."""

    __slots__ = ("_fetching", "_scheduled", "_shared", "_waiting")

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._waiting: set[Session] = set()
        self._fetching: dict[Session, set[bytes]] = {}  # → notifiers whose notifications are being fetched
        self._scheduled = False

    def ready(self, conn: int, gen: int, ntf_id: bytes) -> None:
        """The store has notifications for this session."""
        session = self._shared.clients.get(conn)
        if session is None:
            return
        subscriptions = session.subscriptions
        if subscriptions.held_events is not None:
            subscriptions.held_events.append(NtfEvent(ntf_id, conn, gen))
            return
        if subscriptions.notifier_gen(ntf_id) != gen:
            return
        subscriptions.notifiers_ready.add(ntf_id)
        self._waiting.add(session)
        if not self._scheduled:
            self._scheduled = True
            self._shared.loop.call_later(self._shared.config.queues.notification_interval, self._tick)

    def on_writable(self, session: Session) -> None:
        """The session's outgoing buffer has room again."""
        if session.subscriptions.notifiers_ready:
            self._fetch(session)

    def on_closed(self, session: Session) -> None:
        """The client has disconnected."""
        self._waiting.discard(session)
        self._fetching.pop(session, None)

    def _tick(self) -> None:
        self._scheduled = False
        waiting, self._waiting = self._waiting, set()
        for session in waiting:
            self._fetch(session)

    def _fetch(self, session: Session) -> None:
        ready = session.subscriptions.notifiers_ready
        while ready and not session.closed and not session.outgoing.full:
            fetching = self._fetching.setdefault(session, set())
            if len(fetching) >= _FETCHES:
                break
            ntf_id = ready.pop()
            if ntf_id not in fetching:  # otherwise the fetch in progress finds the new notifications as well
                fetching.add(ntf_id)
                _Fetch(self._shared, session, ntf_id).next()

    def fetched(self, session: Session, ntf_id: bytes) -> None:
        """All notifications of a notifier are sent."""
        fetching = self._fetching.get(session)
        if fetching is not None:
            fetching.discard(ntf_id)
            if not fetching:
                del self._fetching[session]
        self._fetch(session)

    async def fold(self, session: Session, ready_in: Mapping[int, int]) -> None:
        """NSUBS: deliver the notifications that wait for the service's notifiers like those that come later."""
        subscriptions, shared = session.subscriptions, self._shared
        assert session.service is not None and subscriptions.epoch is not None
        service_id, epoch = session.service.service_id, subscriptions.epoch
        walk = ReadyWalk(ready_in, shared.config.queues.fold_page)

        def fetch(partition: int, cursor: int, size: int) -> Awaitable[NtfPage]:
            return shared.store.services.ntf_page(service_id, session.id, epoch, partition, cursor, size)

        while not walk.ended:
            pages, complete = await walk.step(fetch)
            for page in pages:
                if page.fenced or session.closed or subscriptions.epoch != epoch:
                    return
                for ntf_id in page.ntf_ids:
                    self.ready(session.id, epoch, ntf_id)
            if not complete:
                # Notifications that come meanwhile raise no event, so nothing else would deliver these.
                await asyncio.sleep(_RETRY)
                if session.closed or subscriptions.epoch != epoch:
                    return


class _Fetch:
    """Fetches one notifier's notifications. Each call confirms the notifications that the last call returned."""

    __slots__ = ("_last", "_ntf_id", "_session", "_shared")

    def __init__(self, shared: Shared, session: Session, ntf_id: bytes) -> None:
        self._shared = shared
        self._session = session
        self._ntf_id = ntf_id
        self._last = b""

    def next(self) -> None:
        session, shared = self._session, self._shared
        service, subscriptions = session.service, session.subscriptions
        if service is None:
            sub = subscriptions.notifiers.get(self._ntf_id)
            gen, holder = (None, b"") if sub is None else sub
        else:
            gen, holder = subscriptions.epoch, service.service_id
        if gen is None or session.closed:
            shared.notifications.fetched(session, self._ntf_id)
            return
        expire_before = int(time() - shared.config.queues.notification_ttl)
        shared.store.notifications.take_ntfs(
            self._ntf_id, session.id, gen, holder, service is not None, self._last, expire_before, self._taken
        )

    def _taken(self, taken: TakenNtfs | Unavailable) -> None:
        session, shared = self._session, self._shared
        if not isinstance(taken, Unavailable):
            shared.stats.msgNtfExpired += taken.expired
        if session.closed:
            return
        if isinstance(taken, Unavailable):
            # Notifications that come meanwhile raise no event: this notifier is not done until none is left.
            shared.loop.call_later(_RETRY, self.next)
            return
        items = taken.items
        if not items:
            shared.notifications.fetched(session, self._ntf_id)
            return
        version = session.framing.version
        for item in items:
            session.outgoing.push(b"", self._ntf_id, encode_reply(version, NMSG(item.nonce, item.meta)))
            if shared.tracer.recording:
                shared.tracer.sample_notification("NMSG", item.nonce).end()
        stats = shared.stats
        stats.msgNtfs += len(items)
        if session.use is not None:
            session.use.delivered += len(items)
        stats.msgNtfsB += len(items) // _PER_BLOCK + 1
        self._last = items[-1].nonce
        self.next()
