"""Connections to push servers: opened when they are needed, shared, and closed when they are idle.

An origin has few connections at most. A request takes the one with the most room; while all are full, another one is
opened, or the request waits. Nobody waits for a server that cannot be reached: all who wait get the error. Every
address is checked when it is dialled, and the check's result is what is dialled, so a name cannot change in between.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from asyncio import Future, Task
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

from weir.notifier.push.http.exchange import Connection, Forbidden, HttpError, Origin, Unreachable
from weir.notifier.push.http.http1 import Http1
from weir.notifier.push.http.http2 import Http2
from weir.telemetry.errors import log_mistake
from weir.transport.destinations import resolve

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT: Final = 10.0
_CLOSE_TIMEOUT: Final = 2.0
_ADDRESS_TIMEOUT: Final = 4.0  # for one of several addresses


class _Server:
    """One origin: its connections, and the requests that wait for one."""

    __slots__ = ("connections", "dialling", "used", "waiting")

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.dialling: Task[None] | None = None
        self.used = monotonic()
        self.waiting: deque[Future[None]] = deque()

    @property
    def idle(self) -> bool:
        return self.dialling is None and not self.waiting and not any(one.in_flight for one in self.connections)

    @property
    def usable(self) -> int:
        """The number of connections that take requests, now or when there is room again."""
        return sum(not one.retired for one in self.connections)

    def best(self) -> Connection | None:
        """The connection with the most room."""
        best = max(self.connections, key=lambda one: one.room, default=None)
        return best if best is not None and best.room else None

    def wake(self) -> None:
        """Let as many requests go on as there is room for. The first one that finds no connection opens one."""
        room = sum(one.room for one in self.connections) if self.usable else len(self.waiting)
        while self.waiting and room > 0:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room -= 1

    def fail(self, error: HttpError) -> None:
        while self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_exception(error)


class Pool:
    """`context` decides which certificates are trusted. `per_origin` is the number of connections to one origin."""

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        per_origin: int = 4,
        idle: float = 300.0,
        origins: int = 1000,
        sweep: float = 5.0,
        allow_local: bool = False,
    ) -> None:
        context.set_alpn_protocols(["h2", "http/1.1"])
        self._context = context
        self._per_origin = per_origin
        self._idle = idle
        self._most = origins
        self._interval = sweep
        self._allow_local = allow_local
        self._servers: dict[Origin, _Server] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def connections(self) -> int:
        return sum(len(server.connections) for server in self._servers.values())

    @property
    def in_flight(self) -> int:
        return sum(one.in_flight for server in self._servers.values() for one in server.connections)

    async def connection(self, origin: Origin) -> Connection:
        """Return a connection with room for a request, which must be sent before the next await.

        Raises Unreachable or Forbidden.
        """
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._sweep)
        server = self._servers.get(origin)
        if server is None:
            if len(self._servers) >= self._most and not self._forget_idle():
                raise Unreachable("too many push servers at once")
            server = self._servers[origin] = _Server()
        while True:
            server.used = monotonic()
            if self._closed:
                raise Unreachable("this router is stopping")
            best = server.best()
            if best is not None:
                return best
            waiter: Future[None] = asyncio.get_running_loop().create_future()
            server.waiting.append(waiter)
            self._dial_if_useful(origin, server)
            await waiter

    async def close(self) -> None:
        """Close all connections. Requests in flight are lost."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        dialling = [server.dialling for server in self._servers.values() if server.dialling is not None]
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        for server in self._servers.values():
            server.fail(Unreachable("this router is stopping"))
            for connection in list(server.connections):
                connection.abort()
        self._servers.clear()

    def _dial_if_useful(self, origin: Origin, server: _Server) -> None:
        """One connection is opened at a time: the first one may have room for all who wait."""
        if server.waiting and server.dialling is None and server.usable < self._per_origin and not self._closed:
            server.dialling = asyncio.create_task(self._dial(origin, server))

    async def _dial(self, origin: Origin, server: _Server) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                connection = await self._open(origin, server)
        except HttpError as error:
            server.fail(error)
        except TimeoutError:
            server.fail(Unreachable("no connection in time"))
        except Exception as error:  # nobody may wait for ever
            log_mistake(_log, "a connection to a push service failed", error)
            server.fail(Unreachable("no connection"))
        else:
            server.connections.append(connection)
        finally:
            server.dialling = None
        if server.connections:
            server.wake()
            self._dial_if_useful(origin, server)

    async def _open(self, origin: Origin, server: _Server) -> Connection:
        try:
            addresses = await resolve(origin.host, origin.port, allow_local=self._allow_local)
        except OSError:
            raise Unreachable("the name is not known") from None
        except ValueError:
            raise Forbidden("no host name") from None
        if not addresses:
            raise Forbidden("the address is not public")
        error = Unreachable("no address")
        for address in addresses:
            try:
                async with asyncio.timeout(_ADDRESS_TIMEOUT if len(addresses) > 1 else CONNECT_TIMEOUT):
                    return await self._open_address(address, origin, server)
            except TimeoutError:
                error = Unreachable("no connection in time")
            except ssl.SSLCertVerificationError:
                error = Unreachable("the certificate is not trusted")
            except (OSError, ssl.SSLError) as failure:
                error = Unreachable(type(failure).__name__)
            except ValueError:
                raise Forbidden("no host name") from None  # TLS cannot name it
        raise error

    async def _open_address(self, address: str, origin: Origin, server: _Server) -> Connection:
        ready: Future[None] = asyncio.get_running_loop().create_future()

        def on_ready() -> None:
            if not ready.done():
                ready.set_result(None)

        def on_change(connection: Connection) -> None:
            if connection.closed:
                if connection in server.connections:
                    server.connections.remove(connection)
                if not ready.done():
                    ready.set_exception(Unreachable("the server closed the connection"))
            server.wake()

        transport, chooser = await asyncio.get_running_loop().create_connection(
            lambda: _Chooser(on_ready, on_change),
            address,
            origin.port,
            ssl=self._context,
            server_hostname=origin.host,
            ssl_shutdown_timeout=_CLOSE_TIMEOUT,
        )
        try:
            await ready
        except BaseException:
            transport.abort()
            raise
        assert chooser.connection is not None
        return chooser.connection

    def _forget_idle(self) -> bool:
        """Close the connections of the origin that has been idle for longest. Return False if all are in use."""
        idle = [(server.used, origin) for origin, server in self._servers.items() if server.idle]
        if not idle:
            return False
        self._forget(min(idle)[1])
        return True

    def _forget(self, origin: Origin) -> None:
        for connection in list(self._servers.pop(origin).connections):
            connection.retire()

    def _sweep(self) -> None:
        before = monotonic() - self._idle
        for origin in [one for one, server in self._servers.items() if server.idle and server.used < before]:
            self._forget(origin)
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._sweep) if self._servers else None


class _Chooser(asyncio.Protocol):
    """Hands a new connection to the version of HTTP that the server chose in TLS."""

    def __init__(self, on_ready: Callable[[], None], on_change: Callable[[Connection], None]) -> None:
        self._arguments = (on_ready, on_change)
        self.connection: Http1 | Http2 | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        self.connection = (Http2 if chosen == "h2" else Http1)(*self._arguments)
        transport.set_protocol(self.connection)
        self.connection.connection_made(transport)
