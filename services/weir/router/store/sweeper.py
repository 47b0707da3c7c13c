"""The sweeper: expires messages, notifications and queues that no command comes across, services that nobody uses, and
inboxes of dead edges.

One edge at a time sweeps, under a lock. It scans the keys in slices, each of which blocks Redis only briefly. A
complete round also counts what is left, and so corrects the totals in the statistics.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from weir.redis.connection import ReplyError
from weir.redis.mux import Mux
from weir.redis.partitions import REGISTRY
from weir.redis.resp import command
from weir.router.store import keys
from weir.router.store.core import Core
from weir.router.store.links import Links
from weir.router.store.records import Swept
from weir.router.store.registry import Registry
from weir.wire.smp import ids_hash

_LOCK_MS = 60_000
_SCAN = 500  # keys of one SCAN
_BATCH = 20  # queues of one script call


@dataclass
class _Left:
    messages: int = 0
    notifications: int = 0


class Sweeper:
    def __init__(self, core: Core, links: Links, registry: Registry) -> None:
        self._core = core
        self._muxes = core.muxes
        self._unsaved = core.unsaved
        self._links = links
        self._registry = registry
        self._services_in_use: set[bytes] = set()  # found in use today: finding out costs two reads in each partition
        self._services_day = 0
        self._census: _Left | None = None  # counted in this round; None if this edge did not start the round

    async def sweep_slice(self, cursor: int) -> Swept | None:
        """Sweep some keys, starting with cursor 0. None while another edge has the lock."""
        if not await self._core.call(REGISTRY, "sweep_lock", [keys.SWEEPER], [self._core.edge, _LOCK_MS]):
            return None
        node, at = cursor & 0xFF, cursor >> 8
        muxes = self._core.topology.nodes
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
        await self._expire_services(found)
        self._unsaved.messages -= messages
        self._unsaved.notifications -= notifications
        position = int(following)
        following_cursor = position << 8 | node if position else node + 1 if node + 1 < len(muxes) else 0
        if following_cursor == 0 and self._census is not None:
            seen = self._census
            await self._core.ask_registry(
                b"HSET", keys.STATS, b"messages", seen.messages, b"notifications", seen.notifications
            )
            self._unsaved.messages, self._unsaved.notifications, self._census = 0, 0, None
        return Swept(following_cursor, messages, notifications, queues)

    async def stop_sweeping(self) -> None:
        """Release the lock, so that another edge can continue at once."""
        await self._core.call(REGISTRY, "sweep_unlock", [keys.SWEEPER], [self._core.edge])

    async def _expire_services(self, found: list[bytes]) -> None:
        today = int(time.time()) // 86400
        if today != self._services_day:
            self._services_day = today
            self._services_in_use.clear()
        for service_id in filter(None, map(keys.recorded_service, found)):
            if service_id in self._services_in_use:
                continue
            with contextlib.suppress(ReplyError):  # a damaged service must not stop the sweep
                if not await self._registry.expire(service_id, today):
                    self._services_in_use.add(service_id)

    def _expire(self, found: list[bytes], mux: Mux) -> list[Any]:
        queues: dict[int, list[bytes]] = {}
        work: list[Any] = []
        for key in found:
            tag, _, rest = key.partition(b"}:")
            if not tag[1:].isdigit() or self._muxes[p := int(tag[1:])] is not mux:
                continue
            if rest.startswith(b"q:"):
                queues.setdefault(p, []).append(key)
            elif rest.startswith(b"i:"):
                work.append(self._drop_inbox(p, rest[2:]))
        for p, listed in queues.items():
            work += [self._expire_queues(p, listed[n : n + _BATCH]) for n in range(0, len(listed), _BATCH)]
        return work

    async def _drop_inbox(self, p: int, edge: bytes) -> tuple[int, int, int, _Left]:
        await self._core.call(p, "sweep_inbox", [keys.inbox(p, edge), keys.lease(p, edge)], [])
        return 0, 0, 0, _Left()

    async def _expire_queues(self, p: int, queues: list[bytes]) -> tuple[int, int, int, _Left]:
        """Returns the messages, notifications and queues removed, and what is left."""
        now = int(time.time())
        days = self._core.config.queue_ttl_days
        today = datetime.now(UTC).date().toordinal() - datetime(1970, 1, 1).toordinal()
        used: int | bytes = b"" if days is None else today - days
        raw = await self._core.call(
            p, "expire", queues, [now - self._core.config.message_ttl, now - self._core.config.ntf_ttl, used]
        )
        deleted, left = 0, _Left(raw[2], raw[3])
        for at in range(4, len(raw), 2):
            rcv_id, ntf_id = raw[at], raw[at + 1]
            gone = await self._core.call(
                p,
                "delete",
                [keys.queue(p, rcv_id), keys.messages(p, rcv_id)],
                [b"", b"", ids_hash.of_id(rcv_id), ids_hash.of_id(ntf_id), used],
            )
            if not isinstance(gone, int):
                deleted += 1
                self._unsaved.messages -= gone[0]
                self._unsaved.notifications -= gone[1]
                left.messages -= gone[0]
                left.notifications -= gone[1]
                if gone[2]:
                    await self._links.free(gone[2], rcv_id)
        return raw[0], raw[1], deleted, left
