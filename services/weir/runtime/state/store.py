"""What the stores of all routers are: events of this edge, its presence in Redis, opening and closing."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from weir.redis.errors import StoreError, Unavailable
from weir.redis.failures import Failures
from weir.redis.partitions import Partitions
from weir.redis.scripts import Folders
from weir.redis.topology import Topology
from weir.runtime.broadcast import Broadcast
from weir.runtime.inbox import Event
from weir.runtime.presence import Presence, PresenceTimes
from weir.runtime.state.calls import Calls
from weir.runtime.state.keys import CommonKeys
from weir.runtime.state.numbers import Numbers
from weir.runtime.state.opening import RedisSettings, check_key, open_topology, unreachable
from weir.runtime.state.rollups import RollupStream

_OTHER_PLACEMENT = "the placement key is not the key that the data in this Redis was placed with"


class EdgeSettings(RedisSettings, Protocol):
    """All times are in seconds."""

    @property
    def prefix(self) -> str: ...
    @property
    def lease(self) -> float: ...
    @property
    def lease_refresh(self) -> float: ...
    @property
    def poll(self) -> float: ...


class EdgeStore(ABC, Generic[Event]):
    """Set `on_event` and the rest before the edge owns anything."""

    def __init__(
        self,
        config: EdgeSettings,
        calls: Calls,
        keys: CommonKeys,
        stats: Numbers,
        decode: Callable[[bytes], Event],
    ) -> None:
        self.on_event: Callable[[Event], None] = lambda _event: None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_restored: Callable[[], None] = lambda: None
        self.on_lapsed: Callable[[], None] = lambda: None
        self.edge = calls.edge
        self.partition = calls.partition
        self.topology = where = calls.topology
        self._calls = calls
        self._keys = keys
        self.broadcast = Broadcast(calls.edge.decode(), stats.live_edges, calls.publish, keys.tasks, keys.answers)
        self.rollups = RollupStream(calls, keys)
        self.presence = Presence(
            where,
            keys.presence(calls.edge),
            PresenceTimes(config.lease, config.lease_refresh, config.poll, config.deadline),
            decode,
            self.arrived,
            on_lost=lambda: self.on_lost(),
            on_restored=lambda: self.on_restored(),
            on_lapsed=lambda: self.on_lapsed(),
            channels=self.broadcast.channels,
        )
        self.inbox, self.leases = self.presence.inbox, self.presence.leases
        where.on_up = self.reconnected

    def reconnected(self) -> None:
        """A Redis node is connected again."""
        self.presence.reconnected()

    def arrived(self, event: Event) -> None:
        """An event of another edge has arrived."""
        self.on_event(event)

    @abstractmethod
    async def stop_sweeping(self) -> None:
        """Release the sweeper's lock. Raises Unavailable."""

    async def check_keys(self) -> None:
        """Raise StoreError when this Redis belongs to a deployment with other keys."""
        await check_key(self._calls, self._keys.placement, self._calls.placement.check(), _OTHER_PLACEMENT)

    async def close(self) -> None:
        """Give up the leases and disconnect. Call it after the connections are released."""
        await self.broadcast.close()
        await asyncio.gather(self._stop_sweeping(), self.presence.close())  # together: one deadline if Redis is away
        await self.topology.close()

    async def _stop_sweeping(self) -> None:
        with contextlib.suppress(Unavailable):
            await self.stop_sweeping()

    @property
    def connected(self) -> bool:
        """Whether every Redis node can be written to."""
        return self._calls.connected

    @property
    def failures(self) -> Failures:
        """The failures of Redis that this edge has met."""
        return self.topology.failures

    @property
    def round_trips(self) -> int:
        """Calls made so far. The calls of one turn of the loop share one write."""
        return sum(mux.calls for mux in self.topology.nodes)


S = TypeVar("S", bound=EdgeStore)  # type: ignore[type-arg]


async def open_store(make: Callable[[Topology], S], config: EdgeSettings, lua: Folders, *, edge: bool) -> S:
    """Connect to Redis. Without `edge`, the store takes no leases and gets no events.

    Raises StoreError with one line for the operator of the router.
    """
    where = await open_topology(config, lua, Partitions(config.prefix), patient=edge)
    try:
        store = make(where)
        await store.check_keys()
        if edge:
            await store.presence.start()
    except BaseException as error:
        await where.close()
        if isinstance(error, OSError):
            raise unreachable(config.url, error) from error
        raise
    return store


__all__ = ["EdgeSettings", "EdgeStore", "StoreError", "open_store"]
