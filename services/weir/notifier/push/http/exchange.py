"""One request and its response, and what a connection is to those that use it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import Callable
from typing import Final, NamedTuple, cast

Headers = list[tuple[bytes, bytes]]

LARGEST_RESPONSE: Final = 8192
"""Bytes of a response's body that are kept. A server that sends more is cut off."""


class Origin(NamedTuple):
    host: str
    port: int

    @property
    def authority(self) -> bytes:
        return (self.host if self.port == 443 else f"{self.host}:{self.port}").encode()


class Request(NamedTuple):
    """A POST. Header names are lower case."""

    origin: Origin
    path: bytes
    headers: Headers
    body: bytes


class Response(NamedTuple):
    """Header names are lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class HttpError(Exception):
    """There is no response. The text is for logs and names no path."""


class Unreachable(HttpError):
    """No connection could be opened."""


class Forbidden(HttpError):
    """The host has no address that may be dialled."""


class Refused(HttpError):
    """The server did not process the request."""


class Lost(HttpError):
    """The connection failed, or the time was over: the server may have processed the request."""


class Connection(asyncio.Protocol, ABC):
    """A connection after its TLS handshake. A version of HTTP is a subclass.

    `on_ready` is called when requests may be sent. `on_change` is called when there is room again, when the connection
    takes no more requests, and when it is closed.
    """

    def __init__(self, on_ready: Callable[[], None], on_change: Callable[[Connection], None]) -> None:
        self.on_ready = on_ready
        self.on_change = on_change
        self.retired = False  # takes no further requests, and closes after those in flight
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    @property
    @abstractmethod
    def room(self) -> int:
        """How many requests may be sent now. 0 on a connection that is retired."""

    @property
    @abstractmethod
    def in_flight(self) -> int: ...

    @abstractmethod
    def send(self, request: Request, timeout: float) -> Future[Response]:
        """Send a request while there is room. The future raises Refused or Lost."""

    def retire(self) -> None:
        if not self.retired:
            self.retired = True
            self.on_change(self)
            self._close_if_done()

    def abort(self) -> None:
        """Close at once. Requests in flight are lost."""
        self.retired = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.retired = self.closed = True
        self.on_change(self)

    def _close_if_done(self) -> None:
        if self.retired and not self.in_flight and self._transport is not None:
            self._transport.close()
