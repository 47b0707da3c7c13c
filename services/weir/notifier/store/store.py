"""The state of a notification router in Redis. `Store` has an object for each concern: `store.tokens` has TNEW."""

from __future__ import annotations

from functools import partial

from weir.notifier.store.core import LUA, Core, StoreConfig
from weir.notifier.store.dummies import Dummies
from weir.notifier.store.events import parse_event
from weir.notifier.store.notifications import Notifications
from weir.notifier.store.pushes import Pushes
from weir.notifier.store.records import Event
from weir.notifier.store.servers import Servers
from weir.notifier.store.stats import Stats
from weir.notifier.store.subscriptions import Subscriptions
from weir.notifier.store.sweeper import Sweeper
from weir.notifier.store.tokens import Tokens
from weir.redis.errors import StoreError
from weir.redis.topology import Topology
from weir.runtime.state.opening import check_key
from weir.runtime.state.store import EdgeStore, open_store

_OTHER_STORAGE = "the storage key is not the key that the data in this Redis was sealed with"


class Store(EdgeStore[Event]):
    """Open it with `await Store.open(config)`. When it closes, it gives up all ownerships."""

    def __init__(self, config: StoreConfig, where: Topology) -> None:
        self.core = core = Core(config, where)
        self.dummies = Dummies(core.sealer)
        self.tokens = Tokens(core)
        self.notifications = Notifications(core)
        self.servers = Servers(core, self.notifications)
        self.subscriptions = Subscriptions(core, self.servers)
        self.pushes = Pushes(core)
        self.stats = Stats(core)
        self.sweeper = Sweeper(core, self.tokens)
        super().__init__(config, core, core.keys, self.stats, parse_event)

    @classmethod
    async def open(cls, config: StoreConfig, *, edge: bool = True) -> Store:
        """See `open_store`."""
        return await open_store(partial(cls, config), config, LUA, edge=edge)

    def reconnected(self) -> None:
        self.servers.reconnected()
        super().reconnected()

    async def check_keys(self) -> None:
        await super().check_keys()
        await check_key(self.core, self.core.keys.storage, self.core.sealer.check(), _OTHER_STORAGE)

    async def stop_sweeping(self) -> None:
        await self.sweeper.stop_sweeping()


__all__ = ["Core", "Store", "StoreConfig", "StoreError"]
