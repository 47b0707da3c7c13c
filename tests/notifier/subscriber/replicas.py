"""Replicas of the subscriber on one store, SMP edges they subscribe to, and devices that make subscriptions."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.router.fleet import Fleet, Peer, Queue
from weir.client.smp import SmpClient
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.notifier.outcome import Delivered
from weir.notifier.store.records import Push, Status, Token
from weir.notifier.store.store import Store, StoreConfig
from weir.notifier.subscriber.session import Session
from weir.notifier.subscriber.settings import Limits
from weir.notifier.subscriber.subscriber import Subscriber
from weir.redis.embedded import Embedded
from weir.redis.errors import Unavailable
from weir.wire.address import SmpAddress
from weir.wire.ntf.push import PNMessageData
from weir.wire.ntf.types import DeviceToken, PushProvider, SmpQueueNtf, SubError, SubStatus
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import Command
from weir.wire.smp.replies import NID, OK

LIMITS = Limits(
    tick=0.05,
    look=0.5,
    settle=0.3,
    patience=1.0,
    grace=2.0,
    first_retry=0.05,
    max_retry=0.3,
    connect_timeout=5.0,
    reply_timeout=5.0,
    refused_after=0.0,
    store_retry=0.02,
    max_store_retry=0.2,
    first_walk_retry=0.1,
    max_walk_retry=0.5,
    publish=0.05,
)


@dataclass
class Settings:
    host_mode: str = "public"
    required_host_mode: bool = False
    own_server_domains: tuple[str, ...] = ("127.0.0.1",)
    socks_proxy: str | None = None
    socks_mode: str = "onion"
    use_service_credentials: bool = True
    allow_local_servers: bool = True


class Pushes:
    """A dispatcher that delivers every push at once."""

    def __init__(self, store: Store) -> None:
        self.full = False
        self.offered: list[Push] = []
        self.contexts: list[bytes] = []
        self.delivered: list[PNMessageData] = []
        self._store = store
        self._tasks: set[asyncio.Task[None]] = set()

    def offer(self, push: Push, context: bytes = b"", received: float = 0.0) -> None:
        self.contexts.append(context)
        assert not self.full, "an offer without room"
        self.offered.append(push)
        task = asyncio.get_running_loop().create_task(self._deliver(push))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def room(self, provider: PushProvider) -> bool:
        return not self.full

    async def _deliver(self, push: Push | None) -> None:
        while push is not None:
            self.delivered += push.messages
            try:
                push = await self._store.pushes.done(push, Delivered())
            except Unavailable:
                return

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass
class Replica:
    store: Store
    subscriber: Subscriber
    pushes: Pushes

    @property
    def sessions(self) -> list[Session]:
        return list(self.subscriber._sessions.values())

    @property
    def owned(self) -> set[bytes]:
        return {session.owned.server_id for session in self.sessions}


@dataclass
class Notifier:
    """A queue with a notifier, and the subscription to it."""

    queue: Queue
    id: bytes
    key: KeyPair
    sub_id: bytes = b""


class Replicas:
    """Replicas of one notification router. `redis` holds its state."""

    def __init__(self, redis: Embedded) -> None:
        self.redis = redis
        self.all: list[Replica] = []
        self.deadline = 5.0  # for the store's calls, in seconds; less for tests with `store_down`
        self.prefix = "ntf" + os.urandom(4).hex()
        self._placement, self._storage = os.urandom(32), os.urandom(32)

    async def store(self, **options: Any) -> Store:
        config = StoreConfig(
            self.redis.url,
            self._placement,
            self._storage,
            prefix=self.prefix,
            deadline=self.deadline,
            lease=3.0,
            lease_refresh=0.4,
            poll=0.5,
        )
        return await Store.open(replace(config, **options))

    async def add(self, *, limits: Limits = LIMITS, **settings: Any) -> Replica:
        store = await self.store()
        pushes = Pushes(store)
        subscriber = Subscriber(store, pushes, Settings(**settings), limits=limits)
        store.on_event = subscriber.on_event
        store.broadcast.work = subscriber.on_task
        replica = Replica(store, subscriber, pushes)
        self.all.append(replica)
        await store.stats.publish_edge({})
        await subscriber.start()
        return replica

    async def stop(self, replica: Replica) -> None:
        """As SIGTERM."""
        self.all.remove(replica)
        await replica.subscriber.drain()
        await replica.subscriber.close()
        await replica.pushes.close()
        await replica.store.close()

    async def kill(self, replica: Replica) -> None:
        """As kill -9: nothing is released, nothing is said, leases expire by themselves."""
        self.all.remove(replica)
        await replica.store.topology.close()
        subscriber = replica.subscriber
        subscriber._draining = True
        await subscriber._background.close()
        for session in replica.sessions:
            session._closing = session._stopping = True
            session._receiver.abandon()
            session._task.cancel()
            if session.client is not None:
                session.client.connection.abort()
        await replica.pushes.close()

    async def close(self) -> None:
        for replica in self.all:
            await replica.subscriber.close()
            await replica.pushes.close()
            await replica.store.close()

    async def token(self) -> Token:
        """A new device's token, ACTIVE."""
        store = self.all[0].store
        device = DeviceToken(PushProvider.APNS_TEST, os.urandom(32))
        registered = await store.tokens.register(device, generate("ed25519").spki, generate("x25519").public)
        assert registered is not None
        push = await store.pushes.claim(registered.token)
        assert push is not None
        await store.pushes.done(push, Delivered())
        assert await store.tokens.activate(push.token, push.token.code) is Status.OK
        token = await store.tokens.fetch(registered.token.id)
        assert token is not None
        return token

    async def subscribe(self, notifier: Notifier, address: str, replica: int = 0) -> None:
        server = SmpAddress.parse(address)
        assert server is not None
        one = self.all[replica]
        created = await one.store.subscriptions.create(
            await self.token(), SmpQueueNtf(server.server_host, notifier.id), notifier.key.pkcs8
        )
        assert created is not None
        notifier.sub_id = created.subscription.id
        if not created.owned:
            one.subscriber.announce()

    async def status(self, notifier: Notifier) -> SubStatus | SubError | None:
        found = await self.all[0].store.subscriptions.fetch(notifier.sub_id)
        return None if found is None else found[0].status

    async def statuses(self, notifiers: list[Notifier]) -> Counter[SubStatus | SubError | None]:
        return Counter([await self.status(one) for one in notifiers])

    async def subscribe_all(self, notifiers: list[Notifier], address: str) -> None:
        """Subscribe, and wait until all are active."""
        await asyncio.gather(*(self.subscribe(one, address) for one in notifiers))
        await self.until_status(notifiers)
        states = [state for one in self.all for state in one.subscriber.servers()]
        await until(lambda: all(state.subscribed for state in states if state.connected))

    def received(self) -> set[bytes]:
        """The notifiers of all notifications that any replica has pushed."""
        return {one.queue.notifier_id for replica in self.all for one in replica.pushes.delivered}

    async def until_received(self, count: int) -> None:
        await until(lambda: len(self.received()) >= count)

    @asynccontextmanager
    async def store_down(self) -> AsyncIterator[None]:
        """Redis does not answer."""
        os.kill(self.redis.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.redis.pid, signal.SIGCONT)

    async def until_status(
        self, notifiers: list[Notifier], status: SubStatus | SubError = SubStatus.ACTIVE, limit: float = 15.0
    ) -> None:
        async with asyncio.timeout(limit):
            while set(await self.statuses(notifiers)) != {status}:
                await asyncio.sleep(0.02)


async def notifier(peer: Peer, key_type: KeyType = "x25519") -> Notifier:
    """Make a queue with a notifier."""
    queue = await peer.new(key_type)
    key = generate(key_type)
    reply = await peer.do(cmd.NKEY(key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
    assert isinstance(reply, NID), reply
    return Notifier(queue, reply.ntf_id, key)


async def notifiers(fleet: Fleet, count: int, *, edge: int = 0, key_type: KeyType = "x25519") -> list[Notifier]:
    peer = await fleet.client(edge)
    return list(await asyncio.gather(*(notifier(peer, key_type) for _ in range(count))))


@contextmanager
def commands_sent() -> Iterator[list[type[Command]]]:
    """The commands that clients of this process send meanwhile."""
    sent: list[type[Command]] = []
    submit = SmpClient.submit

    def watched(self: SmpClient, command: Command, *args: Any, **options: Any) -> bytes:
        sent.append(type(command))
        return submit(self, command, *args, **options)

    SmpClient.submit = watched  # type: ignore[assignment,method-assign]
    try:
        yield sent
    finally:
        SmpClient.submit = submit  # type: ignore[method-assign]


async def reconnect(session: Session) -> SmpClient:
    """End the session's connection and wait for the next one. Returns the old one."""
    client = session.client
    assert client is not None
    client.connection.abort()
    await until(lambda: session.client not in (None, client))
    return client


@contextmanager
def refusing_services(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """The router's store fails in the handshake of every service. The event is set when one was refused."""
    refused = asyncio.Event()

    async def refuse(*_: object, **__: object) -> None:
        refused.set()
        raise Unavailable

    with monkeypatch.context() as refusing:
        for edge in fleet.edges:
            refusing.setattr(edge.store.registry, "ensure_service", refuse)
        yield refused


async def send(peer: Peer, one: Notifier, body: bytes = b"hello") -> None:
    assert await peer.send(one.queue, body, notification=True) == OK()


async def until(condition: Callable[[], object], limit: float = 10.0) -> None:
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.01)
