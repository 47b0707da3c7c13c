"""What all connections of one edge share: the store, credentials, counters, and the turn of the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from os import urandom
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from weir.router.config import RouterConfig
from weir.router.connection import Client
from weir.router.delivery import Delivery
from weir.router.notifications import Notifications
from weir.router.op import Party
from weir.router.relays import Relays
from weir.router.scheduler import Scheduler
from weir.router.services import Services
from weir.router.stats import Stats
from weir.router.subscriptions import PENDING_GAUGES
from weir.store.records import QueueRecord

if TYPE_CHECKING:
    from weir.router.outgoing import Outgoing
    from weir.store.store import Store
    from weir.telemetry.tracing import Tracer
    from weir.transport.connection import Connection

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


class Router:
    """One edge's clients and what they share."""

    def __init__(self, config: RouterConfig, store: Store, tracer: Tracer | None = None) -> None:
        self.config = config
        self.store = store
        self.relays = Relays(config.proxy)
        self.services = Services(self)
        self.tracer = tracer
        self.loop = asyncio.get_running_loop()
        self.stats = Stats()
        self.scheduler = Scheduler(self.loop)
        self.clients: dict[int, Client] = {}
        limit = config.queues.record_cache
        self.rcv = Party(store.fetch_rcv, limit)
        self.snd = Party(store.fetch_snd, limit)
        self.ntf = Party(store.fetch_ntf, limit)
        self.link = Party(store.fetch_link, 0)
        self.delivery = Delivery(self)
        self.notifications = Notifications(self)
        self.outgoing_bytes = config.transport.outgoing_bytes
        self.message_ttl = int(config.queues.message_ttl)
        self._gen = 0
        self._random = b""
        self._random_at = _RANDOM
        self._marked: list[Outgoing] = []
        self._tasks: set[asyncio.Task[None]] = set()
        store.on_event = self.delivery.on_event
        store.on_lost = self.close_clients
        store.on_restored = self.reassert

    # The transport's side.

    def on_session(self, conn: Connection) -> Client:
        client = Client(self, conn)
        traced = self.config.telemetry.trace_sessions
        client.trace = traced == "all" or (traced == "services" and client.service is not None)
        self.clients[client.id] = client
        return client

    def gone(self, client: Client) -> None:
        """A client has disconnected: its queues and its service have no owner any more."""
        self.clients.pop(client.id, None)
        if client.fold is not None:
            client.fold.stop()
        self.notifications.gone(client)
        self.store.withdraw(client.id)
        self.delivery.release(client)

    def close_clients(self) -> None:
        """The leases must be assumed lost: others may own these clients' queues, so they have to subscribe again."""
        for client in list(self.clients.values()):
            client.conn.abort()

    def reassert(self) -> None:
        """Redis has come back: say again what every connection is subscribed to."""
        self.spawn(self.delivery.reassert())

    # The turn of the loop.

    def mark(self, out: Outgoing) -> None:
        """`out` has something to send at the end of this turn."""
        if not self._marked:
            self.loop.call_soon(self._flush)
        self._marked.append(out)

    def _flush(self) -> None:
        marked, self._marked = self._marked, []
        for out in marked:
            if out.client.blocks or out.client.batch is not None:
                began = perf_counter()
                out.flush()
                self.scheduler.worked(out.client, began, perf_counter())
            else:
                out.flush()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a command failed", exc_info=task.exception())

    # Small things every command needs.

    def next_gen(self) -> int:
        self._gen += 1
        return self._gen

    def random_id(self) -> bytes:
        """24 random bytes, drawn from the system 256 at a time."""
        at = self._random_at
        if at == _RANDOM:
            self._random = urandom(_RANDOM)
            at = 0
        self._random_at = at + 24
        return self._random[at : at + 24]

    def expire_before(self, now: int) -> int:
        return now - self.message_ttl

    def forget(self, record: QueueRecord) -> None:
        """A command of this edge changed or deleted the queue."""
        self.rcv.cache.drop(record.rcv_id)
        self.snd.cache.drop(record.snd_id)
        if record.ntf_id is not None:
            self.ntf.cache.drop(record.ntf_id)

    @staticmethod
    def today() -> int:
        return int(time()) // 86400

    def gauges(self) -> dict[str, int]:
        """This edge now, by name; see view.EdgeView."""
        gauges = dict.fromkeys((*_CLIENT_GAUGES, *PENDING_GAUGES), 0)
        now = int(time())
        for client in self.clients.values():
            client.count_into(gauges, now)
        gauges["clients"] = len(self.clients)
        gauges["relays"] = len(self.relays)
        gauges["forwards"] = self.relays.forwards
        gauges["folds"] = len(self.services.folds)
        gauges["fold_ready"] = sum(fold.ready for fold in self.services.folds)
        gauges["fold_delivered"] = sum(fold.delivered for fold in self.services.folds)
        gauges["record_cache"] = len(self.rcv.cache) + len(self.snd.cache) + len(self.ntf.cache)
        return gauges

    async def close(self) -> None:
        """Wait for what is under way, but not for a Redis that is gone."""
        await self.relays.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self.config.redis.command_timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
