"""An edge of the SMP router: what SMP brings to the life that all edges share (weir.runtime.edge).

An edge is a process that owns sockets and no state. Killing an edge loses nothing that was answered OK.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator
from functools import partial
from time import monotonic, time

from weir.redis.durability import Mode
from weir.redis.errors import Unavailable
from weir.redis.settings import read_key
from weir.router.config import RouterConfig
from weir.router.expiry import Sweeper
from weir.router.rollups import SmpSource
from weir.router.router import Shared
from weir.router.session.session import Session
from weir.router.store.records import ServiceError
from weir.router.store.store import Store, StoreConfig
from weir.router.surface.control import start_control
from weir.router.surface.http import site
from weir.router.surface.tasks import work
from weir.router.surface.view import ClientInfo
from weir.runtime import edge as runtime
from weir.runtime.configured import edge_config
from weir.runtime.counters import increase
from weir.runtime.process import raise_descriptor_limit, run_until_stopped
from weir.runtime.rate import SAMPLE_INTERVAL, Rate
from weir.runtime.rollups import Rollups
from weir.surface.edge import Endpoints
from weir.telemetry.setup import open_tracing
from weir.transport.identity import ServerIdentity
from weir.transport.server import TransportConfig, bind_shared
from weir.transport.smp import SMP, ServiceOffer, SmpConnection
from weir.wire.address import SmpAddress
from weir.wire.errors import HandshakeError


class Edge(runtime.Edge[SmpConnection, Session]):
    """Made by `Edge.start`."""

    def __init__(self, config: RouterConfig, store: Store, identity: ServerIdentity) -> None:
        super().__init__(_edge_config(config), store.edge.decode(), SMP, identity)
        self.config = config
        self.store = store
        telemetry = config.telemetry
        ratio = 1.0 if telemetry.trace_sessions == "all" else telemetry.sample_ratio
        self._tracer = open_tracing(telemetry.traces, ratio=ratio, instance=self.edge_id)
        self.router = Shared(config, store, self._tracer)
        self._endpoints = Endpoints()
        self._saved: dict[str, int] = {}  # the part of `counted` that the store has
        self._sent = Rate()
        self._rollups: Rollups | None = None

    @classmethod
    async def start(cls, config: RouterConfig, *, socks: list[socket.socket] | None = None) -> Edge:
        """Open everything. Raises StoreError, Unavailable, UnusableFile or OSError with a message of one line."""
        identity = SMP.identity(config.transport.identity)
        store = await Store.open(_store_config(config))
        edge = cls(config, store, identity)
        try:
            await edge.open(socks)
        except BaseException:
            await edge.close()
            raise
        return edge

    # For the runtime (weir.runtime.edge).

    def on_session(self, connection: SmpConnection) -> Session:
        return self.router.on_session(connection)

    async def answer(self, question: ServiceOffer) -> bytes | HandshakeError:
        """Return the ServiceId of a certificate. A new certificate gets one; one with another role is refused."""
        registry, new_id, today = self.store.registry, self.router.random_id(), self.router.today()
        try:
            found = await registry.ensure_service(question.fingerprint, question.role, new_id, day=today)
        except Unavailable:
            return HandshakeError.BAD_SERVICE
        return HandshakeError.BAD_SERVICE if isinstance(found, ServiceError) else found

    def sessions(self) -> Collection[Session]:
        return self.router.clients.values()

    def program_gauges(self) -> dict[str, int]:
        gauges = self.router.gauges()
        gauges["sent_per_1000s"] = round(self._sent.per_second() * 1000)
        return gauges

    def may_serve(self) -> bool:
        return self.store.leases.held

    async def start_program(self) -> None:
        config = self.config
        await self._endpoints.open(self, site, config.http, config.control, start_control, bind_shared)
        self.store.broadcast.work = partial(work, self)
        self._rollups = Rollups(
            config.rollups, self.edge_id, self.store.rollups, SmpSource(self, self.store, self.router)
        )
        self._rollups.start(self.background)
        self.background.every("the sample for rates", SAMPLE_INTERVAL, self._sample, at_once=True)
        self.background.every("the sweeper", config.queues.sweep_interval, Sweeper(self.router).sweep)

    async def _sample(self) -> None:
        self._sent.sample(monotonic(), self.router.stats.msgSent)

    async def finish_work(self) -> None:
        await self.router.close()

    async def close_program(self) -> None:
        if self._rollups is not None:
            await self._rollups.close()
        await self._endpoints.close()
        await self.store.close()
        self._tracer.close()

    async def save_counters(self) -> None:
        stats = self.router.stats
        counted = self.counted()
        increased, self._saved = increase(self._saved, counted), counted
        queues, stats.active_queues = stats.active_queues, set()
        queues_ntf, stats.active_queues_ntf = stats.active_queues_ntf, set()
        try:
            await self.store.stats.add_stats(increased)
            await self.store.stats.add_active(queues, queues_ntf)
            await self.store.stats.publish_edge(self.gauges())
        except Unavailable:
            # The next steps would fail as well: an edge that stops must not wait for each of them.
            stats.active_queues |= queues
            stats.active_queues_ntf |= queues_ntf
            raise

    # For the page, the metrics and the control port.

    @property
    def http_port(self) -> int | None:
        return self._endpoints.http_port

    @property
    def address(self) -> str:
        """`smp://…` as clients use it."""
        transport = self.config.transport
        hosts = transport.hosts or ("localhost",)
        port = transport.public_port or (self.ports[0] if self.ports else transport.ports[0])
        shown = None if port == 5223 else port
        return str(SmpAddress(self.identity.fingerprint, hosts, shown))

    def counted(self) -> dict[str, int]:
        """Events of this process since its start, by the reference's names."""
        ended = {f"connections_{reason}": count for reason, count in self.ended_connections().items() if count}
        return self.router.stats.totals() | ended

    def clients(self) -> Iterator[ClientInfo]:
        offset = time() - monotonic()
        for client in list(self.router.clients.values()):
            conn = client.conn
            yield ClientInfo(
                client.id,
                client.framing.version,
                conn.created + offset,
                conn.rcv_active + offset,
                conn.snd_active + offset,
                len(client.subscriptions.queues),
                len(client.subscriptions.notifiers),
                client.outgoing.pending_bytes,
                client.service is not None,
            )

    def trace_session(self, client: int, on: bool) -> bool:
        """Trace every command of one client. Return False if there is no such client."""
        found = self.router.clients.get(client)
        if found is None:
            return False
        found.traced = on
        return True


def _edge_config(config: RouterConfig) -> runtime.EdgeConfig:
    transport = config.transport
    return edge_config(
        transport,
        config.drain,
        config.inactive_clients,
        connections=config.proxy.relay_limit,
        limits=TransportConfig(
            outgoing_bytes=transport.outgoing_bytes, outgoing_low_bytes=transport.outgoing_low_bytes
        ),
    )


def _store_config(config: RouterConfig) -> StoreConfig:
    redis, queues = config.redis, config.queues
    return StoreConfig(
        url=redis.url,
        prefix=redis.prefix,
        password=redis.password,
        password_file=redis.password_file,
        placement_key=read_key(redis.placement_key, "a placement key"),
        durability=Mode(redis.durability),
        replicas=redis.replicas,
        replication_limit=redis.replica_timeout,
        deadline=redis.command_timeout,
        connect_timeout=redis.connect_timeout,
        lease=redis.lease,
        lease_refresh=redis.lease * 0.3,
        quota=queues.quota,
        message_ttl=int(queues.message_ttl),
        ntf_ttl=int(queues.notification_ttl),
        queue_ttl_days=int(queues.inactive_ttl // 86400) or None,
    )


async def run_edge(
    config: RouterConfig,
    *,
    on_ready: Callable[[Edge], None] | None = None,
    on_suspended: Callable[[], None] | None = None,
) -> int:
    """Run an edge until SIGTERM or SIGINT, then drain it. Return the exit code."""
    raise_descriptor_limit()
    return await run_until_stopped(Edge.start(config), on_ready, on_suspended)
