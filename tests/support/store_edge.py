"""An edge's side of a store for tests, and what tests of stores share: events in order, dumps, a full Redis."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from tests.support.redis import RedisServer, client_of
from weir.runtime.state.calls import Calls


class StoreEdge:
    """`store` is that of a router. Its events are kept."""

    __test__ = False

    def __init__(self, store: Any) -> None:
        self.store = store
        self.events: list[Any] = []
        self.lost = 0
        self.restored = 0
        self._came = asyncio.Event()
        store.on_event = self._on_event
        store.on_lost = self._on_lost
        store.on_restored = self._on_restored

    def _on_event(self, event: Any) -> None:
        self.events.append(event)
        self._came.set()

    def _on_lost(self) -> None:
        self.lost += 1
        self._came.set()

    def _on_restored(self) -> None:
        self.restored += 1
        self._came.set()

    async def until(self, condition: Callable[[], bool], limit: float = 20.0) -> None:
        """Waits for events (or a lost or restored lease) that make the condition true."""
        async with asyncio.timeout(limit):
            while not condition():
                self._came.clear()
                await self._came.wait()

    async def settled(self) -> list[Any]:
        """All events that Redis has for this edge by now."""
        self.store.inbox.drain_all()
        for _ in range(3):
            await asyncio.gather(*(mux.ask(b"*1\r\n$4\r\nPING\r\n") for mux in self.store.topology.nodes))
        return self.events

    async def close(self) -> None:
        await self.store.close()


E = TypeVar("E", bound=StoreEdge)


async def opener(
    server: RedisServer, open_edge: Callable[..., Awaitable[E]]
) -> AsyncIterator[Callable[..., Awaitable[E]]]:
    """A function that opens edges on this server. They are closed at the end."""
    opened: list[E] = []

    async def open_one(**settings: Any) -> E:
        edge = await open_edge(server.url, **settings)
        opened.append(edge)
        return edge

    yield open_one
    for edge in opened:
        await edge.close()


async def dump(calls: Calls, skips: Callable[[bytes], bool], fields: frozenset[bytes]) -> dict[bytes, Any]:
    """All that Redis holds, but keys that `skips` and these fields of hashes. Scores are left out."""
    contents: dict[bytes, Any] = {}
    for key in await calls.ask(0, b"KEYS", b"*"):
        if skips(key):
            continue
        kind = await calls.ask(0, b"TYPE", key)
        if kind == b"hash":
            flat = await calls.ask(0, b"HGETALL", key)
            contents[key] = {f: v for f, v in zip(flat[::2], flat[1::2], strict=True) if f not in fields}
        elif kind == b"list":
            contents[key] = await calls.ask(0, b"LRANGE", key, 0, -1)
        elif kind == b"zset":
            contents[key] = sorted(await calls.ask(0, b"ZRANGE", key, 0, -1))
        elif kind == b"set":
            contents[key] = sorted(await calls.ask(0, b"SMEMBERS", key))
        else:
            contents[key] = await calls.ask(0, b"GET", key)
    return contents


def fill(server: RedisServer, *, full: bool) -> None:
    """Make Redis' memory full, or give it memory again."""
    for node in server.nodes:
        with client_of(node) as client:
            client.config_set("maxmemory", "1" if full else "0")
