"""Events reach sessions here: messages, the ends of subscriptions, and what follows a disconnect or an outage of Redis.

A subscription has at most one message that is not acknowledged. The in-flight mark in the store decides which message
and for which session. This module decides only whether the session still has the subscription: every event names the
generation that it is for.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import time
from typing import TYPE_CHECKING

from weir.redis.errors import Unavailable
from weir.router.commands.handler import encode_error
from weir.router.delivery.ownership import lose_service, reassert_service
from weir.router.store.records import (
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
)
from weir.runtime.state.calls import awaited
from weir.wire.errors import Blocked
from weir.wire.versions import DELETED_EVENT

if TYPE_CHECKING:
    from weir.router.router import Shared
    from weir.router.session.session import Session

_END, _DELD = b"END", b"DELD"
_SLICE = 64  # subscriptions that one call releases or asserts again
_RELEASE_TRIES = 10
_RETRY = 1.0


class Delivery:
    __slots__ = ("_ending", "_reassert_again", "_reasserting", "_shared")

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._ending: set[Session] = set()  # sessions that got END in this turn
        self._reasserting = False
        self._reassert_again = False

    # Messages.

    def deliver(self, owner: Owner, rcv_id: bytes, entry: Entry, body: bytes | None) -> None:
        """The store has marked this message as in flight to a session of this edge: send it. None: fetch the body."""
        session = self._shared.clients.get(owner.conn)
        if session is None:
            return
        subscriptions = session.subscriptions
        if subscriptions.held_events is not None:
            subscriptions.held_events.append(MsgEvent(rcv_id, entry, owner.conn, owner.gen))
            return
        sub = subscriptions.owned_sub(rcv_id, owner.gen)
        if sub is None or not sub.give(entry.msg_id):
            return
        if body is None:
            session.outgoing.message(rcv_id, sub, entry)
        else:
            session.outgoing.message_with_body(rcv_id, sub, entry, body)

    # Events of other sessions and edges.

    def on_event(self, event: Event) -> None:
        """Take an event from the store."""
        kind = type(event)
        if kind is MsgEvent:
            self.deliver(Owner(event.conn, event.gen), event.rcv_id, event.entry, None)  # type: ignore[union-attr]
            return
        session = self._shared.clients.get(event.conn)
        if session is None:
            return
        subscriptions = session.subscriptions
        if subscriptions.held_events is not None:
            subscriptions.held_events.append(event)
        elif kind is NtfEvent:
            self._shared.notifications.ready(event.conn, event.gen, event.ntf_id)  # type: ignore[union-attr]
        elif isinstance(event, (EndEvent, MovedEvent, DeldEvent)):
            self._end(session, event)
        elif isinstance(event, EndsEvent):
            lose_service(session, event.gen)
        elif isinstance(event, BlockedEvent) and subscriptions.owns(event.rcv_id, event.gen):
            session.outgoing.event(event.rcv_id, encode_error(session.framing.version, Blocked(event.info)))

    def _end(self, session: Session, event: EndEvent | MovedEvent | DeldEvent) -> None:
        """Another session owns the queue now, or the queue left the service, or it was deleted."""
        entity_id = event.entity_id
        if not session.subscriptions.owns(entity_id, event.gen):
            return
        session.subscriptions.remove(entity_id)
        session.outgoing.forget(entity_id)
        self._count_end(session)
        deleted = isinstance(event, DeldEvent) and session.framing.version >= DELETED_EVENT
        session.outgoing.event(entity_id, _DELD if deleted else _END)

    def _count_end(self, session: Session) -> None:
        """Count an END. The ENDs of one turn leave in one batch."""
        stats = self._shared.stats
        stats.qSubEnd += 1
        if session not in self._ending:
            if not self._ending:
                self._shared.loop.call_soon(self._ending.clear)
            self._ending.add(session)
            stats.qSubEndB += 1

    # Disconnection, and Redis coming back.

    def release(self, session: Session) -> None:
        """The client has disconnected: its queues and its service have no owner any more."""
        subs = session.subscriptions
        rcv_ids = [] if session.service is not None else [i for i, sub in subs.queues.items() if not sub.prohibit]
        ntf_rcv_ids = [rcv_id for _, rcv_id in subs.notifiers.values()]
        if rcv_ids or ntf_rcv_ids or subs.epoch is not None:
            self._shared.spawn(self._release(session, rcv_ids, ntf_rcv_ids))

    async def _release(self, session: Session, rcv_ids: list[bytes], ntf_rcv_ids: list[bytes]) -> None:
        """Release in slices: when a client with 100,000 queues leaves, others must not notice."""
        store, epoch = self._shared.store, session.subscriptions.epoch
        for _ in range(_RELEASE_TRIES):
            try:
                if session.service is not None and epoch is not None:
                    await store.services.release_service(session.service.service_id, session.id, epoch)
                for at in range(0, max(len(rcv_ids), len(ntf_rcv_ids)), _SLICE):
                    part = rcv_ids[at : at + _SLICE], ntf_rcv_ids[at : at + _SLICE]
                    await awaited(partial(store.subscriptions.release, *part, session.id))
                return
            except Unavailable:
                await asyncio.sleep(_RETRY)

    async def reassert(self) -> None:
        """Redis was away: assert again what every session owns. Missed messages and ends come as events."""
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
            self._shared.loop.call_later(_RETRY, self._retry_reassert)
        finally:
            self._reasserting = False

    def _retry_reassert(self) -> None:
        """Redis is connected, but too slow or refuses the calls: try again. If it is away, its return starts this."""
        if self._shared.store.connected:
            self._shared.reassert()

    async def _reassert(self) -> None:
        shared = self._shared
        store = shared.store
        for session in list(shared.clients.values()):
            if session.service is not None:
                await reassert_service(session)
                continue
            queues, notifiers = session.subscriptions.queues, session.subscriptions.notifiers
            subs = [
                Held(rcv_id, session.id, sub.gen, sub.msg_id or b"")
                for rcv_id, sub in queues.items()
                # A SUB or NSUB without an answer may not have been executed: END would tell its client that another one
                # has taken the queue.
                if sub.answered
            ]
            for at in range(0, len(subs), _SLICE):
                await store.subscriptions.reassert(subs[at : at + _SLICE], shared.expire_before(int(time())))
            ntfs = [
                HeldNtf(rcv_id, ntf_id, session.id, gen)
                for ntf_id, (gen, rcv_id) in notifiers.items()
                if session.subscriptions.answered(ntf_id)
            ]
            for at in range(0, len(ntfs), _SLICE):
                await store.notifications.reassert_ntfs(ntfs[at : at + _SLICE])
