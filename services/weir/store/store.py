"""The store: everything an edge knows that outlives it. One class per concern, one object for the edge."""

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import replace

from weir.store import keys, topology
from weir.store.core import Core, StoreConfig
from weir.store.durability import choose
from weir.store.inbox import Inbox, Listener
from weir.store.leases import Leases
from weir.store.link import ReplyError
from weir.store.messages import Messages
from weir.store.records import EndsEvent, Event, StoreError, Unavailable
from weir.store.registry import Registry
from weir.store.resp import command
from weir.store.stats import Stats
from weir.store.subscriptions import Subscriptions
from weir.store.sweeper import Sweeper
from weir.store.url import RedisUrl, parse

_TRY_AGAIN, _TRY_LIMIT = 0.5, 5.0  # seconds
_CLAIMS = ("sub", "nsub", "claim", "takeover")  # scripts that make a connection an owner


class Store(Messages, Subscriptions, Registry, Stats, Sweeper):
    """Open it with `await Store.open(config)`; set `on_event` and the rest before the first subscription."""

    def __init__(self, config: StoreConfig, where: topology.Topology) -> None:
        super().__init__(config, where)
        self.on_event: Callable[[Event], None] = lambda _event: None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_restored: Callable[[], None] = lambda: None
        self.inbox = Inbox(self, self._arrived)
        self.leases = Leases(self, lambda: self.on_lost(), self._restored)
        self._listener = Listener(self, self.inbox)
        self._poll: asyncio.TimerHandle | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._left: set[int] = set()  # connections that closed in this turn of the loop
        where.on_up = self._reconnected

    @classmethod
    async def open(cls, config: StoreConfig, *, edge: bool = True) -> "Store":
        """Raises StoreError with one line for the operator. Without `edge` it takes no lease and gets no events."""
        url = parse(config.url)
        if config.password:
            url = replace(url, password=config.password)
        where: topology.Topology | None = None
        try:
            where = await _reach(config, url, config.connect_timeout if edge else 0.0)
            store = cls(config, where)
            await store._check_placement()
            if edge:
                await store.leases.start()
                await store._listener.start()
                store._schedule_poll()
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
        """Gives up the leases; call it after the connections are released."""
        if self._poll is not None:
            self._poll.cancel()
        if self._catching_up is not None:
            self._catching_up.cancel()
        await self._listener.close()
        await asyncio.gather(self._stop_sweeping(), self.leases.stop())  # one wait when Redis is away
        await self.topology.close()

    async def _stop_sweeping(self) -> None:
        with contextlib.suppress(Unavailable, ReplyError):
            await self.stop_sweeping()

    def withdraw(self, conn: int) -> None:
        """A connection has closed while Redis was away: what it wanted to own it must not take from whoever subscribes
        elsewhere meanwhile, perhaps the same client."""
        if all(mux.connected for mux in self.muxes):
            return
        if not self._left:
            asyncio.get_running_loop().call_soon(self._withdraw)
        self._left.add(conn)

    def _withdraw(self) -> None:
        """One look at what waits for all connections that closed in this turn of the loop."""
        left, self._left = self._left, set()
        scripts = self.topology.scripts.shas
        claims = [b"$40\r\n" + scripts[name] for name in _CLAIMS]
        owner = re.compile(re.escape(self.edge) + rb":(\d+):")

        def unwanted(wire: bytes) -> bool:
            if not any(claim in wire for claim in claims):
                return False
            found = owner.search(wire)
            return found is not None and int(found[1]) in left

        for mux in dict.fromkeys(self.muxes):
            mux.withdraw(unwanted)

    @property
    def connected(self) -> bool:
        return all(mux.connected for mux in self.topology.nodes)

    @property
    def round_trips(self) -> int:
        """Calls made so far; calls of one turn of the loop share a write."""
        return sum(mux.calls for mux in self.topology.nodes)

    def emit(self, event: Event) -> None:
        self.on_event(event)

    def _arrived(self, event: Event) -> None:
        if isinstance(event, EndsEvent):
            self._service_ended(event)
        else:
            self.on_event(event)

    def _reconnected(self) -> None:
        """A Redis node is back: leases first, then what was missed, then the edge asserts its subscriptions."""
        self.inbox.reconnected()
        self._catch_up()

    def _restored(self) -> None:
        self._catch_up()

    def _catch_up(self) -> None:
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = asyncio.create_task(self._do_catch_up())

    async def _do_catch_up(self) -> None:
        self.leases.renew()
        self.inbox.drain_all()
        with contextlib.suppress(Unavailable):
            # Answers come in order: behind this one, the leases are there and the inboxes have been read.
            await asyncio.gather(*(mux.ask(command(b"PING")) for mux in self.topology.nodes))
            if self.leases.held:
                self.on_restored()

    def _schedule_poll(self) -> None:
        self._poll = asyncio.get_running_loop().call_later(self.config.poll, self._poll_inboxes)

    def _poll_inboxes(self) -> None:
        self.inbox.drain_all()
        self._schedule_poll()

    async def _check_placement(self) -> None:
        check = self.placement.check()
        await self.ask_registry(b"SET", keys.PLACEMENT, check, b"NX")
        if await self.ask_registry(b"GET", keys.PLACEMENT) != check:
            raise StoreError("the placement key is not the one this Redis was filled with")


async def _reach(config: StoreConfig, url: RedisUrl, patience: float) -> topology.Topology:
    """Opens the way to Redis. It may start later than an edge, or move while an edge looks for it: each try is short,
    and made again for so long."""
    now = asyncio.get_running_loop().time
    end = now() + patience
    while True:
        where = topology.make(url, deadline=config.deadline)
        try:
            async with asyncio.timeout(min(config.connect_timeout, _TRY_LIMIT)):
                await where.probe()
                where.durability = await choose(config, where)
                await where.open()
            return where
        except BaseException as error:
            await where.close()
            if not isinstance(error, OSError) or now() + _TRY_AGAIN > end:
                raise
        await asyncio.sleep(_TRY_AGAIN)


__all__ = ["Core", "Store", "StoreConfig", "StoreError"]
