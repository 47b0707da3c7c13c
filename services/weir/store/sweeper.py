"""Expiry of what no command comes across: one edge at a time, in slices that each hold Redis for a moment only."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from weir.store import keys
from weir.store.core import Core, StoreConfig, ids_hash
from weir.store.mux import Mux
from weir.store.queues import Queues
from weir.store.records import Swept
from weir.store.resp import command
from weir.store.topology import REGISTRY, Topology

_LOCK_MS = 60_000
_SCAN = 500  # keys looked at in one SCAN
_BATCH = 20  # queues in one call of the script


@dataclass
class _Left:
    messages: int = 0
    notifications: int = 0


class Sweeper(Queues, Core):
    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(config, topology)
        self._census: _Left | None = None  # seen since this round's start; None in the middle of one

    async def sweep_slice(self, cursor: int) -> Swept | None:
        """Looks at some keys, from 0 on; None while another edge sweeps."""
        if not await self.call(REGISTRY, "sweep_lock", [keys.SWEEPER], [self.edge, _LOCK_MS]):
            return None
        node, at = cursor & 0xFF, cursor >> 8
        muxes = self.topology.nodes
        if node >= len(muxes):
            return Swept(0, 0, 0, 0)
        if cursor == 0:
            self._census = _Left()
        following, found = await muxes[node].ask(command(b"SCAN", at, b"COUNT", _SCAN), durable=False)
        messages = notifications = queues = 0
        for dropped, ntfs, deleted, left in await asyncio.gather(*self._expire(found, muxes[node])):
            messages += dropped
            notifications += ntfs
            queues += deleted
            if self._census is not None:
                self._census.messages += left.messages
                self._census.notifications += left.notifications
        self.stored_delta -= messages
        self.ntf_delta -= notifications
        position = int(following)
        following_cursor = position << 8 | node if position else node + 1 if node + 1 < len(muxes) else 0
        if following_cursor == 0 and self._census is not None:
            seen = self._census
            await self.ask_registry(
                b"HSET", keys.STATS, b"messages", seen.messages, b"notifications", seen.notifications
            )
            self.stored_delta, self.ntf_delta, self._census = 0, 0, None
        return Swept(following_cursor, messages, notifications, queues)

    async def stop_sweeping(self) -> None:
        """Lets another edge go on at once."""
        await self.call(REGISTRY, "sweep_unlock", [keys.SWEEPER], [self.edge])

    def _expire(self, found: list[bytes], mux: Mux) -> list[Any]:
        queues: dict[int, list[bytes]] = {}
        work: list[Any] = []
        for key in found:
            tag, _, rest = key.partition(b"}:")
            if not tag[1:].isdigit() or self.muxes[p := int(tag[1:])] is not mux:
                continue
            if rest.startswith(b"q:"):
                queues.setdefault(p, []).append(key)
            elif rest.startswith(b"i:"):
                work.append(self._drop_inbox(p, rest[2:]))
        for p, listed in queues.items():
            work += [self._expire_queues(p, listed[n : n + _BATCH]) for n in range(0, len(listed), _BATCH)]
        return work

    async def _drop_inbox(self, p: int, edge: bytes) -> tuple[int, int, int, _Left]:
        await self.call(p, "sweep_inbox", [keys.inbox(p, edge), keys.lease(p, edge)], [])
        return 0, 0, 0, _Left()

    async def _expire_queues(self, p: int, queues: list[bytes]) -> tuple[int, int, int, _Left]:
        """(messages, notifications and queues removed, what is left)."""
        now = int(time.time())
        days = self.config.queue_ttl_days
        today = datetime.now(UTC).date().toordinal() - datetime(1970, 1, 1).toordinal()
        used: int | bytes = b"" if days is None else today - days
        raw = await self.call(p, "expire", queues, [now - self.config.message_ttl, now - self.config.ntf_ttl, used])
        deleted, left = 0, _Left(raw[2], raw[3])
        for at in range(4, len(raw), 2):
            rcv_id, ntf_id = raw[at], raw[at + 1]
            gone = await self.call(
                p,
                "delete",
                [keys.queue(p, rcv_id), keys.messages(p, rcv_id)],
                [b"", b"", ids_hash(rcv_id), ids_hash(ntf_id), used],
            )
            if not isinstance(gone, int):
                deleted += 1
                self.stored_delta -= gone[0]
                self.ntf_delta -= gone[1]
                left.messages -= gone[0]
                left.notifications -= gone[1]
                if gone[2]:
                    await self._free_link(gone[2], rcv_id)
        return raw[0], raw[1], deleted, left
