"""A notification router's sessions on a real Redis, with real TLS. Pushes stop at a list, so that tests read codes."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weir.client.ntf import NtfAnswer, NtfClient
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.notifier.config import NotifierConfig, Redis, Transport
from weir.notifier.notifier import Shared
from weir.notifier.outcome import Delivered
from weir.notifier.session.outgoing import LIMITS
from weir.notifier.stats import Stats
from weir.notifier.store.records import Push, PushKind
from weir.notifier.store.store import Store, StoreConfig
from weir.surface.settings import Http
from weir.transport.ntf import NTF, NtfConnection
from weir.transport.server import Listener, bind, serve
from weir.wire.address import ServerHost, SmpAddress
from weir.wire.errors import ErrorType
from weir.wire.ntf.types import (
    ERR,
    IDSUB,
    IDTKN,
    OK,
    SNEW,
    TNEW,
    TVFY,
    DeviceToken,
    NtfCommand,
    NtfReply,
    PushProvider,
    SmpQueueNtf,
)

LIMIT = 10.0
TAKEN = (PushProvider.APNS_PROD, PushProvider.APNS_NULL)


class Pushes:
    """Takes every push and keeps it."""

    def __init__(self) -> None:
        self.taken: list[Push] = []
        self._came = asyncio.Event()

    def room(self, provider: PushProvider) -> bool:
        return True

    def offer(self, push: Push) -> None:
        self.taken.append(push)
        self._came.set()

    async def verification(self, token_id: bytes) -> Push:
        """Wait for the code of a token."""
        async with asyncio.timeout(LIMIT):
            while True:
                for push in self.taken:
                    if push.token.id == token_id and push.kind is PushKind.VERIFICATION:
                        self.taken.remove(push)
                        return push
                self._came.clear()
                await self._came.wait()


def store_config(redis_url: str, directory: Path, prefix: str) -> StoreConfig:
    return StoreConfig(redis_url, read(directory / "placement.key"), read(directory / "storage.key"), prefix=prefix)


def read(path: Path) -> bytes:
    if not path.exists():
        path.write_bytes(os.urandom(32))
    return path.read_bytes()


def notifier_config(redis_url: str, identity: Path, directory: Path, **sections: Any) -> NotifierConfig:
    for name in ("placement.key", "storage.key"):
        read(directory / name)
    config = NotifierConfig(
        transport=Transport(hosts=("127.0.0.1",), listen="127.0.0.1", identity=identity),
        redis=Redis(url=redis_url, placement_key=directory / "placement.key", storage_key=directory / "storage.key"),
        http=Http(port=0, metrics_port=0),
    )
    return replace(config, **sections)


@dataclass
class Router:
    shared: Shared
    listener: Listener[NtfConnection]
    pushes: Pushes
    unowned: list[bytes] = field(default_factory=list)
    clients: list[NtfClient] = field(default_factory=list)

    @classmethod
    async def start(
        cls, config: NotifierConfig, directory: Path, providers: Sequence[PushProvider] = TAKEN, **options: Any
    ) -> Router:
        store = await Store.open(store_config(config.redis.url, directory, config.redis.prefix))
        pushes = Pushes()
        shared = Shared(config, store, Stats(), providers, pushes, **options)

        async def no_questions(_question: object) -> None:
            raise AssertionError

        identity = NTF.identity(config.transport.identity)
        sock = bind("127.0.0.1", 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)  # a slow reader shows soon
        listener = await serve(NTF, LIMITS, identity, shared.on_session, no_questions, socks=[sock])
        router = cls(shared, listener, pushes)
        shared.on_unowned = router.unowned.append
        return router

    @property
    def address(self) -> SmpAddress:
        return SmpAddress(self.listener.identity.fingerprint, ("127.0.0.1",), self.listener.ports[0], scheme="ntf")

    async def device(self, **options: Any) -> Device:
        client = await NtfClient.connect(self.address, reply_timeout=LIMIT, **options)
        self.clients.append(client)
        await client.ping()  # the router has the session from now on
        return Device(self, client)

    async def close(self) -> None:
        for client in self.clients:
            client.connection.abort()
        await self.listener.close()
        await self.shared.close()
        await self.shared.store.close()


@dataclass
class Device:
    """A client of the router, and what it does with a token."""

    router: Router
    client: NtfClient

    async def do(self, command: NtfCommand, entity_id: bytes = b"", key: KeyPair | None = None) -> NtfAnswer:
        return await self.client.send(command, entity_id, key)

    async def register(self, device: DeviceToken | None = None, key_type: KeyType = "x25519") -> Registration:
        """TNEW: the token is registered, and its code is pushed."""
        device = device or apns_token()
        key, dh_key = generate(key_type), generate("x25519")
        reply = await self.do(TNEW(device, key.spki, dh_key.public), b"", key)
        assert isinstance(reply, IDTKN), reply
        return Registration(self, device, key, dh_key, reply)

    async def activate(self, **options: Any) -> Registration:
        token = await self.register(**options)
        assert await token.do(TVFY(await token.code())) == OK()
        return token


@dataclass
class Registration:
    device: Device
    token: DeviceToken
    key: KeyPair
    dh_key: KeyPair
    ids: IDTKN

    @property
    def id(self) -> bytes:
        return self.ids.token_id

    async def do(self, command: NtfCommand, entity_id: bytes | None = None) -> NtfAnswer:
        return await self.device.do(command, self.id if entity_id is None else entity_id, self.key)

    async def code(self) -> bytes:
        """The code that is pushed to the device."""
        pushes, store = self.device.router.pushes, self.device.router.shared.store
        push = await pushes.verification(self.id)
        await store.pushes.done(push, Delivered())
        return push.token.code

    async def subscribe(self, queue: SmpQueueNtf | None = None, ntf_key: KeyPair | None = None) -> NtfAnswer:
        """SNEW."""
        key = ntf_key or generate("ed25519")
        return await self.do(SNEW(self.id, queue or smp_queue(), key.pkcs8), b"")

    async def subscription(self) -> bytes:
        reply = await self.subscribe()
        assert isinstance(reply, IDSUB), reply
        return reply.sub_id


def apns_token() -> DeviceToken:
    return DeviceToken(PushProvider.APNS_PROD, os.urandom(32))


def smp_queue() -> SmpQueueNtf:
    return SmpQueueNtf(ServerHost((b"smp.example.org",), b"5223", bytes(32)), os.urandom(24))


def err(error: ErrorType) -> NtfReply:
    return ERR(error)
