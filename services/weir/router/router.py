"""Shared by all sessions of one edge: the store, cached credentials, counters, and the end of a turn of the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from os import urandom
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from weir.router.commands.credentials import AllCredentials
from weir.router.config import RouterConfig
from weir.router.delivery.bodies import Bodies
from weir.router.delivery.delivery import Delivery
from weir.router.delivery.notifications import Notifications
from weir.router.proxy.relays import Relays
from weir.router.session.session import Session
from weir.router.session.subscriptions import PENDING_GAUGES
from weir.router.stats import Stats
from weir.runtime.answers import Answers
from weir.runtime.turns import Turns
from weir.telemetry.errors import log_mistake
from weir.telemetry.tracing import NULL_TRACER, Tracer
from weir.wire.smp.commands import DECLARATIONS

if TYPE_CHECKING:
    from weir.router.delivery.fold import Fold
    from weir.router.session.outgoing import Outgoing
    from weir.router.store.store import Store
    from weir.transport.smp import SmpConnection

_log = logging.getLogger(__name__)

_RANDOM = 24 * 256
_CLIENT_GAUGES = (
    "subscriptions",
    "subscribed_clients",
    "service_subscriptions",
    "service_queues",
    "ntf_subscriptions",
    "ntf_clients",
    "ntf_services",
    "ntf_service_queues",
    "deferred",
    "outgoing_bytes",
)


class Shared:
    """The sessions of one edge, and the things that they share."""

    def __init__(self, config: RouterConfig, store: Store, tracer: Tracer = NULL_TRACER) -> None:
        self.config = config
        self.store = store
        self.relays = Relays(config.proxy)
        self.tracer = tracer
        self.loop = asyncio.get_running_loop()
        self.stats = Stats()
        self.answers = Answers(DECLARATIONS)
        self.turns = Turns(self.loop)
        self.clients: dict[int, Session] = {}  # by the connection's id
        self.folds: set[Fold] = set()
        self._credentials = AllCredentials(store, config.queues.record_cache)
        self.credentials = self._credentials.by_command
        self.forget = self._credentials.forget
        self.bodies = Bodies(store, self._credentials.recipients)
        self.delivery = Delivery(self)
        self.notifications = Notifications(self)
        self.outgoing_bytes = config.transport.outgoing_bytes
        self.message_ttl = int(config.queues.message_ttl)
        self._gen = 0
        self._random = b""
        self._random_at = _RANDOM
        self._unflushed: list[Outgoing] = []
        self._tasks: set[asyncio.Task[None]] = set()
        store.on_event = self.delivery.on_event
        store.on_lost = self.close_clients
        store.on_restored = self.reassert
        store.on_lapsed = self.close_services

    # Sessions.

    def on_session(self, conn: SmpConnection) -> Session:
        session = Session(self, conn)
        traced = self.config.telemetry.trace_sessions
        session.traced = traced == "all" or (traced == "services" and session.service is not None)
        self.clients[session.id] = session
        return session

    def on_closed(self, session: Session) -> None:
        """A client has disconnected: its queues and its service have no owner any more."""
        self.clients.pop(session.id, None)
        if session.outgoing.source is not None:
            session.outgoing.source.stop()
        self.notifications.on_closed(session)
        self.store.withdraw(session.id)
        self.delivery.release(session)

    def close_clients(self) -> None:
        """Close every connection. The leases may be lost, so clients must subscribe again."""
        for session in list(self.clients.values()):
            session.conn.abort()

    def close_services(self) -> None:
        """Close the connections that own a service.

        The leases were gone for a moment, so a service may have lost queues without an END. Only a new SUBS says so:
        SOKS has the true count and idsHash.
        """
        for session in list(self.clients.values()):
            if session.subscriptions.epoch is not None:
                session.conn.abort()

    def reassert(self) -> None:
        """Redis has come back: assert again what every session is subscribed to."""
        self.spawn(self.delivery.reassert())

    # Turns of the loop.

    def flush_later(self, outgoing: Outgoing) -> None:
        """Flush at the end of this turn of the loop, together with the other sessions."""
        if not self._unflushed:
            self.loop.call_soon(self._flush)
        self._unflushed.append(outgoing)

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for outgoing in unflushed:
            share = outgoing.charged_to
            try:
                if share is None:
                    outgoing.flush()
                else:
                    began = perf_counter()
                    outgoing.flush()
                    share.charge(began, perf_counter())
            except Exception as error:
                log_mistake(_log, "answers could not be sent; the connection is closed", error)
                outgoing.abort()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_mistake(_log, "a command failed", error)

    # For commands.

    def next_gen(self) -> int:
        self._gen += 1
        return self._gen

    def random_id(self) -> bytes:
        """Return 24 random bytes. One call of the system draws bytes for 256 ids."""
        at = self._random_at
        if at == _RANDOM:
            self._random = urandom(_RANDOM)
            at = 0
        self._random_at = at + 24
        return self._random[at : at + 24]

    def expire_before(self, now: int) -> int:
        return now - self.message_ttl

    @staticmethod
    def today() -> int:
        return int(time()) // 86400

    def gauges(self) -> dict[str, int]:
        """Return the present state of this edge by name (`EdgeView` in view.py)."""
        gauges = dict.fromkeys((*_CLIENT_GAUGES, *PENDING_GAUGES), 0)
        now = int(time())
        for session in self.clients.values():
            session.count_into(gauges, now)
        gauges["clients"] = len(self.clients)
        gauges["relays"] = len(self.relays)
        gauges["forwards"] = self.relays.forwards
        gauges["folds"] = len(self.folds)
        gauges["fold_ready"] = sum(fold.ready for fold in self.folds)
        gauges["fold_delivered"] = sum(fold.delivered for fold in self.folds)
        gauges["record_cache"] = len(self._credentials)
        return gauges

    async def close(self) -> None:
        """Wait for commands in progress, but no longer than for an answer of Redis."""
        await self.relays.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self.config.redis.command_timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
