"""An edge of the NTF router: what NTF brings to the life that all edges share (weir.runtime.edge).

    clients ──► listener ──► sessions ──► store (Redis) ◄── subscriber ◄── SMP servers that this edge owns
                                            │
                                            └──► dispatcher ──► push services

An edge is a process that owns sockets and no state. Killing an edge loses no notification that was received.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from weir.client.dialling import own_name
from weir.crypto.p256 import load_key
from weir.notifier.address import vapid_query
from weir.notifier.config import NotifierConfig
from weir.notifier.notifier import Shared
from weir.notifier.push.dispatcher import Dispatcher
from weir.notifier.push.providers import providers
from weir.notifier.rollups import NtfSource
from weir.notifier.session.outgoing import LIMITS
from weir.notifier.session.session import Session
from weir.notifier.statistics import StatisticsFile
from weir.notifier.stats import Stats
from weir.notifier.store.store import Store, StoreConfig
from weir.notifier.subscriber.settings import Limits
from weir.notifier.subscriber.subscriber import TASK, Subscriber
from weir.notifier.surface.control import start_control
from weir.notifier.surface.http import site
from weir.notifier.surface.view import NtfFleet
from weir.redis.durability import Mode
from weir.redis.errors import Unavailable
from weir.redis.settings import read_key
from weir.runtime import edge as runtime
from weir.runtime import tasks
from weir.runtime.broadcast import Task
from weir.runtime.configured import edge_config
from weir.runtime.counters import increase
from weir.runtime.process import raise_descriptor_limit, run_until_stopped
from weir.runtime.rollups import Rollups
from weir.surface.edge import Endpoints
from weir.telemetry.setup import open_tracing
from weir.transport.identity import ServerIdentity
from weir.transport.ntf import NTF, NtfConnection
from weir.transport.server import bind_shared
from weir.wire.address import DEFAULT_NTF_PORT, SmpAddress

_OWN_CONNECTIONS = 2000  # to SMP servers and push services
_SWEEP_INTERVAL = 1.0


class Edge(runtime.Edge[NtfConnection, Session]):
    """Made by `Edge.start`."""

    def __init__(self, config: NotifierConfig, store: Store, identity: ServerIdentity) -> None:
        inactive = config.inactive_clients
        super().__init__(
            edge_config(config.transport, config.drain, inactive, connections=_OWN_CONNECTIONS, limits=LIMITS),
            store.edge.decode(),
            NTF,
            identity,
        )
        self.config = config
        self.store = store
        telemetry = config.telemetry
        ratio = 1.0 if telemetry.trace_sessions == "all" else telemetry.sample_ratio
        self._tracer = open_tracing(telemetry.traces, ratio=ratio, instance=self.edge_id)
        self.stats = Stats()
        made = providers(config)
        self.dispatcher = Dispatcher(
            store, made, self.stats, config.push, tracer=self._tracer, own_name=partial(own_name, config.subscriber)
        )
        self.router = Shared(config, store, self.stats, made, self.dispatcher, self._tracer)
        self.subscriber = Subscriber(
            store,
            self.dispatcher,
            config.subscriber,
            tracer=self._tracer,
            limits=Limits(
                connect_timeout=config.subscriber.connect_timeout, reply_timeout=config.subscriber.request_timeout
            ),
            on_active=self.router.active.notifiers.add,
        )
        self.router.on_unowned = lambda _server_id: self.subscriber.announce()
        self._sweep_cursor = 0
        self._endpoints = Endpoints()
        self._saved: dict[str, int] = {}  # what the store was given of `counted`
        self._rollups: Rollups | None = None

    @classmethod
    async def start(cls, config: NotifierConfig, *, socks: list[socket.socket] | None = None) -> Edge:
        """Open everything. Raises StoreError, Unavailable, UnusableFile or OSError with a message of one line."""
        identity = NTF.identity(config.transport.identity)
        store = await Store.open(_store_config(config))
        try:
            edge = cls(config, store, identity)
        except BaseException:
            await store.close()
            raise
        try:
            await edge.open(socks)
        except BaseException:
            await edge.close()
            raise
        return edge

    # For the runtime (weir.runtime.edge).

    def on_session(self, connection: NtfConnection) -> Session:
        return self.router.on_session(connection)

    def sessions(self) -> Collection[Session]:
        return self.router.clients.values()

    def program_gauges(self) -> dict[str, int]:
        return {**self.router.gauges(), **self.dispatcher.gauges(), **self.subscriber.numbers()}

    def may_serve(self) -> bool:
        return self.store.leases.held

    async def start_program(self) -> None:
        config = self.config
        await self._endpoints.open(self, site, config.http, config.control, start_control, bind_shared)
        source = NtfSource(self, self.store, self.router, self.stats, self.dispatcher, self.subscriber)
        self._rollups = Rollups(config.rollups, self.edge_id, self.store.rollups, source)
        self._rollups.start(self.background)
        self.background.every("the sweeper", _SWEEP_INTERVAL, self._sweep)
        self.store.broadcast.work = self._work
        self.store.on_event = self.subscriber.on_event
        self.store.on_restored = self.subscriber.announce  # while this edge seemed dead, others may have taken servers
        await self.dispatcher.start()
        await self.save()  # the fleet's other edges count this one from now on
        await self.subscriber.start()
        if config.statistics.path is not None:
            numbers = NtfFleet(self, for_everybody=False).numbers
            statistics = StatisticsFile(config.statistics.path, config.statistics, numbers)
            self.background.run("the statistics file", statistics.run)

    async def _sweep(self) -> None:
        """Remove what interrupted commands and crashed edges have left, one slice at a time, on one edge at a time."""
        swept = await self.store.sweeper.sweep_slice(self._sweep_cursor)
        if swept is not None:
            self._sweep_cursor = swept.cursor

    async def _work(self, task: Task) -> Any:
        if task["do"] == TASK:
            return await self.subscriber.on_task(task)
        return await tasks.work(self, task)

    async def drain(self) -> None:
        """Hand the SMP servers over to other edges at once, and disconnect the clients meanwhile."""
        await asyncio.gather(self.subscriber.drain(), super().drain())

    async def finish_work(self) -> None:
        await self.router.close()
        await self.subscriber.close()
        await self.dispatcher.close()

    async def close_program(self) -> None:
        if self._rollups is not None:
            await self._rollups.close()
        await self._endpoints.close()
        await self.store.close()
        self._tracer.close()

    async def save_counters(self) -> None:
        counted = self.counted()
        increased, self._saved = increase(self._saved, counted), counted
        router, stats = self.router, self.store.stats
        tokens, notifiers = router.active.take()
        try:
            await stats.add_stats(increased)
            await stats.add_active(tokens, notifiers)
            await stats.publish_edge(self.gauges())
        except Unavailable:
            # The next steps would fail as well: an edge that stops must not wait for each of them.
            router.active.give_back(tokens, notifiers)
            raise

    # For the page, the metrics and the control port.

    @property
    def http_port(self) -> int | None:
        return self._endpoints.http_port

    @property
    def address(self) -> str:
        """`ntf://…` as clients use it, with the public key that signs for push services."""
        transport = self.config.transport
        hosts = transport.hosts or ("localhost",)
        port = transport.public_port or (self.ports[0] if self.ports else transport.ports[0])
        shown = None if port == DEFAULT_NTF_PORT else port
        address = SmpAddress(self.identity.fingerprint, hosts, shown, scheme="ntf")
        key = self.config.web_push.vapid_key
        return f"{address}{'' if key is None else vapid_query(load_key(key))}"

    def counted(self) -> dict[str, int]:
        """Events of this process since its start, by the reference's names."""
        ended = {f"connections_{reason}": count for reason, count in self.ended_connections().items() if count}
        return self.stats.totals() | self.subscriber.stats.totals() | ended


def _store_config(config: NotifierConfig) -> StoreConfig:
    redis = config.redis
    return StoreConfig(
        url=redis.url,
        prefix=redis.prefix,
        password=redis.password,
        password_file=redis.password_file,
        placement_key=read_key(redis.placement_key, "a placement key"),
        storage_key=read_key(redis.storage_key, "a storage key"),
        durability=Mode(redis.durability),
        replicas=redis.replicas,
        replication_limit=redis.replica_timeout,
        deadline=redis.command_timeout,
        connect_timeout=redis.connect_timeout,
        lease=redis.lease,
        lease_refresh=redis.lease * 0.25,
    )


async def run_edge(
    config: NotifierConfig,
    *,
    on_ready: Callable[[Edge], None] | None = None,
    on_suspended: Callable[[], None] | None = None,
) -> int:
    """Run an edge until SIGTERM or SIGINT, then drain it. Return the exit code."""
    raise_descriptor_limit()
    return await run_until_stopped(Edge.start(config), on_ready, on_suspended)


async def check_stored(config: NotifierConfig) -> int:
    """Maintenance: open everything as an edge does, serve nobody, and close. Raises what `Edge.start` raises."""
    NTF.identity(config.transport.identity)
    providers(config)
    store = await Store.open(_store_config(config), edge=False)
    try:
        await store.stats.counts()
    except Unavailable as error:
        raise Unavailable("Redis does not answer") from error
    finally:
        await store.close()
    return 0
