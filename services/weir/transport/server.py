"""The listening side: accepts clients, bounds and times handshakes, cuts clients that never read."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

from weir.transport.connection import Connection, Handler
from weir.transport.handshake import ServiceOffer
from weir.transport.handshakes import Handshakes
from weir.transport.identity import ServerIdentity
from weir.wire.commands import ServiceRole
from weir.wire.errors import HandshakeError
from weir.wire.versions import SMP_BLOCK_SIZE, SMP_RANGE, VersionRange

OnSession = Callable[[Connection], Handler]
GetService = Callable[[ServiceRole, tuple[bytes, ...], bytes], Awaitable[bytes | HandshakeError]]

_BACKLOG = 1024
_KEEPALIVE_IDLE, _KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT = 30, 15, 4


@dataclass(frozen=True)
class TransportConfig:
    versions: VersionRange = SMP_RANGE
    handshake_timeout: float = 60.0  # TLS and SMP together
    half_open: int = 1000  # handshakes at once; above it the one that has kept us waiting longest is dropped
    max_clients: int = 0  # 0: no limit
    send_timeout: float = 40.0  # a client that has not taken a block for so long is cut off
    outgoing_bytes: int = 256 << 10
    outgoing_low_bytes: int = 64 << 10
    reload_interval: float = 10.0  # how often the online certificate's files are looked at


@dataclass(slots=True)
class TransportStats:
    """Counters since the start."""

    accepted: int = 0
    sessions: int = 0
    refused: int = 0  # max_clients
    crowded_out: int = 0  # half_open
    timed_out: int = 0
    failed: int = 0  # handshakes that ended in an error, TLS or SMP
    stalled: int = 0  # send_timeout


class Listener:
    """One edge's sockets and clients. Made by `serve`."""

    def __init__(
        self, config: TransportConfig, identity: ServerIdentity, on_session: OnSession, get_service: GetService
    ) -> None:
        self.config = config
        self.identity = identity
        self.stats = TransportStats()
        self.connections: dict[int, Connection] = {}
        self._on_session = on_session
        self._get_service = get_service
        self._half_open: dict[Connection, float] = {}  # in order of arrival, so the oldest is the first
        self._stalled: dict[Connection, tuple[int, float]] = {}
        self._lookups: set[asyncio.Task[None]] = set()
        self._last_id = 0
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.get_running_loop()
        self.handshakes = Handshakes(self._loop)
        self._tick = min(5.0, config.send_timeout / 4, config.handshake_timeout / 4)
        self._next_reload = monotonic() + config.reload_interval
        self._timer = self._loop.call_later(self._tick, self._sweep)

    @property
    def half_open(self) -> int:
        return len(self._half_open)

    @property
    def ports(self) -> list[int]:
        return [sock.getsockname()[1] for server in self._servers for sock in server.sockets]

    async def listen(self, sock: socket.socket) -> None:
        # Accepted sockets inherit these: a subscribed client that vanished is never disconnected for idleness.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_COUNT)
        self._servers.append(await self._loop.create_server(self._new_connection, sock=sock, backlog=_BACKLOG))

    def stop_accepting(self) -> None:
        for server in self._servers:
            server.close()

    async def close(self) -> None:
        """Stop accepting and close every client."""
        self._timer.cancel()
        self.stop_accepting()
        for task in self._lookups:
            task.cancel()
        for connection in (*self._half_open, *self.connections.values()):
            connection.close()
        # Transports close in the loop's next turns; one that has unsent bytes is not waited for.
        await asyncio.sleep(0)
        for connection in (*self._half_open, *self.connections.values()):
            connection.abort()
        await asyncio.sleep(0)

    # What connections report.

    def _new_connection(self) -> Connection:
        self._last_id += 1
        return Connection(self, self._last_id)

    def opened(self, connection: Connection) -> None:
        self.stats.accepted += 1
        config = self.config
        if config.max_clients and len(self.connections) + len(self._half_open) >= config.max_clients:
            self.stats.refused += 1
            connection.abort()
            return
        if len(self._half_open) >= config.half_open:
            # Whoever keeps handshakes open on purpose holds the oldest ones; an honest client needs but a moment.
            oldest = next((one for one in self._half_open if not one.in_turn), connection)
            self._half_open.pop(oldest, None)
            self.stats.crowded_out += 1
            oldest.abort()
            if oldest is connection:
                return
        self._half_open[connection] = monotonic()

    def closed(self, connection: Connection) -> None:
        self._half_open.pop(connection, None)
        self._stalled.pop(connection, None)
        self.connections.pop(connection.id, None)

    def failed(self) -> None:
        self.stats.failed += 1

    def look_up(self, connection: Connection, offer: ServiceOffer) -> None:
        task = self._loop.create_task(self._look_up(connection, offer))
        self._lookups.add(task)
        task.add_done_callback(self._lookups.discard)

    async def _look_up(self, connection: Connection, offer: ServiceOffer) -> None:
        service = await self._get_service(offer.role, offer.chain, offer.fingerprint)
        connection.service_found(offer, service)

    def ready(self, connection: Connection) -> Handler:
        self._half_open.pop(connection, None)
        self.connections[connection.id] = connection
        self.stats.sessions += 1
        connection.limit_outgoing(self.config.outgoing_bytes, self.config.outgoing_low_bytes)
        return self._on_session(connection)

    # Time limits. One timer for all: a timer per client would cost more than the client.

    def _sweep(self) -> None:
        self._timer = self._loop.call_later(self._tick, self._sweep)
        now = monotonic()
        for connection, since in list(self._half_open.items()):
            if now - since < self.config.handshake_timeout:
                break
            self.stats.timed_out += 1
            connection.abort()
        self._cut_stalled(now)
        if now >= self._next_reload:
            self._next_reload = now + self.config.reload_interval
            self.identity.reload()

    def _cut_stalled(self, now: float) -> None:
        for connection in list(self.connections.values()):
            if not connection.buffered:
                self._stalled.pop(connection, None)
                continue
            taken = connection.taken
            before, since = self._stalled.setdefault(connection, (taken, now))
            if taken - before >= SMP_BLOCK_SIZE:
                self._stalled[connection] = (taken, now)
            elif now - since >= self.config.send_timeout:
                self.stats.stalled += 1
                connection.abort()


def bind(host: str | None, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A listening socket for `serve`; None listens on every address, IPv6 and IPv4."""
    if host is None and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=reuse_port, backlog=_BACKLOG
        )
    family = socket.AF_INET6 if host is not None and ":" in host else socket.AF_INET
    return socket.create_server((host or "", port), family=family, reuse_port=reuse_port, backlog=_BACKLOG)


async def serve(
    config: TransportConfig,
    identity: ServerIdentity,
    on_session: OnSession,
    get_service: GetService,
    *,
    socks: list[socket.socket] | None = None,
    host: str | None = None,
    port: int = 0,
    reuse_port: bool = False,
) -> Listener:
    """Listen on the sockets given (see `bind`), else on host and port."""
    listener = Listener(config, identity, on_session, get_service)
    for sock in socks if socks is not None else [bind(host, port, reuse_port=reuse_port)]:
        await listener.listen(sock)
    return listener
