"""An edge without a protocol: its presence in Redis, and events that the test leaves for it as a script would."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from weir.redis.connect import make_topology
from weir.redis.partitions import PARTITIONS
from weir.redis.resp import command
from weir.redis.topology import Topology
from weir.redis.url import parse
from weir.runtime.presence import Presence, PresenceKeys, PresenceTimes


def presence_keys(edge: bytes) -> PresenceKeys:
    partitions = range(PARTITIONS)
    return PresenceKeys(
        [b"{%d}:lease:%b" % (p, edge) for p in partitions],
        [b"{%d}:inbox:%b" % (p, edge) for p in partitions],
        b"poke:%b" % edge,
        [b"{%d}:poke:%b" % (p, edge) for p in partitions],
    )


class TestEdge:
    __test__ = False

    def __init__(self, topology: Topology, edge: bytes, times: PresenceTimes) -> None:
        self.topology = topology
        self.keys = presence_keys(edge)
        self.events: list[bytes] = []
        self.lost = self.restored = self.lapsed = 0
        self._changed = asyncio.Event()
        self.presence = Presence(
            topology,
            self.keys,
            times,
            lambda raw: raw,
            self._on_event,
            on_lost=self._on_lost,
            on_restored=self._on_restored,
            on_lapsed=self._on_lapsed,
        )
        topology.on_up = self.presence.reconnected

    def _on_event(self, event: bytes) -> None:
        self.events.append(event)
        self._changed.set()

    def _on_lost(self) -> None:
        self.lost += 1
        self._changed.set()

    def _on_restored(self) -> None:
        self.restored += 1
        self._changed.set()

    def _on_lapsed(self) -> None:
        self.lapsed += 1
        self._changed.set()

    async def until(self, condition: Callable[[], bool], limit: float = 20.0) -> None:
        async with asyncio.timeout(limit):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, p: int, *words: bytes | int) -> object:
        return await self.topology.muxes[p].ask(command(*words))

    async def leave(self, to: "TestEdge", p: int, *events: bytes) -> None:
        """Appends events to the inbox of an edge and pokes as a script does."""
        for event in events:
            length = await self.ask(p, b"RPUSH", to.keys.inboxes[p], event)
            assert isinstance(length, int)
            if length <= 2:
                await self.poke(to, p)

    async def poke(self, to: "TestEdge", p: int) -> None:
        if self.topology.scripts.sharded:
            await self.ask(p, b"SPUBLISH", to.keys.shard_channels[p], p)
        else:
            await self.ask(p, b"PUBLISH", to.keys.channel, p)


@asynccontextmanager
async def edge(
    url: str, name: bytes, *, lease: float = 10.0, refresh: float = 3.0, poll: float = 1000.0, deadline: float = 5.0
) -> AsyncIterator[TestEdge]:
    topology = make_topology(parse(url), deadline=deadline)
    await topology.probe()
    await topology.open()
    edge = TestEdge(topology, name, PresenceTimes(lease, refresh, poll, 5.0))
    await edge.presence.start()
    try:
        yield edge
    finally:
        await edge.presence.close()
        await topology.close()
