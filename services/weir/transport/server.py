"""The listening side: accepts clients, limits the time and number of handshakes, cuts off clients that never read."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic

from weir.telemetry.errors import log_mistake
from weir.transport import backlog
from weir.transport.connection import Handler
from weir.transport.handshake import Question
from weir.transport.handshakes import Handshakes
from weir.transport.identity import ServerIdentity
from weir.transport.protocol import C, Protocol
from weir.wire.versions import VersionRange

_log = logging.getLogger(__name__)

OnSession = Callable[[C], Handler]
Answer = Callable[[Any], Awaitable[Any]]
"""The program's answer to a handshake's question, e.g. a ServiceId for an SMP ServiceOffer."""

_BACKLOG = 1024
_KEEPALIVE_IDLE, _KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT = 30, 15, 4


@dataclass(frozen=True)
class TransportConfig:
    versions: VersionRange | None = None  # None: all of the protocol's
    handshake_timeout: float = 60.0  # for TLS and the protocol's handshake together
    half_open: int = 1000  # handshakes at once; one more drops the client that has been silent longest
    max_clients: int = 0  # 0: no limit
    send_timeout: float = 40.0  # a client that takes no block for this long is cut off
    outgoing_bytes: int = 256 << 10
    outgoing_low_bytes: int = 64 << 10
    reload_interval: float = 10.0  # between two checks of the online certificate's files


@dataclass(slots=True)
class TransportStats:
    """Counters since the start."""

    accepted: int = 0
    sessions: int = 0
    refused: int = 0  # max_clients, or the edge is draining
    crowded_out: int = 0  # half_open
    timed_out: int = 0
    failed: int = 0  # handshakes that ended in an error, TLS's or the protocol's
    stalled: int = 0  # send_timeout


class Listener(Generic[C]):
    """One edge's sockets and clients. Made by `serve`."""

    def __init__(
        self,
        protocol: Protocol[C],
        config: TransportConfig,
        identity: ServerIdentity,
        on_session: OnSession[C],
        answer: Answer | None = None,
    ) -> None:
        self.protocol = protocol
        self.config = config
        self.versions = config.versions or protocol.versions
        self.identity = identity
        self.stats = TransportStats()
        self.connections: dict[int, C] = {}
        self._on_session = on_session
        self._answer = answer
        self._half_open: dict[C, float] = {}  # by time of arrival, in order: the oldest is the first
        self._stalled: dict[C, tuple[int, float]] = {}  # bytes the client had taken at a time, none since
        self._questions: set[asyncio.Task[None]] = set()
        self._last_id = 0
        self._refusing = False
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
        # Accepted sockets inherit these. Idle subscribed clients stay connected, so TCP must find those that vanished.
        # Keepalive probes only a connection on which nothing is under way. The user timeout watches the others.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_COUNT)
        vanished = _KEEPALIVE_IDLE + _KEEPALIVE_INTERVAL * _KEEPALIVE_COUNT
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, vanished * 1000)
        self._servers.append(await self._loop.create_server(self._new_connection, sock=sock, backlog=_BACKLOG))

    async def stop_accepting(self) -> None:
        """Stop listening. Connections that the kernel has already established are still accepted."""
        servers, self._servers = self._servers, []
        filtered = [backlog.stop_filling(sock) for server in servers for sock in server.sockets]
        if any(filtered):
            await asyncio.sleep(backlog.LAST_ACCEPTS)
        else:
            await asyncio.sleep(0)
        for server in servers:
            server.close()

    def refuse_clients(self) -> None:
        """Open no more sessions: close handshakes under way, and every connection that is accepted from now on."""
        self._refusing = True
        for connection in list(self._half_open):
            self._refuse(connection)

    def admit_clients(self) -> None:
        """Open sessions again."""
        self._refusing = False

    async def close(self) -> None:
        """Stop accepting and close every client."""
        self._timer.cancel()
        for server in self._servers:
            server.close()
        for task in self._questions:
            task.cancel()
        for connection in (*self._half_open, *self.connections.values()):
            connection.close()
        # Transports close in the loop's next turns. Unsent bytes are not waited for.
        await asyncio.sleep(0)
        for connection in (*self._half_open, *self.connections.values()):
            connection.abort()
        await asyncio.sleep(0)

    # Called by connections.

    def _new_connection(self) -> C:
        self._last_id += 1
        return self.protocol.connection(self, self._last_id)

    def opened(self, connection: C) -> None:
        self.stats.accepted += 1
        if self._refusing:
            self._half_open[connection] = monotonic()
            self._refuse(connection)
            return
        config = self.config
        if config.max_clients and len(self.connections) + len(self._half_open) >= config.max_clients:
            self.stats.refused += 1
            connection.abort()
            return
        if len(self._half_open) >= config.half_open:
            # An attacker who keeps handshakes open has the oldest ones. An honest client is done in a moment.
            oldest = next((one for one in self._half_open if not one.in_turn), connection)
            self._half_open.pop(oldest, None)
            self.stats.crowded_out += 1
            oldest.abort()
            if oldest is connection:
                return
        self._half_open[connection] = monotonic()

    def _refuse(self, connection: C) -> None:
        self.stats.refused += 1
        connection.refuse()

    def closed(self, connection: C) -> None:
        self._half_open.pop(connection, None)
        self._stalled.pop(connection, None)
        self.connections.pop(connection.id, None)

    def failed(self) -> None:
        self.stats.failed += 1

    def ask(self, connection: C, question: Question) -> None:
        task = self._loop.create_task(self._ask(connection, question))
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    async def _ask(self, connection: C, question: Question) -> None:
        assert self._answer is not None
        try:
            answer = await self._answer(question)
        except Exception as error:
            log_mistake(_log, "a handshake's question was not answered", error)
            self.stats.failed += 1
            connection.abort()
        else:
            connection.answered(question, answer)

    def ready(self, connection: C) -> Handler:
        self._half_open.pop(connection, None)
        self.connections[connection.id] = connection
        self.stats.sessions += 1
        connection.limit_outgoing(self.config.outgoing_bytes, self.config.outgoing_low_bytes)
        return self._on_session(connection)

    # Time limits. All clients share one timer: a timer for each would cost more than the client itself.

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
            if taken - before >= self.protocol.block_size:
                self._stalled[connection] = (taken, now)
            elif now - since >= self.config.send_timeout:
                self.stats.stalled += 1
                connection.abort()


def every_host(listen: str) -> str | None:
    """The host for `bind`: None for an address that means every address."""
    return None if listen in ("", "0.0.0.0", "::") else listen


def bind(host: str | None, port: int, *, reuse_port: bool = False) -> socket.socket:
    """Make a listening socket for `serve`. Host None means every address, IPv6 and IPv4."""
    if host is None and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=reuse_port, backlog=_BACKLOG
        )
    family = socket.AF_INET6 if host is not None and ":" in host else socket.AF_INET
    return socket.create_server((host or "", port), family=family, reuse_port=reuse_port, backlog=_BACKLOG)


def bind_shared(listen: str, port: int) -> socket.socket:
    """Make a listening socket on a configured address. Other edges on this machine may listen on the same port."""
    return bind(every_host(listen), port, reuse_port=True)


async def serve(
    protocol: Protocol[C],
    config: TransportConfig,
    identity: ServerIdentity,
    on_session: OnSession[C],
    answer: Answer | None = None,
    *,
    socks: list[socket.socket] | None = None,
    host: str | None = None,
    port: int = 0,
    reuse_port: bool = False,
) -> Listener[C]:
    """Listen on the sockets given (see `bind`), or else on host and port."""
    listener = Listener(protocol, config, identity, on_session, answer)
    for sock in socks if socks is not None else [bind(host, port, reuse_port=reuse_port)]:
        await listener.listen(sock)
    return listener
