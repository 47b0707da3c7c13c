"""An edge's presence in Redis: its leases, its inbox, and what happens after a reconnect.

start:      leases, then the subscription to pokes, then a slow timer that drains the inboxes
reconnect:  renew the leases, drain the inboxes; when both are done, `on_restored` lets the edge assert its
            subscriptions again. The order matters: an owner without a lease counts as gone, and an END that waits
            in an inbox says that the subscription has another owner by now. When Redis answers too late, all of
            it is done again.
lapse:      a lease was gone for a moment, so that scripts left no events. `on_lapsed` is called at once. `on_restored`
            follows when every live edge has renewed its leases: until then, the owner who took a subscription over
            in that moment may seem dead, and this edge would take the subscription back.
close:      give up the leases, delete the inboxes
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from weir.redis.connection import ReplyError
from weir.redis.resp import command
from weir.redis.topology import Topology
from weir.runtime.inbox import Event, Inbox, PokeListener
from weir.runtime.leases import Leases

_RETRY = 1.0  # seconds
_ALL_RENEWED = 1.5  # times the interval of renewals: by then, every live edge has renewed its leases


@dataclass(frozen=True, slots=True)
class PresenceKeys:
    """The keys of one edge by partition, and the channels that its pokes come on."""

    leases: Sequence[bytes]
    inboxes: Sequence[bytes]
    channel: bytes  # for PUBLISH: one channel for all partitions
    shard_channels: Sequence[bytes]  # for SPUBLISH: by partition


@dataclass(frozen=True, slots=True)
class PresenceTimes:
    """Seconds."""

    lease: float
    refresh: float
    poll: float  # between two drains by timer
    limit: float  # for Redis to confirm the subscription to pokes


class Presence(Generic[Event]):
    def __init__(
        self,
        topology: Topology,
        keys: PresenceKeys,
        times: PresenceTimes,
        decode: Callable[[bytes], Event],
        emit: Callable[[Event], None],
        *,
        on_lost: Callable[[], None],
        on_restored: Callable[[], None],
        on_lapsed: Callable[[], None],
        channels: Mapping[bytes, Callable[[bytes], None]] | None = None,
    ) -> None:
        """`channels` are further channels that this edge listens to, and who takes their messages."""
        self._topology = topology
        self._times = times
        self._on_restored = on_restored
        self._on_lapsed = on_lapsed
        self._poll_timer: asyncio.TimerHandle | None = None
        self._lapse_timer: asyncio.TimerHandle | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._catch_up_again = False
        self.leases = Leases(
            topology.muxes,
            keys.leases,
            lease=times.lease,
            refresh=times.refresh,
            on_lost=on_lost,
            on_renewed=self._catch_up,
            on_lapsed=self._lapsed,
        )
        self.inbox = Inbox(topology.muxes, keys.inboxes, decode, emit)
        self.listener = PokeListener(
            topology,
            keys.channel,
            keys.shard_channels,
            self.inbox.drain,
            self.inbox.drain_all,
            limit=times.limit,
            others=channels,
        )

    async def start(self) -> None:
        await self.leases.start()
        await self.listener.start()
        self._schedule_poll()

    async def close(self) -> None:
        """Call it after the connections are released."""
        for timer in (self._poll_timer, self._lapse_timer):
            if timer is not None:
                timer.cancel()
        if self._catching_up is not None:
            self._catching_up.cancel()
        await self.listener.close()
        # The leases go first: a script appends nothing to the inbox of an edge without a lease.
        await asyncio.gather(self.leases.stop(), self.inbox.delete())

    def reconnected(self) -> None:
        """A Redis node is connected again."""
        self.inbox.reconnected()
        self._catch_up()

    def _lapsed(self, p: int) -> None:
        self.inbox.doubt(p)
        self.inbox.drain(p)
        if self._lapse_timer is None:
            self._lapse_timer = asyncio.get_running_loop().call_later(
                _ALL_RENEWED * self._times.refresh, self._after_lapse
            )
            self._on_lapsed()

    def _after_lapse(self) -> None:
        self._lapse_timer = None
        self._catch_up()

    def _catch_up(self) -> None:
        self._catch_up_again = True
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = asyncio.create_task(self._do_catch_up())

    async def _do_catch_up(self) -> None:
        while self._catch_up_again:
            self._catch_up_again = False
            self.leases.renew()
            self.inbox.drain_all()
            # Redis answers in order: after this PING the leases are renewed and the inboxes have been read. An error is
            # an answer, too: Redis refuses PING while its disk fails.
            pings = (mux.ask(command(b"PING")) for mux in self._topology.nodes)
            answers = await asyncio.gather(*pings, return_exceptions=True)
            if any(isinstance(answer, Exception) and not isinstance(answer, ReplyError) for answer in answers):
                self._catch_up_again = True
                await asyncio.sleep(_RETRY)
        if self.leases.held:
            self._on_restored()

    def _schedule_poll(self) -> None:
        self._poll_timer = asyncio.get_running_loop().call_later(self._times.poll, self._poll)

    def _poll(self) -> None:
        self._schedule_poll()
        self.inbox.drain_all()
