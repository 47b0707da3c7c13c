"""The relays that this router forwards to as a proxy.

All clients share one session with a relay. The session is opened when a client asks for the relay. After a failure the
relay is not tried again for a while. An idle session is closed. The number of sessions is bounded, and so is the number
of failed relays.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from weir.client.dialling import Dialler
from weir.client.smp import SmpClient
from weir.router.config import Proxy as ProxyConfig
from weir.transport.client import ConnectError
from weir.wire.address import ServerHost
from weir.wire.errors import BrokerErrorTag, BrokerErrorType, BrokerTransport
from weir.wire.versions import SENDING_PROXY, SMP_RANGE, VersionRange

_VERSIONS = VersionRange(SENDING_PROXY, SMP_RANGE.max)
_TICK = 5.0


class RelayError(Exception):
    """No session with the relay could be opened. `error` is the reason for the client."""

    def __init__(self, error: BrokerErrorType) -> None:
        super().__init__(str(error))
        self.error = error


class Relay:
    """A session with a relay."""

    __slots__ = ("client", "own", "used", "waiting")

    def __init__(self, client: SmpClient, own: bool) -> None:
        self.client = client
        self.own = own
        self.used = monotonic()
        self.waiting = 0

    @property
    def session_id(self) -> bytes:
        return self.client.session.session_id


class Relays:
    """Sessions by address (for PRXY) and by session id (for PFWD)."""

    def __init__(self, config: ProxyConfig) -> None:
        self._config = config
        self._dialler = Dialler(config, allow_local=config.allow_local_relays, timeout=config.connect_timeout)
        self._by_address: dict[ServerHost, asyncio.Task[Relay]] = {}
        self._failed: dict[ServerHost, tuple[BrokerErrorType, float]] = {}  # reason, end of the pause; oldest first
        self._by_session: dict[bytes, Relay] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def __len__(self) -> int:
        return len(self._by_address)

    @property
    def forwards(self) -> int:
        """The number of forwarded commands that the relays have not answered yet."""
        return sum(relay.waiting for relay in self._by_session.values())

    def is_own(self, server: ServerHost) -> bool:
        return self._dialler.is_own(server)

    def session(self, session_id: bytes) -> Relay | None:
        relay = self._by_session.get(session_id)
        if relay is not None:
            relay.used = monotonic()
        return relay

    async def get(self, server: ServerHost) -> Relay:
        """Return the session with a relay, after opening it if there is none. Raises RelayError."""
        failed = self._failed.get(server)
        if failed is not None:
            if monotonic() < failed[1]:
                raise RelayError(failed[0])
            del self._failed[server]
        task = self._by_address.get(server)
        if task is None:
            if len(self._by_address) >= self._config.relay_limit and not self._close_longest_idle():
                raise RelayError(BrokerErrorTag.TIMEOUT)
            task = self._by_address[server] = asyncio.create_task(self._connect(server))
            task.add_done_callback(_retrieve)
        # Shielded, because other clients may wait for the same session.
        relay = await asyncio.shield(task)
        relay.used = monotonic()
        return relay

    async def close(self) -> None:
        self._timer.cancel()
        tasks = [*self._by_address.values(), *self._watchers]
        for relay in list(self._by_session.values()):
            relay.client.connection.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._by_address.clear()
        self._by_session.clear()

    async def _connect(self, server: ServerHost) -> Relay:
        try:
            client = await self._open(server)
        except RelayError as error:
            self._remember_failure(server, error.error)
            self._by_address.pop(server, None)
            raise
        except BaseException:
            self._by_address.pop(server, None)
            raise
        relay = Relay(client, self.is_own(server))
        self._by_session[relay.session_id] = relay
        watcher = asyncio.create_task(self._watch(relay))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return relay

    def _remember_failure(self, server: ServerHost, error: BrokerErrorType) -> None:
        if len(self._failed) >= self._config.relay_limit:
            del self._failed[next(iter(self._failed))]
        self._failed[server] = (error, monotonic() + self._config.error_ttl)

    async def _open(self, server: ServerHost) -> SmpClient:
        """Raises RelayError."""
        try:
            return await self._dialler.connect(
                server, versions=_VERSIONS, proxy=True, reply_timeout=self._config.request_timeout
            )
        except ConnectError as failure:
            error = failure.error
            raise RelayError(error if isinstance(error, BrokerErrorTag) else BrokerTransport(error)) from None

    async def _watch(self, relay: Relay) -> None:
        """Forget a session that has ended."""
        await relay.client.closed.wait()
        self._forget(relay)

    def _close_longest_idle(self) -> bool:
        """Close the session that has been idle for longest. Return False if all sessions are in use."""
        idle = [relay for relay in self._by_session.values() if not relay.waiting]
        if not idle:
            return False
        oldest = min(idle, key=lambda relay: relay.used)
        self._close(oldest)
        return True

    def _close(self, relay: Relay) -> None:
        self._forget(relay)
        relay.client.connection.close()

    def _forget(self, relay: Relay) -> None:
        """Forget this session, but no later session with the same relay."""
        self._by_session.pop(relay.session_id, None)
        for server, task in list(self._by_address.items()):
            if task.done() and not task.cancelled() and task.exception() is None and task.result() is relay:
                del self._by_address[server]

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)
        now = monotonic()
        for server, (_, until) in list(self._failed.items()):
            if until < now:
                del self._failed[server]
        for relay in list(self._by_session.values()):
            if not relay.waiting and now - relay.used > self._config.idle_ttl:
                self._close(relay)


def _retrieve(task: asyncio.Task[Relay]) -> None:
    """Mark the error as seen: whoever waits gets it, and perhaps nobody waits any more."""
    if not task.cancelled():
        task.exception()
