"""Leases tell the other edges that an edge is alive.

An edge holds one lease in each partition: a key that expires by itself. A script that meets an owner on an edge without
a lease treats that owner as gone. The subscriptions of a crashed edge therefore become free when its leases expire.

    renewal sent        renewal sent        no more answers
         │                   │
    ─────┴──── refresh ──────┴──────────────────────┬────────────┬──────► time
                             │◄── lease - margin ──►│            │
                             │◄────────── lease ────┼───────────►│
                                                 on_lost      Redis drops the key

An edge that gets no answers counts its leases as lost before Redis drops them. It closes its clients in the time
between, so that no two edges serve the same owner. The edge counts from the moment it sent a renewal, Redis from the
later moment it received the renewal: the edge is always the first to give up.

Redis can still drop a lease early, e.g. when its clock is set forward. The renewal that finds its lease gone takes the
lease again and reports a *lapse*: while the lease was gone, scripts left no events for this edge. Leases are numbered,
so that a renewal whose answer was lost cannot hide a lapse.

Renewals work while Redis' memory is full. While Redis refuses all writes because its disk fails, no edge can become an
owner in the place of another one, so the leases count as held.
"""

import asyncio
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.mux import Mux
from weir.redis.resp import command

_MARGIN = 0.2  # of the lease: closing clients takes time
_CHECK_EVERY = (0.1, 1.0)  # seconds, at least and at most
_RENEW = (files("weir.runtime") / "lua" / "renew_lease.lua").read_bytes()
_TAKEN_AGAIN, _NO_WRITES = 0, 2  # answers of the script


class Leases:
    """The leases of one edge: `keys[p]` is the key of partition p.

    `on_lost` is called once when a lease must be assumed gone, `on_renewed` when all leases are held again.
    `on_lapsed` is called with each partition whose lease was gone and is held again.
    """

    def __init__(
        self,
        muxes: Sequence[Mux],
        keys: Sequence[bytes],
        *,
        lease: float,
        refresh: float,
        on_lost: Callable[[], None],
        on_renewed: Callable[[], None],
        on_lapsed: Callable[[int], None],
    ) -> None:
        self._muxes = muxes
        self._keys = keys
        self._usable = lease * (1 - _MARGIN)
        self._refresh_every = refresh
        self._on_lost = on_lost
        self._on_renewed = on_renewed
        self._on_lapsed = on_lapsed
        self._loop = asyncio.get_running_loop()
        self._lease_ms = int(lease * 1000)
        self._numbers = [0] * len(keys)  # of the leases that this edge holds; they begin at 1
        self._renewed_at = [self._loop.time()] * len(keys)  # when the last answered renewal was sent
        self._refresh_timer: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self.held = False

    async def start(self) -> None:
        """Take all leases. Call it before anything on this edge can become an owner."""
        sent = self._loop.time()
        answers = await asyncio.gather(*(self._muxes[p].ask(self._renewal(p)) for p in range(len(self._keys))))
        if _NO_WRITES in answers:
            raise Unavailable("Redis cannot write to its disk")
        self._numbers = [1] * len(self._keys)
        self._renewed_at = [sent] * len(self._keys)
        self.held = True
        self._schedule_refresh()
        self._check()

    async def stop(self) -> None:
        """Give the leases up at once: this edge owns nothing any more."""
        for timer in (self._refresh_timer, self._check_timer):
            if timer is not None:
                timer.cancel()
        self.held = False
        calls = (self._muxes[p].ask(command(b"UNLINK", key)) for p, key in enumerate(self._keys))
        await asyncio.gather(*calls, return_exceptions=True)

    def renew(self) -> None:
        sent = self._loop.time()
        for p, number in enumerate(self._numbers):
            self._muxes[p].script_of_one_key(self._renewal(p), self._renewed, (p, number, sent))

    def _renewal(self, p: int) -> bytes:
        number = self._numbers[p]
        return command(b"EVAL", _RENEW, 1, self._keys[p], number, number + 1, self._lease_ms, 0)

    def _renewed(self, reply: Any, renewal: tuple[int, int, float]) -> None:
        if reply is UNAVAILABLE:
            return
        p, number, sent = renewal
        self._renewed_at[p] = max(self._renewed_at[p], sent)
        if reply == _TAKEN_AGAIN:
            self._numbers[p] = number + 1
            if self.held:
                self._on_lapsed(p)
        if not self.held and self._time_left() > 0:
            self.held = True
            self._on_renewed()

    def _time_left(self) -> float:
        return min(self._renewed_at) + self._usable - self._loop.time()

    def _schedule_refresh(self) -> None:
        self._refresh_timer = self._loop.call_later(self._refresh_every, self._refresh)

    def _refresh(self) -> None:
        self._schedule_refresh()
        self.renew()

    def _check(self) -> None:
        left = self._time_left()
        at_least, at_most = _CHECK_EVERY
        self._check_timer = self._loop.call_later(min(max(left, at_least), at_most), self._check)
        if self.held and left <= 0:
            self.held = False
            self._on_lost()
