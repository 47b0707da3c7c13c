"""Short links: a link id leads to a queue, and the queue holds the link's data.

The client chooses the link id, so the index entry is in a partition of its own, apart from the queue. No script can
change both. An index entry may therefore outlive its link: every reader compares it with the queue's record.
"""

from collections.abc import Callable
from typing import Any

from weir.redis.errors import UNAVAILABLE
from weir.redis.resp import command
from weir.router.store.core import STATUS, Core
from weir.router.store.lookups import Fetched, Lookups
from weir.router.store.records import QueueRecord, Status
from weir.wire.smp.commands import LinkData


class Links:
    def __init__(self, core: Core, lookups: Lookups) -> None:
        self._core = core
        self._keys = core.keys
        self._muxes = core.muxes
        self._lookups = lookups

    def fetch_link(self, link_id: bytes, done: Callable[[Fetched], None]) -> None:
        """Two round trips, for a miss as for a hit: the index entry is in another partition than the queue."""

        def found(raw: Any, _ctx: Any) -> None:
            if raw is UNAVAILABLE:
                done(UNAVAILABLE)
                return
            self._lookups.fetch_rcv(raw or link_id, lambda rec: done(_with_link(rec, link_id)))

        p = self._core.partition(link_id)
        self._muxes[p].read(command(b"GET", self._keys.link(p, link_id)), found, None)

    async def set_link(self, rec: QueueRecord, link_id: bytes, data: LinkData) -> Status:
        """LSET. CONFLICT if the queue has another link id or other fixed data, or another queue has this link id."""
        # Claim the link id even if the queue has it already: this restores an index entry that Redis has lost.
        if not await self.claim(link_id, rec.rcv_id):
            return Status.CONFLICT
        p = rec.partition
        raw = await self._core.call(
            p,
            "set_link",
            [self._keys.queue(p, rec.rcv_id), self._keys.link_data(p, rec.rcv_id)],
            [rec.rev, link_id, *data],
        )
        if raw > 0:
            return STATUS[raw]
        rec.rev, rec.link_id = -raw, link_id
        return Status.OK

    async def delete_link(self, rec: QueueRecord) -> Status:
        """LDEL. OK also when the queue has no link."""
        p = rec.partition
        raw = await self._core.call(
            p, "delete_link", [self._keys.queue(p, rec.rcv_id), self._keys.link_data(p, rec.rcv_id)], [rec.rev]
        )
        if raw > 0:
            return STATUS[raw]
        link_id, rec.rev, rec.link_id = rec.link_id, -raw, None
        if link_id is not None:
            await self.free(link_id, rec.rcv_id)
        return Status.OK

    async def get_link_data(self, rec: QueueRecord) -> LinkData | None:
        p = rec.partition
        fixed, user = await self._core.read(p, b"HMGET", self._keys.link_data(p, rec.rcv_id), b"f", b"u")
        return None if fixed is None else LinkData(fixed, user)

    async def claim(self, link_id: bytes, rcv_id: bytes) -> bool:
        """Point a link id at a queue. False if it leads to another queue that still has this link id."""
        p = self._core.partition(link_id)
        key = self._keys.link(p, link_id)
        await self._core.ask(p, b"SET", key, rcv_id, b"NX")
        holder = await self._core.ask(p, b"GET", key)
        if holder is None or holder == rcv_id:
            return bool(holder == rcv_id)
        other = await self._lookups.get_rcv(holder)
        if other is not None and other.link_id == link_id:
            return False
        await self._core.call(p, "move_link", [key], [holder, rcv_id])
        return bool(await self._core.ask(p, b"GET", key) == rcv_id)

    async def give_back(self, link_id: bytes, rcv_id: bytes, snd_id: bytes) -> None:
        """After a failed NEW: free its link id, or leave it to a concurrent NEW with the same ids that succeeded."""
        made = await self._lookups.get_snd(snd_id)
        if made is None or made.link_id != link_id:
            await self.free(link_id, rcv_id)
        else:
            await self.claim(link_id, made.rcv_id)

    async def free(self, link_id: bytes, rcv_id: bytes) -> None:
        p = self._core.partition(link_id)
        await self._core.call(p, "move_link", [self._keys.link(p, link_id)], [rcv_id, b""])


def _with_link(rec: Fetched, link_id: bytes) -> Fetched:
    """None if the index entry has outlived the link."""
    return None if isinstance(rec, QueueRecord) and rec.link_id != link_id else rec
