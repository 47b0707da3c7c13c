"""The state of an SMP router in Redis. `Store` holds one object per concern: `store.messages.send(...)` is SEND.

The concerns share a `Core` (partitions, script calls) and know each other only through public methods.
"""

import asyncio
import re
from functools import partial

from weir.redis.errors import StoreError
from weir.redis.topology import Topology
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
from weir.runtime.state.store import EdgeStore, open_store

SAVE_LIMIT = 2.0  # seconds that the edges have to save their counters
_CLAIMS = ("sub", "nsub", "claim", "takeover")  # scripts that make a connection an owner


class Store(EdgeStore[Event]):
    """Open it with `await Store.open(config)`; set `on_event` and the rest before the first subscription."""

    def __init__(self, config: StoreConfig, where: Topology) -> None:
        self.core = core = Core(config, where)
        self.placement = core.placement

        self.lookups = Lookups(core)
        self.links = Links(core, self.lookups)
        self.queues = Queues(core, self.lookups, self.links)
        self.messages = Messages(core)
        self.subscriptions = Subscriptions(core, self._emit)
        self.notifications = Notifications(core, self._emit)
        self.services = Services(core, self._emit)
        self.registry = Registry(core, self.services)
        self.stats = Stats(core)
        self.sweeper = Sweeper(core, self.links, self.registry, self.stats, self._all_save)
        self._closed_connections: set[int] = set()  # connections that closed in this turn of the loop
        super().__init__(config, core, core.keys, self.stats, parse_event)

    @classmethod
    async def open(cls, config: StoreConfig, *, edge: bool = True) -> "Store":
        """See `open_store`."""
        return await open_store(partial(cls, config), config, LUA, edge=edge)

    async def _all_save(self) -> bool:
        """Make every edge save its counters. Return False if an edge does not answer."""
        return not (await self.broadcast.ask(SAVE_LIMIT, do="save")).missing

    async def stop_sweeping(self) -> None:
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

    def _emit(self, event: Event) -> None:
        self.on_event(event)

    def arrived(self, event: Event) -> None:
        if isinstance(event, EndsEvent):
            self.services.ended(event)
        else:
            self.on_event(event)


__all__ = ["Core", "Store", "StoreConfig", "StoreError"]
