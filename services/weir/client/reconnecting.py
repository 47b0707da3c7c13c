"""One connection to a router that is opened again whenever it ends: the loop under everything that keeps subscriptions.

    open ──► connected ──► work ◄──► wait for work, PING when it is quiet
     ▲  │                   │
     │  └─ ConnectError     │ the connection ended, or the router no longer answers
     └──── pause ◄──────────┴── disconnected

Pauses double from the first to the longest one, and are drawn at random below that, so that the clients of a router
that restarts do not come back all at once.

A router refuses the certificate of a service also while its own store fails. So the service is given up, and the next
attempt is without it, when the router has refused it for a while. Giving up costs one SUB for each of its queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from abc import ABC, abstractmethod
from time import monotonic

from weir.client.dialling import SERVICE_REFUSED
from weir.client.errors import ClientError, NoServiceSession, UnexpectedReply
from weir.client.events import Mismatch, ServiceFailed, ServiceSubscribed, ServiceUnavailable, mismatch
from weir.client.smp import ServiceSub, SmpClient
from weir.transport.client import ConnectError
from weir.wire.smp.commands import ServiceRole
from weir.wire.versions import RCV_SERVICE

_log = logging.getLogger(__name__)


class Pauses:
    """Growing pauses with jitter. `longest` may be changed."""

    def __init__(self, first: float, longest: float) -> None:
        self.longest = longest
        self._first = first
        self._next = first

    def reset(self) -> None:
        self._next = self._first

    def next(self) -> float:
        """The next pause: between half of the present bound and the bound, which doubles with every call."""
        bound = min(self._next, self.longest)
        self._next = bound * 2
        return random.uniform(bound / 2, bound)


class Reconnecting(ABC):
    """Keeps a connection to one router. A subclass says how it is opened and what is done with it."""

    def __init__(self, *, first_retry: float, max_retry: float, ping_interval: float, refused_after: float) -> None:
        """Times are in seconds. `ping_interval` 0 means that PING is never sent."""
        self.client: SmpClient | None = None
        self._wake = asyncio.Event()
        self._closing = False
        self._first_retry = first_retry
        self._pauses = Pauses(first_retry, max_retry)
        self._ping_interval = ping_interval
        self._refused_after = refused_after
        self._refused_since: float | None = None
        self._hurry = asyncio.Event()

    @abstractmethod
    async def _open(self) -> SmpClient:
        """Connect. Raises ConnectError."""

    @abstractmethod
    async def _service_refused(self) -> bool:
        """Give up the service whose certificate the router refused. Return False if there was none."""

    @abstractmethod
    def _on_connected(self, client: SmpClient) -> None:
        """Take the new connection. Nothing has been received on it yet."""

    @abstractmethod
    async def _work(self, client: SmpClient) -> None:
        """Send what waits to be sent. Called after the connection is made, and whenever `_wake` is set."""

    @abstractmethod
    def _on_disconnected(self) -> None:
        """The connection has ended. Not called when this object is closed."""

    def _on_failed(self, error: ConnectError) -> None:
        """An attempt to connect failed."""
        _log.debug("cannot connect to a router (%s)", error.error.value)

    async def _run(self) -> None:
        """An unexpected error, e.g. of the owner's callback, does not end the loop: it connects again."""
        while not self._closing:
            try:
                await self._connect_and_work()
            except Exception as error:
                _log.error("the client of a router failed and connects again (%s)", type(error).__name__)
                await asyncio.sleep(self._first_retry)

    async def _connect_and_work(self) -> None:
        while not self._closing:
            try:
                client = await self._open()
            except ConnectError as error:
                if error.error in SERVICE_REFUSED and self._is_refused() and await self._service_refused():
                    continue
                self._on_failed(error)
                await self._pause()
                continue
            self._refused_since = None
            connected_at = monotonic()
            await self._serve_connection(client)
            if monotonic() - connected_at >= self._first_retry:
                self._pauses.reset()
            else:  # a router that ends every connection at once is not asked again at once
                await self._pause()

    def _is_refused(self) -> bool:
        """Whether the router has refused the service for long enough."""
        now = monotonic()
        if self._refused_since is None:
            self._refused_since = now
        return now - self._refused_since >= self._refused_after

    async def _pause(self) -> None:
        """Wait before the next attempt. `hurry` ends the pause."""
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pauses.next()):
                await self._hurry.wait()

    def hurry(self) -> None:
        """Something has changed: do not wait for the next attempt to connect."""
        self._pauses.reset()
        self._hurry.set()

    async def _serve_connection(self, client: SmpClient) -> None:
        self.client = client
        client.on_close = self._wake.set
        try:
            self._on_connected(client)
            while not client.closed.is_set():
                self._wake.clear()
                await self._work(client)
                await self._wait_for_work(client)
        except ClientError:
            client.connection.abort()
            await client.closed.wait()
        finally:
            client.connection.close()
            self.client = None
            if not self._closing:
                self._on_disconnected()

    async def _wait_for_work(self, client: SmpClient) -> None:
        """Wait for work. PING fails with ClientError if the router no longer answers."""
        interval = self._ping_interval or None
        while not self._wake.is_set():
            try:
                async with asyncio.timeout(interval):
                    await self._wake.wait()
            except TimeoutError:
                await self._ping(client)

    async def _ping(self, client: SmpClient) -> None:
        """Find out whether the router still answers. Raises ClientError."""
        await client.ping()


async def subscribe_service(
    client: SmpClient, role: ServiceRole, expected: ServiceSub
) -> ServiceSubscribed | ServiceFailed | ServiceUnavailable:
    """Subscribe to all queues of a service. Raises ClientError if the router does not answer.

    The service is unavailable if the connection is not that service's, or if the router answers that it is unknown.
    """
    if client.service_id != expected.service_id:
        return ServiceUnavailable(expected)
    try:
        subscribed = await client.subscribe_service(role, expected.count, expected.ids_hash)
    except NoServiceSession:
        return ServiceUnavailable(expected)
    except UnexpectedReply as error:
        return ServiceFailed(expected, error.reply)
    difference = mismatch(expected, subscribed)
    if difference is Mismatch.IDS_HASH and client.session.version < RCV_SERVICE:
        difference = None  # SOKS has no hash before this version
    return ServiceSubscribed(expected, subscribed, difference)


def has_lost_queues(result: ServiceSubscribed) -> bool:
    """Whether the router knows the service and none of its queues. They must be subscribed one by one."""
    return result.expected.count > 0 and result.subscribed.count == 0
