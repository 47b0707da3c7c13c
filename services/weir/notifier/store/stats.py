"""Numbers of the fleet: those of every program, and what is stored: tokens, subscriptions, SMP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from weir.notifier.store.core import Core
from weir.redis.partitions import PARTITIONS
from weir.runtime.state.numbers import Numbers

_STORED = ("tokens", "subscriptions")


class Stats(Numbers):
    def __init__(self, core: Core) -> None:
        super().__init__(core, core.keys)
        self._core = core

    async def add_active(self, tokens: Iterable[bytes], subscriptions: Iterable[bytes]) -> None:
        """Add tokens that were pushed to, and notifiers that had a notification, to the sketches of the periods."""
        await self.sketches.add({"tokens": tokens, "subscriptions": subscriptions})

    async def counts(self) -> dict[str, int]:
        """Totals of the fleet: `tokens`, `tokens_day`, `tokens_week`, `tokens_month`, the same for subscriptions;
        `servers`, `edges`."""
        core, keys = self._core, self._core.keys
        shares, active, servers, edges = await asyncio.gather(
            asyncio.gather(
                *(core.read(p, b"HMGET", keys.counters(p), *(n.encode() for n in _STORED)) for p in range(PARTITIONS))
            ),
            self.sketches.count(*_STORED),
            core.read_registry(b"SCARD", keys.servers),
            self.read_edges(),
        )
        counts = {name: sum(int(share[n] or 0) for share in shares) for n, name in enumerate(_STORED)}
        counts |= active
        counts |= {"servers": servers, "edges": len(edges)}
        return counts
