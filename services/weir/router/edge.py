"""One edge: a process that owns sockets and nothing else. Killing it loses nothing; SIGTERM moves its clients on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic, time
from typing import NamedTuple

from weir.router.config import RouterConfig, read_placement_key
from weir.router.control import ControlServer, start_control
from weir.router.expiry import Sweeper
from weir.router.page.server import HttpServer, start_http
from weir.router.router import Router
from weir.store.durability import Mode
from weir.store.records import ServiceError, Unavailable
from weir.store.store import Store, StoreConfig
from weir.telemetry.setup import open_tracing
from weir.transport.identity import ServerIdentity
from weir.transport.server import Listener, TransportConfig, bind, serve
from weir.wire.address import SmpAddress
from weir.wire.commands import ServiceRole
from weir.wire.errors import HandshakeError

_log = logging.getLogger(__name__)

_REPORT = 5.0  # seconds between two reports of counters and gauges to the store
_DRAIN_STEP = 0.05


class ClientInfo(NamedTuple):
    """One connected client, without its address and its ids."""

    id: int
    version: int
    created: float
    rcv_active: float
    snd_active: float
    subs: int
    ntf_subs: int
    outgoing: int
    service: bool


class Edge:
    """Made by `Edge.start`; implements what the page, the metrics and the control port may ask (view.EdgeView)."""

    def __init__(self, config: RouterConfig, store: Store, identity: ServerIdentity) -> None:
        self.config = config
        self.store = store
        self.started_at = time()
        self.draining = False
        self.edge_id = store.edge.decode()
        self._identity = identity
        telemetry = config.telemetry
        ratio = 1.0 if telemetry.trace_sessions == "all" else telemetry.sample_ratio
        self._tracer = open_tracing(telemetry.traces, ratio=ratio, instance=self.edge_id)
        self.router = Router(config, store, self._tracer)
        self._listener: Listener | None = None
        self._suspended = False
        self._suspended_ports: tuple[int, ...] = ()
        self._http: HttpServer | None = None
        self._control: ControlServer | None = None
        self._sweeper: Sweeper | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._counted: dict[str, int] = {}
        self._saving = asyncio.Lock()

    @classmethod
    async def start(cls, config: RouterConfig, *, socks: list[socket.socket] | None = None) -> Edge:
        """Open everything; raises StoreError, Unavailable, UnusableFile or OSError with one clear line."""
        identity = ServerIdentity(config.transport.identity)
        store = await Store.open(_store_config(config))
        edge = cls(config, store, identity)
        try:
            await edge._open(socks)
        except BaseException:
            await edge.close()
            raise
        return edge

    async def _open(self, socks: list[socket.socket] | None) -> None:
        config = self.config
        self._listener = await self._listen(socks or self._bind(config.transport.ports))
        if config.http.port:
            self._http = await start_http(self, reuse_port=True)
        if config.control.port:
            self._control = await start_control(self)
        self._sweeper = Sweeper(self.router, config.queues.sweep_interval)
        self._tasks.append(asyncio.create_task(self._report_for_ever()))
        if config.inactive_clients.disconnect:
            self._tasks.append(asyncio.create_task(self._disconnect_idle()))

    def _bind(self, ports: Iterable[int]) -> list[socket.socket]:
        listen = self.config.transport.listen
        host = None if listen in ("", "0.0.0.0", "::") else listen
        return [bind(host, port, reuse_port=True) for port in ports]

    async def _listen(self, socks: list[socket.socket]) -> Listener:
        transport = self.config.transport
        listener_config = TransportConfig(
            handshake_timeout=transport.handshake_timeout,
            half_open=transport.half_open,
            max_clients=transport.max_clients,
            send_timeout=transport.send_timeout,
            outgoing_bytes=transport.outgoing_bytes,
            outgoing_low_bytes=transport.outgoing_low_bytes,
        )
        return await serve(listener_config, self._identity, self.router.on_session, self._get_service, socks=socks)

    async def _get_service(self, role: ServiceRole, chain: tuple[bytes, ...], fp: bytes) -> bytes | HandshakeError:
        """The ServiceId of an identity certificate: made when it is new, refused when it has another role."""
        try:
            found = await self.store.ensure_service(fp, role, self.router.random_id())
        except Unavailable:
            return HandshakeError.BAD_SERVICE
        return HandshakeError.BAD_SERVICE if isinstance(found, ServiceError) else found

    # What the page, the metrics and the control port see.

    @property
    def ports(self) -> list[int]:
        return [] if self._listener is None else self._listener.ports

    @property
    def http_port(self) -> int | None:
        return None if self._http is None else self._http.port

    @property
    def address(self) -> str:
        transport = self.config.transport
        hosts = transport.hosts or ("localhost",)
        port = transport.public_port or (self.ports[0] if self.ports else transport.ports[0])
        shown = None if port == 5223 else port
        return str(SmpAddress(self._identity.fingerprint, hosts, shown))

    @property
    def ready(self) -> bool:
        return self._listener is not None and not (self.draining or self._suspended) and self.store.leases.held

    def gauges(self) -> Mapping[str, int]:
        router = self.router
        gauges = router.gauges()
        if self._listener is not None:
            accepted, half_open = self._listener.stats.accepted, self._listener.half_open
            gauges["sockets_accepted"] = accepted
            gauges["sockets_closed"] = accepted - half_open - len(self._listener.connections)
            gauges["handshakes"] = half_open
        gauges["certificate_days"] = int(self._identity.days_to_expiry())
        return gauges

    def counted(self) -> Mapping[str, int]:
        return self._counted

    def clients(self) -> Iterator[ClientInfo]:
        offset = time() - monotonic()
        for client in list(self.router.clients.values()):
            conn = client.conn
            yield ClientInfo(
                client.id,
                client.session.version,
                conn.created + offset,
                conn.rcv_active + offset,
                conn.snd_active + offset,
                len(client.subs),
                len(client.ntf_subs),
                client.out.pending_bytes,
                client.service is not None,
            )

    def trace_session(self, client: int, on: bool) -> bool:
        found = self.router.clients.get(client)
        if found is None:
            return False
        found.trace = on
        return True

    def reload_identity(self) -> None:
        """Take up a new online certificate; clients stay."""
        self._identity.reload()

    async def suspend(self) -> None:
        """Accept no more clients, and say so to whoever asks for readiness; those connected stay."""
        if not self._suspended and self._listener is not None:
            self._suspended = True
            self._suspended_ports = tuple(self._listener.ports)
            self._listener.stop_accepting()

    async def resume(self) -> None:
        """Listen again where it did; raises OSError when another has taken the port meanwhile."""
        if self._suspended and self._listener is not None:
            for sock in self._bind(self._suspended_ports or self.config.transport.ports):
                await self._listener.listen(sock)
            self._suspended = False

    # Life.

    async def drain(self) -> None:
        """Stop accepting, move clients on at the configured rate, and be done within the grace period."""
        if self._listener is None:
            return
        self.draining = True
        self._listener.stop_accepting()
        end = monotonic() + self.config.drain.grace
        budget = 0.0
        while self.router.clients and monotonic() < end:
            budget += self.config.drain.rate * _DRAIN_STEP
            for client in [c for c in self.router.clients.values() if not c.draining][: int(budget)]:
                client.drain()
                budget -= 1
            budget = min(budget, 1.0)
            await asyncio.sleep(_DRAIN_STEP)
            for client in [c for c in self.router.clients.values() if c.draining]:
                client.drain()  # what it had sent may be answered by now

    async def close(self) -> None:
        if self._sweeper is not None:
            await self._sweeper.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listener is not None:
            await self._listener.close()
        await self.router.close()
        if self._listener is not None:
            await self._report()
        if self._http is not None:
            await self._http.close()
        if self._control is not None:
            await self._control.close()
        await self.store.close()
        if self._tracer is not None:
            self._tracer.close()

    async def _report_for_ever(self) -> None:
        while True:
            await self._report()  # first thing: the page counts this edge at once
            await asyncio.sleep(_REPORT)

    async def _report(self) -> None:
        """Add what was counted to the fleet's counters; what cannot be added now is added later."""
        with contextlib.suppress(Unavailable):
            await self.save()

    async def save(self) -> None:
        async with self._saving:  # the store knows the last operation of an edge only
            await self._save()

    async def _save(self) -> None:
        stats = self.router.stats
        taken = stats.take()
        queues, stats.active_queues = stats.active_queues, set()
        queues_ntf, stats.active_queues_ntf = stats.active_queues_ntf, set()
        try:
            await self.store.add_stats(taken)
            for name, count in taken.items():
                self._counted[name] = self._counted.get(name, 0) + count
            taken = {}
            await self.store.add_active(queues, queues_ntf)
            await self.store.publish_edge(dict(self.gauges()))
        except Unavailable:  # and so would be what follows: an edge that stops does not wait for each
            stats.give_back(taken)
            stats.active_queues |= queues
            stats.active_queues_ntf |= queues_ntf
            raise

    async def _disconnect_idle(self) -> None:
        """Clients without subscriptions that stay silent are let go; subscribed ones wait for messages."""
        inactive = self.config.inactive_clients
        while True:
            await asyncio.sleep(inactive.check_interval)
            old = monotonic() - inactive.ttl
            for client in list(self.router.clients.values()):
                if client.conn.idle_since < old and not client.is_subscribed:
                    client.conn.close()


def _store_config(config: RouterConfig) -> StoreConfig:
    redis, queues = config.redis, config.queues
    return StoreConfig(
        url=redis.url,
        password=redis.password,
        placement_key=read_placement_key(redis.placement_key),
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


async def run_edge(config: RouterConfig, *, on_ready: Callable[[Edge], None] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then drain."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    starting, ending = asyncio.ensure_future(Edge.start(config)), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        # It still waits for Redis. As process 1 of a container it would not even hear the signal without a handler.
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        return 0
    edge = starting.result()
    loop.add_signal_handler(signal.SIGHUP, edge.reload_identity)
    try:
        if on_ready is not None:
            on_ready(edge)
        await ending
        await edge.drain()
    finally:
        await edge.close()
    return 0
