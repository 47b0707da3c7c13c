"""The life of one edge, the same for every program: listen, report, suspend, drain, close.

    open ──► serving ──► drain ──► close
               │  ▲        no new connections; clients leave at a limited rate
       suspend ▼  │ resume
              suspended    no new clients; those connected stay

A program subclasses `Edge` and brings its protocol, its sessions, its counters, and what it shows (page, metrics,
control port). `process.run_until_stopped` runs an edge as a process.
"""

from __future__ import annotations

import contextlib
import socket
import typing
from abc import ABC, abstractmethod
from asyncio import Lock
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any, Generic, TypeVar

from weir.redis.errors import Unavailable
from weir.runtime.drain import Drainable, drain
from weir.runtime.supervisor import Supervisor
from weir.transport.connection import Connection, Handler
from weir.transport.identity import ServerIdentity
from weir.transport.protocol import C, Protocol
from weir.transport.server import Listener, TransportConfig, bind_shared, serve

REPORT_INTERVAL = 5.0  # seconds between two reports of counters and gauges that nobody asks for
REPORT_PAUSE = 0.7  # seconds: whoever asks for a report again within this time gets the one before


class Session(Drainable, typing.Protocol):
    """A client's session, as far as the life of its edge is concerned."""

    @property
    def conn(self) -> Connection: ...

    @property
    def is_subscribed(self) -> bool:
        """Whether the client waits for events. Such a client may stay silent."""


S = TypeVar("S", bound=Session)


@dataclass(frozen=True)
class EdgeConfig:
    listen: str = ""  # address; "", "0.0.0.0" and "::" mean every address
    ports: tuple[int, ...] = (0,)
    transport: TransportConfig = field(default_factory=TransportConfig)
    drain_rate: float = 500  # clients per second
    drain_grace: float = 30.0
    idle_ttl: float | None = None  # seconds of silence after which an unsubscribed client is disconnected; None: never
    idle_check: float = 3600.0


class Edge(ABC, Generic[C, S]):
    """One edge. A subclass adds the program: its protocol, sessions, counters and endpoints."""

    def __init__(self, edge_config: EdgeConfig, edge_id: str, protocol: Protocol[C], identity: ServerIdentity) -> None:
        self.edge_id = edge_id
        self.started_at = time()
        self.draining = False
        self.identity = identity
        self.background = Supervisor()
        self._edge_config = edge_config
        self._protocol = protocol
        self._listener: Listener[C] | None = None
        self._suspended = False
        self._suspended_ports: tuple[int, ...] = ()
        self._saving = Lock()
        self._reporting = Lock()
        self._reported_at = -REPORT_PAUSE  # when the last report that was asked for began, by `monotonic`

    # Subclasses implement these.

    @abstractmethod
    def on_session(self, connection: C) -> Handler:
        """Make the session of a client whose handshake has finished."""

    async def answer(self, question: Any) -> Any:
        """Answer a handshake's question, for protocols that ask."""
        raise NotImplementedError

    @abstractmethod
    def sessions(self) -> Collection[S]:
        """All sessions."""

    @abstractmethod
    def program_gauges(self) -> dict[str, int]:
        """The program's present numbers, by name."""

    async def save_counters(self) -> None:
        """Add the program's counters to the fleet's. Raises Unavailable."""

    def may_serve(self) -> bool:
        """Whether the program could serve a client now, e.g. whether it holds its lease."""
        return True

    async def start_program(self) -> None:
        """Open what runs beside the listener: endpoints and background jobs."""

    async def finish_work(self) -> None:
        """Wait for work that the disconnected clients have left behind."""

    async def close_program(self) -> None:
        """Close what `start_program` has opened, and the store."""

    # State

    @property
    def ports(self) -> list[int]:
        return [] if self._listener is None else self._listener.ports

    @property
    def ready(self) -> bool:
        """Whether new clients are welcome."""
        return self._listener is not None and not (self.draining or self._suspended) and self.may_serve()

    def gauges(self) -> Mapping[str, int]:
        """The present numbers of this edge, by name: the program's and the listener's."""
        gauges = self.program_gauges()
        if self._listener is not None:
            accepted, half_open = self._listener.stats.accepted, self._listener.half_open
            gauges["sockets_accepted"] = accepted
            gauges["sockets_closed"] = accepted - half_open - len(self._listener.connections)
            gauges["handshakes"] = half_open
        gauges["certificate_days"] = int(self.identity.days_to_expiry())
        return gauges

    def ended_connections(self) -> dict[str, int]:
        """Connections that this edge has ended against its client's will since the start, by reason."""
        if self._listener is None:
            return {}
        stats = self._listener.stats
        return {
            "refused": stats.refused,
            "crowded_out": stats.crowded_out,
            "timed_out": stats.timed_out,
            "failed": stats.failed,
            "stalled": stats.stalled,
        }

    # Life

    async def open(self, socks: list[socket.socket] | None = None) -> None:
        """Listen on the sockets given, or else on the configured ports, and start the program."""
        config = self._edge_config
        socks = socks or self._bind(config.ports)
        self._listener = await serve(
            self._protocol, config.transport, self.identity, self.on_session, self.answer, socks=socks
        )
        await self.start_program()
        # The first report is immediate, so that the fleet's numbers include this edge.
        self.background.every("the report of counters", REPORT_INTERVAL, self.save, at_once=True)
        if config.idle_ttl is not None:
            self.background.every("the check for idle clients", config.idle_check, self._disconnect_idle)

    def _bind(self, ports: Iterable[int]) -> list[socket.socket]:
        return [bind_shared(self._edge_config.listen, port) for port in ports]

    def reload_identity(self) -> None:
        """Use a new online certificate for new clients. Connected clients stay."""
        self.identity.reload()

    async def suspend(self) -> None:
        """Accept no new clients, and end the handshakes under way. Clients that are connected stay."""
        if not (self._suspended or self.draining) and self._listener is not None:
            self._suspended = True
            self._suspended_ports = tuple(self._listener.ports)
            self._listener.refuse_clients()
            await self._listener.stop_accepting()

    async def resume(self) -> None:
        """Accept new clients again, on the same ports. Raises OSError if another process has taken a port."""
        if self._suspended and not self.draining and self._listener is not None:
            for sock in self._bind(self._suspended_ports or self._edge_config.ports):
                await self._listener.listen(sock)
            self._listener.admit_clients()
            self._suspended = False

    async def drain(self) -> None:
        """Accept no more connections, and disconnect clients at the configured rate within the grace period.

        Handshakes under way end now. Their clients would be disconnected a moment later.
        """
        listener, config = self._listener, self._edge_config
        if listener is None:
            return
        self.draining = True
        listener.refuse_clients()
        await listener.stop_accepting()
        await drain(
            self.sessions,
            lambda session: session.conn.rcv_active,
            rate=config.drain_rate,
            grace=config.drain_grace,
        )

    async def close(self) -> None:
        """Disconnect everyone and close everything. Safe after a failed `open`."""
        await self.background.close()
        if self._listener is not None:
            await self._listener.close()
        await self.finish_work()
        if self._listener is not None:
            with contextlib.suppress(Unavailable):
                await self.save()
        await self.close_program()

    async def save(self) -> None:
        """Add what was counted to the fleet's counters, now. Raises Unavailable."""
        async with self._saving:
            await self.save_counters()

    async def report(self) -> None:
        """Save, unless that was asked for a moment ago. Any number of viewers costs an edge a bounded time."""
        async with self._reporting:
            now = monotonic()
            if now - self._reported_at >= REPORT_PAUSE:
                await self.save()
                self._reported_at = now

    async def _disconnect_idle(self) -> None:
        """Disconnect clients without subscriptions that have been silent for too long."""
        ttl = self._edge_config.idle_ttl
        assert ttl is not None
        for session in idle(self.sessions(), monotonic() - ttl):
            session.conn.close()


def idle(sessions: Iterable[S], since: float) -> list[S]:
    """The sessions without subscriptions that have been silent since that time."""
    return [session for session in sessions if session.conn.idle_since < since and not session.is_subscribed]
