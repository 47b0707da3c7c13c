"""An edge as far as pushes are concerned: a store on Redis, tokens in it, and a dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.notifier.store.harness import PLACEMENT_KEY, STORAGE_KEY, NtfEdge
from weir.notifier.config import Push as PushSettings
from weir.notifier.outcome import Delivered, Outcome
from weir.notifier.push.dispatcher import Dispatcher
from weir.notifier.push.provider import Provider
from weir.notifier.stats import Stats
from weir.notifier.store.records import Push, Received, Subscription
from weir.notifier.store.store import Store, StoreConfig
from weir.wire.ntf.types import PushProvider


class Held(Provider):
    """A provider whose pushes end when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: asyncio.Queue[Push] = asyncio.Queue()
        self.outcome: Outcome = Delivered()
        self.open = asyncio.Event()
        self.pause = 0.0

    def lane(self, push: Push) -> str:
        return push.token.device.token.decode().partition("/")[0] if b"/" in push.token.device.token else ""

    def paused(self) -> float:
        return self.pause

    async def send(self, push: Push) -> Outcome:
        self.sent.put_nowait(push)
        await self.open.wait()
        return self.outcome


class Edge(NtfEdge):
    def __init__(self, store: Store, stats: Stats, dispatcher: Dispatcher) -> None:
        super().__init__(store)
        self.stats = stats
        self.dispatcher = dispatcher

    async def close(self) -> None:
        await self.dispatcher.close()
        await super().close()

    async def notify(self, sub: Subscription) -> Received:
        """NMSG, as the subscriber handles it."""
        received = await self.receive(sub, claim=[each for each in PushProvider if self.dispatcher.room(each)])
        if received.push is not None:
            self.dispatcher.offer(received.push)
        return received


async def open_edge(
    url: str,
    providers: Mapping[PushProvider, Provider],
    *,
    queue: int = 1000,
    timeout: float = 20.0,
    claim: float = 30.0,
    **options: Any,
) -> Edge:
    store = await Store.open(
        StoreConfig(url=url, placement_key=PLACEMENT_KEY, storage_key=STORAGE_KEY, claim=claim, poll=1.0)
    )
    stats = Stats()
    await store.stats.publish_edge({})
    settings = PushSettings(queue=queue, timeout=timeout)
    return Edge(store, stats, Dispatcher(store, providers, stats, settings, **options))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)
