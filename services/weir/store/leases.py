"""The edge's leases: an owner counts while its edge's lease is there. An edge that cannot renew must assume it lost."""

import asyncio
from collections.abc import Callable
from typing import Any

from weir.store import keys
from weir.store.core import Core
from weir.store.records import UNAVAILABLE
from weir.store.resp import command

_MARGIN = 0.2  # of the lease: closing clients takes time


class Leases:
    """`on_lost` is called once when a lease must be assumed gone, `on_renewed` when all are there again."""

    def __init__(self, core: Core, on_lost: Callable[[], None], on_renewed: Callable[[], None]) -> None:
        self._core = core
        self._on_lost = on_lost
        self._on_renewed = on_renewed
        self._loop = asyncio.get_running_loop()
        ms = int(core.config.lease * 1000)
        self._wires = [command(b"SET", keys.lease(p, core.edge), b"1", b"PX", ms) for p in range(keys.PARTITIONS)]
        self._renewed = [self._loop.time()] * keys.PARTITIONS
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.held = False

    async def start(self) -> None:
        """Takes all leases before anything can be owned."""
        sent = self._loop.time()
        await asyncio.gather(*(self._core.muxes[p].ask(wire) for p, wire in enumerate(self._wires)))
        self._renewed = [sent] * keys.PARTITIONS
        self.held = True
        self._schedule()
        self._check()

    async def stop(self) -> None:
        """Gives the leases up: this edge owns nothing any more."""
        for timer in (self._timer, self._watch):
            if timer is not None:
                timer.cancel()
        self.held = False
        calls = (
            self._core.ask(p, b"UNLINK", keys.lease(p, self._core.edge), keys.inbox(p, self._core.edge))
            for p in range(keys.PARTITIONS)
        )
        await asyncio.gather(*calls, return_exceptions=True)

    def renew(self) -> None:
        sent = self._loop.time()
        for p, wire in enumerate(self._wires):
            self._core.muxes[p].submit(wire, self._set, (p, sent))

    def _set(self, raw: Any, ctx: tuple[int, float]) -> None:
        if raw is UNAVAILABLE:
            return
        p, sent = ctx
        self._renewed[p] = max(self._renewed[p], sent)
        if not self.held and self._left() > 0:
            self.held = True
            self._on_renewed()

    def _left(self) -> float:
        lease = self._core.config.lease
        return min(self._renewed) + lease * (1 - _MARGIN) - self._loop.time()

    def _schedule(self) -> None:
        self._timer = self._loop.call_later(self._core.config.lease_refresh, self._refresh)

    def _refresh(self) -> None:
        self._schedule()
        self.renew()

    def _check(self) -> None:
        left = self._left()
        if self.held and left <= 0:
            self.held = False
            self._on_lost()
        self._watch = self._loop.call_later(min(max(left, 0.1), 1.0), self._check)
