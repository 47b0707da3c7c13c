"""Opens connections to an SMP server: at which address, and as which service.

A server has the address that it answered at last, and perhaps a candidate: an address that a device has named since.
Any device can claim any address for a server, so a candidate counts when the right identity answers there. Both
addresses are tried at once: a server that has moved is found at its new address without waiting for a time-out at the
old one, and a false candidate delays nothing. A candidate that comes during an attempt starts another attempt.

Failures of the store are waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from weir.client.dialling import Dialler
from weir.client.smp import SmpClient
from weir.notifier.store.records import Fenced, Server
from weir.notifier.subscriber.credentials import service_credentials
from weir.notifier.subscriber.shared import Owned, Shared
from weir.transport.client import ConnectError
from weir.wire.address import ServerHost
from weir.wire.errors import BrokerErrorTag

_MAY_PASS = (BrokerErrorTag.NETWORK, BrokerErrorTag.TIMEOUT)


class Connector:
    """`server` is the record that the last attempt was made with."""

    def __init__(self, shared: Shared, owned: Owned) -> None:
        self.server: Server | None = None
        self._shared = shared
        self._servers = shared.store.servers
        self._owned = owned
        self._moved = asyncio.Event()

    def moved(self) -> None:
        """The server has a new candidate for its address."""
        self._moved.set()

    async def open(self, *, as_service: bool) -> SmpClient:
        """Raises ConnectError, and Fenced if the server is gone."""
        loop = asyncio.get_running_loop()
        while True:
            self._moved.clear()
            server = await self.refresh()
            attempt, moved = loop.create_task(self._connect(server, as_service)), loop.create_task(self._moved.wait())
            taken = False
            try:
                await asyncio.wait((attempt, moved), return_when=asyncio.FIRST_COMPLETED)
                if attempt.done():
                    taken = True
                    return attempt.result()
            finally:
                moved.cancel()
                if not taken:
                    _abandon(attempt)

    async def refresh(self) -> Server:
        """Read the server's record. Raises Fenced if the server is gone."""
        server = await self._owned.patiently(lambda: self._servers.fetch(self._owned.server_id))
        if server is None:
            raise Fenced
        self.server = server
        if self._shared.dialler.is_own(server.address):
            self._owned.state.name = server.address.hosts[0].decode("latin-1")
        return server

    async def _connect(self, server: Server, as_service: bool) -> SmpClient:
        owned, servers = self._owned, self._servers
        service = None
        if as_service:
            service = await owned.patiently(lambda: service_credentials(servers, owned.server_id))

        async def reject() -> None:
            candidate = server.candidate
            if candidate is not None:
                await owned.patiently(lambda: servers.rejected(owned.server_id, owned.epoch, candidate))

        client, address = await _race(
            self._shared.dialler,
            server,
            reject,
            service=service,
            keep_secrets=False,
            reply_timeout=self._shared.limits.reply_timeout,
        )
        if address != server.address:
            try:
                await owned.patiently(lambda: servers.verified(owned.server_id, owned.epoch, address))
            except BaseException:
                client.connection.abort()
                raise
        return client


async def _race(
    dialler: Dialler, server: Server, reject: Callable[[], Awaitable[None]], **options: Any
) -> tuple[SmpClient, ServerHost]:
    """Connect to the server, and say at which address. Raises the ConnectError of the recorded address.

    `reject` is called when the candidate's address is not the server's, or may not be dialled.
    """
    loop = asyncio.get_running_loop()
    addresses = [server.address, *([server.candidate] if server.candidate is not None else [])]
    attempts = {loop.create_task(dialler.connect(address, **options)): address for address in addresses}
    under_way = set(attempts)
    taken: asyncio.Task[SmpClient] | None = None
    failure: ConnectError | None = None
    try:
        while under_way:
            done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            for attempt in sorted(done, key=lambda one: attempts[one] != server.address):
                error = attempt.exception()
                if error is None:
                    taken = attempt
                    return attempt.result(), attempts[attempt]
                if not isinstance(error, ConnectError):
                    raise error
                if attempts[attempt] == server.address:
                    failure = error
                elif error.error not in _MAY_PASS:
                    await reject()
        assert failure is not None
        raise failure
    finally:
        for attempt in attempts:
            if attempt is not taken:
                _abandon(attempt)


def _abandon(attempt: asyncio.Task[SmpClient]) -> None:
    """End an attempt to connect, or the connection that it has made."""
    attempt.cancel()
    attempt.add_done_callback(_abort)


def _abort(attempt: asyncio.Task[SmpClient]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().connection.abort()
