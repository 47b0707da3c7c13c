"""An edge's side of the notifier's store for tests, with devices, queues and keys to use."""

import os
from typing import Any

from tests.support.store_edge import StoreEdge
from weir.crypto.keys import KeyPair, generate
from weir.notifier.outcome import Delivered
from weir.notifier.store.records import Push, PushKind, Received, Status, Subscription, Token
from weir.notifier.store.store import Store, StoreConfig
from weir.wire.address import ServerHost
from weir.wire.ntf.types import DeviceToken, PushProvider, SmpQueueNtf

PLACEMENT_KEY = bytes(range(32))
STORAGE_KEY = bytes(range(32, 64))
NOW = 1_750_000_000
APNS = PushProvider.APNS_PROD
SMP1 = ServerHost((b"smp1.example.org",), b"5223", b"1" * 32)
SMP2 = ServerHost((b"smp2.example.org", b"smp2.example.net"), b"", b"2" * 32)
KEY = generate("ed25519")


def device(provider: PushProvider = APNS) -> DeviceToken:
    return DeviceToken(provider, os.urandom(32))


def queue(server: ServerHost = SMP1, notifier_id: bytes | None = None) -> SmpQueueNtf:
    return SmpQueueNtf(server, notifier_id or os.urandom(24))


class NtfEdge(StoreEdge):
    store: Store

    async def registered(self, given: DeviceToken | None = None, key: KeyPair = KEY) -> Token:
        """A token after TNEW, with its verification due."""
        found = await self.store.tokens.register(given or device(), key.spki, generate().public)
        assert found is not None
        return found.token

    async def active(self, given: DeviceToken | None = None, key: KeyPair = KEY) -> Token:
        """A token after its verification push and TVFY."""
        token = await self.registered(given, key)
        push = await self.store.pushes.claim(token)
        assert push is not None and push.kind is PushKind.VERIFICATION
        await self.store.pushes.done(push, Delivered())
        current = await self.fetched(token)
        assert await self.store.tokens.activate(current, current.code) is Status.OK
        return await self.fetched(token)

    async def fetched(self, token: Token) -> Token:
        found = await self.store.tokens.fetch(token.id)
        assert found is not None
        return found

    async def subscription(
        self, token: Token, given: SmpQueueNtf | None = None, ntf_key: bytes = KEY.pkcs8
    ) -> Subscription:
        created = await self.store.subscriptions.create(token, given or queue(), ntf_key)
        assert created is not None
        return created.subscription

    async def status(self, sub: Subscription) -> Any:
        found = await self.store.subscriptions.fetch(sub.id)
        return None if found is None else found[0].status

    async def owned(self, server_id: bytes) -> int:
        epoch = await self.store.servers.own(server_id)
        assert epoch is not None
        return epoch

    async def receive(
        self, sub: Subscription, *, ts: int = NOW, nonce: bytes | None = None, claim: Any = (APNS,)
    ) -> Received:
        return await self.store.notifications.received(
            sub.server_id, sub.queue.notifier_id, nonce or os.urandom(24), b"meta", ts, claim
        )

    async def due(self, provider: PushProvider = APNS, limit: int = 100) -> list[Push]:
        """What is due in all partitions."""
        return [push for p in range(64) for push in await self.store.pushes.due(p, {provider: limit})]

    async def pending(self, server_id: bytes, epoch: int, **options: Any) -> list[Subscription]:
        return [sub async for page in self.store.servers.pending(server_id, epoch, **options) for sub in page]


async def open_edge(url: str, **settings: Any) -> NtfEdge:
    keys = {"placement_key": PLACEMENT_KEY, "storage_key": STORAGE_KEY} | settings
    return NtfEdge(await Store.open(StoreConfig(url, **keys)))
