"""The state of an SMP router in Redis. `Store` holds one object per concern: `store.messages.send(...)` is SEND.

The concerns share a `Core` (partitions, script calls) and know each other only through public methods.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import replace

from weir.redis.connect import connect
from weir.redis.errors import StoreError, Unavailable
from weir.redis.failures import Failures
from weir.redis.topology import Topology
from weir.redis.url import parse
from weir.router.store import keys
from weir.router.store.core import LUA, Core, StoreConfig
from weir.router.store.events import parse_event
from weir.router.store.links import Links
from weir.router.store.lookups import Lookups
from weir.router.store.messages import Messages
from weir.router.store.notifications import Notifications
from weir.router.store.queues import Queues
from weir.router.store.records import EndsEvent, Event
from weir.router.store.registry import Registry
from weir.router.store.services import Services
from weir.router.store.stats import Stats
from weir.router.store.subscriptions import Subscriptions
from weir.router.store.sweeper import Sweeper
from weir.runtime.broadcast import Broadcast
from weir.runtime.presence import Presence, PresenceKeys, PresenceTimes

SAVE_LIMIT = 2.0  # seconds that the edges have to save their counters
_CLAIMS = ("sub", "nsub", "claim", "takeover")  # scripts that make a connection an owner


class Store:
    """Open it with `await Store.open(config)`; set `on_event` and the rest before the first subscription."""

    def __init__(self, config: StoreConfig, where: Topology) -> None:
        self.on_event: Callable[[Event], None] = lambda _event: None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_restored: Callable[[], None] = lambda: None
        self.on_lapsed: Callable[[], None] = lambda: None
        self.core = core = Core(config, where)
        self.edge = core.edge
        self.partition = core.partition
        self.placement = core.placement
        self.topology = where

        self.lookups = Lookups(core)
        self.links = Links(core, self.lookups)
        self.queues = Queues(core, self.lookups, self.links)
        self.messages = Messages(core)
        self.subscriptions = Subscriptions(core, self._emit)
        self.notifications = Notifications(core, self._emit)
        self.services = Services(core, self._emit)
        self.registry = Registry(core, self.services)
        self.stats = Stats(core)
        self.broadcast = Broadcast(core.edge.decode(), self.stats.live_edges, core.publish, keys.TASKS, keys.answers)
        self.sweeper = Sweeper(core, self.links, self.registry, self.stats, self._all_save)

        self.presence = Presence(
            where,
            _presence_keys(core.edge),
            PresenceTimes(config.lease, config.lease_refresh, config.poll, config.deadline),
            parse_event,
            self._arrived,
            on_lost=lambda: self.on_lost(),
            on_restored=lambda: self.on_restored(),
            on_lapsed=lambda: self.on_lapsed(),
            channels=self.broadcast.channels,
        )
        self.inbox, self.leases = self.presence.inbox, self.presence.leases
        self._closed_connections: set[int] = set()  # connections that closed in this turn of the loop
        where.on_up = self.presence.reconnected

    @classmethod
    async def open(cls, config: StoreConfig, *, edge: bool = True) -> "Store":
        """Connect to Redis. Without `edge`, the store takes no leases and gets no events.

        Raises StoreError with one line for the operator of the router.
        """
        url = parse(config.url)
        if config.password:
            url = replace(url, password=config.password)
        url = replace(url, password_file=config.password_file)
        where: Topology | None = None
        try:
            where = await connect(
                url,
                lua=LUA,
                deadline=config.deadline,
                mode=config.durability,
                replicas=config.replicas,
                replication_limit=config.replication_limit,
                limit=config.connect_timeout,
                patience=config.connect_timeout if edge else 0.0,
            )
            store = cls(config, where)
            await store._check_placement()
            if edge:
                await store.presence.start()
        except BaseException as error:
            if where is not None:
                await where.close()
            if isinstance(error, OSError):
                raise StoreError(
                    f"Redis at {', '.join(map(str, url.nodes))} cannot be reached: {str(error) or 'no answer'}"
                ) from error
            raise
        return store

    async def close(self) -> None:
        """Give up the leases and disconnect. Call it after the connections are released."""
        await self.broadcast.close()
        await asyncio.gather(self._stop_sweeping(), self.presence.close())  # together: one deadline if Redis is away
        await self.topology.close()

    async def _all_save(self) -> bool:
        """Make every edge save its counters. Return False if an edge does not answer."""
        return not (await self.broadcast.ask(SAVE_LIMIT, do="save")).missing

    async def _stop_sweeping(self) -> None:
        with contextlib.suppress(Unavailable):
            await self.sweeper.stop_sweeping()

    def withdraw(self, conn: int) -> None:
        """Cancel the queued claims of a connection that has closed while Redis is unavailable.

        Otherwise its queued SUB would displace whoever subscribes meanwhile, perhaps the same client elsewhere.
        """
        if all(mux.connected for mux in self.core.muxes):
            return
        if not self._closed_connections:
            asyncio.get_running_loop().call_soon(self._withdraw)
        self._closed_connections.add(conn)

    def _withdraw(self) -> None:
        """Go through the queued calls once for all connections that closed in this turn of the loop."""
        closed, self._closed_connections = self._closed_connections, set()
        scripts = self.topology.scripts.shas
        claims = [b"$40\r\n" + scripts[name] for name in _CLAIMS]
        owner = re.compile(re.escape(self.edge) + rb":(\d+):")

        def unwanted(wire: bytes) -> bool:
            if not any(claim in wire for claim in claims):
                return False
            found = owner.search(wire)
            return found is not None and int(found[1]) in closed

        for mux in dict.fromkeys(self.core.muxes):
            mux.withdraw(unwanted)

    @property
    def connected(self) -> bool:
        return self.core.connected

    @property
    def failures(self) -> Failures:
        """The failures of Redis that this edge has met."""
        return self.topology.failures

    @property
    def round_trips(self) -> int:
        """Calls made so far. The calls of one turn of the loop share one write."""
        return sum(mux.calls for mux in self.topology.nodes)

    def _emit(self, event: Event) -> None:
        self.on_event(event)

    def _arrived(self, event: Event) -> None:
        if isinstance(event, EndsEvent):
            self.services.ended(event)
        else:
            self.on_event(event)

    async def _check_placement(self) -> None:
        check = self.placement.check()
        found = await self.core.ask_registry(b"GET", keys.PLACEMENT)
        if found is None:  # a deployment that exists starts its edges also while Redis is full or cannot write
            await self.core.ask_registry(b"SET", keys.PLACEMENT, check, b"NX")
            found = await self.core.ask_registry(b"GET", keys.PLACEMENT)
        if found != check:
            raise StoreError("the placement key is not the key that the data in this Redis was placed with")


def _presence_keys(edge: bytes) -> PresenceKeys:
    partitions = range(keys.PARTITIONS)
    return PresenceKeys(
        [keys.lease(p, edge) for p in partitions],
        [keys.inbox(p, edge) for p in partitions],
        keys.channel(edge),
        [keys.shard_channel(p, edge) for p in partitions],
    )


__all__ = ["Core", "Store", "StoreConfig", "StoreError"]
