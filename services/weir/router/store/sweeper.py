"""The sweeper: expires messages, notifications and queues that no command comes across, services that nobody uses, and
inboxes of dead edges.

One edge at a time sweeps, under a lock. It scans the keys in slices, each of which blocks Redis only briefly. A queue
whose keys are damaged is counted and left out.

A complete round also counts what is left. The fleet's totals are sums of what edges counted, so they are wrong after an
edge has crashed with counters that it had not saved. The round's count is exact only if no message came or went
meanwhile, on any edge. So a difference is corrected when all edges have saved their counters, and the statistics then
are what they were when the round began.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from weir.redis.connection import ReplyError
from weir.redis.partitions import REGISTRY
from weir.router.store.core import Core
from weir.router.store.links import Links
from weir.router.store.records import Swept
from weir.router.store.registry import Registry
from weir.router.store.stats import Stats
from weir.runtime.state.calls import isolating
from weir.runtime.state.scan import Scan, Slice
from weir.wire.smp import ids_hash

_BATCH = 20  # queues of one script call
_Totals = tuple[int, int, int]


@dataclass
class _Left:
    messages: int = 0
    notifications: int = 0


@dataclass
class _Expired:
    """Objects that were removed, objects that are left, and queues that could not be expired."""

    messages: int = 0
    notifications: int = 0
    queues: int = 0
    damaged: int = 0
    left: _Left = field(default_factory=_Left)

    def add(self, other: "_Expired") -> None:
        self.messages += other.messages
        self.notifications += other.notifications
        self.queues += other.queues
        self.damaged += other.damaged
        self.left.messages += other.left.messages
        self.left.notifications += other.left.notifications


class Sweeper:
    def __init__(
        self, core: Core, links: Links, registry: Registry, stats: Stats, all_save: Callable[[], Awaitable[bool]]
    ) -> None:
        """`all_save` makes every edge save its counters, and returns whether every edge did."""
        self._core = core
        self._keys = core.keys
        self._scan = Scan(core, core.keys)
        self._unsaved = core.unsaved
        self._links = links
        self._stats = stats
        self._all_save = all_save
        self._registry = registry
        self._services_in_use: set[bytes] = set()  # found in use today: finding out costs two reads in each partition
        self._services_day = 0
        self._census: _Left | None = None  # counted in this round; None if this edge did not start the round
        self._totals_before: _Totals | None = None

    async def sweep_slice(self, cursor: int) -> Swept | None:
        """Sweep some keys, starting with cursor 0. None while another edge has the lock."""
        if not await self._scan.lock():
            return None
        if cursor == 0:
            self._census = _Left()
            self._totals_before = await self._totals()
        found = await self._scan.slice(cursor)
        done = _Expired()
        for part in await asyncio.gather(*self._expire(found)):
            done.add(part)
        if self._census is not None:
            self._census.messages += done.left.messages
            self._census.notifications += done.left.notifications
        messages, notifications = done.messages, done.notifications
        self._unsaved.messages -= messages
        self._unsaved.notifications -= notifications
        await self._expire_services(found.registry)
        if found.following == 0 and self._census is not None:
            seen, self._census = self._census, None
            await self._correct(seen)
        return Swept(found.following, messages, notifications, done.queues, done.damaged)

    async def _totals(self) -> _Totals:
        """(messages, notifications, messages ever sent) by the statistics, with what this edge has counted."""
        await self._stats.add_stats({})
        found = await self._core.read_registry(b"HMGET", self._keys.stats, b"messages", b"notifications", b"msgSent")
        messages, notifications, sent = (int(value or 0) for value in found)
        return messages, notifications, sent

    async def _correct(self, seen: _Left) -> None:
        """Correct the totals, unless messages came or went in this round."""
        before = self._totals_before
        if before is None or before[:2] == (seen.messages, seen.notifications):
            return
        if await self._all_save():
            await self._stats.add_stats({})  # saves the removals of this round
            await self._core.call(
                REGISTRY, "correct_totals", [self._keys.stats], [*before, seen.messages, seen.notifications]
            )

    async def stop_sweeping(self) -> None:
        """Release the lock, so that another edge can continue at once."""
        await self._scan.unlock()

    async def _expire_services(self, found: list[bytes]) -> None:
        today = int(time.time()) // 86400
        if today != self._services_day:
            self._services_day = today
            self._services_in_use.clear()
        for service_id in filter(None, map(self._keys.recorded_service, found)):
            if service_id in self._services_in_use:
                continue
            with contextlib.suppress(ReplyError):  # a damaged service must not stop the sweep
                if not await self._registry.expire(service_id, today):
                    self._services_in_use.add(service_id)

    def _expire(self, found: Slice) -> list[Any]:
        queues: dict[int, list[bytes]] = {}
        work: list[Any] = []
        for p, letter, name in found.partitions:
            if letter == b"q":
                queues.setdefault(p, []).append(self._keys.queue(p, name))
            elif letter == b"i":
                work.append(self._drop_inbox(p, name))
        for p, listed in queues.items():
            work += [self._expire_queues(p, listed[n : n + _BATCH]) for n in range(0, len(listed), _BATCH)]
        return work

    async def _drop_inbox(self, p: int, edge: bytes) -> _Expired:
        await self._scan.drop_inbox(p, edge)
        return _Expired()

    async def _expire_queues(self, p: int, queues: list[bytes]) -> _Expired:
        now = int(time.time())
        days = self._core.config.queue_ttl_days
        today = datetime.now(UTC).date().toordinal() - datetime(1970, 1, 1).toordinal()
        used: int | bytes = b"" if days is None else today - days
        args: list[bytes | int] = [now - self._core.config.message_ttl, now - self._core.config.ntf_ttl, used]
        expired = _Expired(damaged=len(queues))
        for done, raw in await isolating(queues, partial(self._call_expire, p, args)):
            left = _Left(raw[2], raw[3])
            unused = list(zip(raw[4::2], raw[5::2], strict=True))
            expired.add(_Expired(raw[0], raw[1], damaged=-len(done), left=left))
            for queue in unused:
                deleted = await isolating([queue], partial(self._delete, p, used))
                expired.add(deleted[0][1] if deleted else _Expired(damaged=1))
        return expired

    def _call_expire(self, p: int, args: list[bytes | int], queues: list[bytes]) -> "asyncio.Future[Any]":
        return self._core.call(p, "expire", queues, args)

    async def _delete(self, p: int, used: int | bytes, unused: list[tuple[bytes, bytes]]) -> _Expired:
        """Delete a queue that is not in use: its recipient id, and its notifier id or b""."""
        [(rcv_id, ntf_id)] = unused
        gone = await self._core.call(
            p,
            "delete",
            [self._keys.queue(p, rcv_id), self._keys.messages(p, rcv_id)],
            [b"", b"", ids_hash.of_id(rcv_id), ids_hash.of_id(ntf_id), used],
        )
        if isinstance(gone, int):
            return _Expired()
        messages, notifications, link_id = gone
        self._unsaved.messages -= messages
        self._unsaved.notifications -= notifications
        if link_id:
            await self._links.free(link_id, rcv_id)
        return _Expired(queues=1, left=_Left(-messages, -notifications))
