"""Connected services: takeover, the pages of a fold, release, totals.

A takeover first draws an epoch in the service's home partition and then claims all partitions with it. The higher epoch
wins in every partition, so that of two concurrent takeovers one gets everything.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from weir.router.store import keys
from weir.router.store.core import Core
from weir.router.store.records import EndsEvent, Entry, Event, NtfPage, Page, ServiceTotals
from weir.wire.smp import ids_hash

_ALL = range(keys.PARTITIONS)

_Share = tuple[int, bytes, int]  # count, idsHash, ready queues of one partition


class Services:
    def __init__(self, core: Core, emit: Callable[[Event], None]) -> None:
        self._core = core
        self._keys = core.keys
        self._muxes = core.muxes
        self._emit = emit
        self._taking: dict[tuple[bytes, int], list[EndsEvent]] = {}  # ENDS held back until the takeover returns
        self._epochs: dict[tuple[bytes, int], int] = {}  # (service, connection) → epoch without ENDS so far

    async def takeover(self, service_id: bytes, conn: int, day: int) -> ServiceTotals:
        """Make a connection the service's owner in all partitions. The previous owner gets one EndsEvent.

        This connection too gets one EndsEvent when it loses the service, even if that happens during this call.
        """
        at = (service_id, conn)
        home = self._core.partition(service_id)
        held = self._taking.setdefault(at, [])
        lowest = 1
        try:
            while True:
                epoch: int = await self._core.call(
                    home,
                    "claim",
                    [self._keys.service(home, service_id)],
                    [self._core.own(conn), lowest, service_id, int(time.time())],
                )
                self._epochs[at] = epoch
                token = self._core.token(conn, epoch)
                shares = await self._claim_partitions(service_id, token, epoch, day)
                higher = max((share for share in shares if isinstance(share, int)), default=0)
                # Redis may have lost epochs in the home partition only: then no connection owns the higher epoch.
                if (
                    not higher
                    or await self._core.ask(home, b"HGET", self._keys.service(home, service_id), b"o") != token
                ):
                    break
                lowest = higher + 1
        finally:
            if self._taking.pop(at, None) is not None:
                for event in held:
                    asyncio.get_running_loop().call_soon(self.ended, event)
        totals = await self.service_totals(service_id) if higher else _sum(shares)
        return replace(totals, epoch=epoch)

    async def _claim_partitions(self, service_id: bytes, token: bytes, epoch: int, day: int) -> list[Any]:
        """Claim all partitions. Each answers its share, or the higher epoch that owns the service there."""
        return await asyncio.gather(
            *(
                self._core.call(
                    p,
                    "takeover",
                    [self._keys.service(p, service_id), self._keys.service_ready(p, service_id)],
                    [token, epoch, day],
                )
                for p in _ALL
            )
        )

    def ended(self, event: EndsEvent) -> None:
        """Pass ENDS on, once for each epoch, and not before the takeover with that epoch has returned."""
        at = (event.service_id, event.conn)
        if at in self._taking:
            self._taking[at].append(event)
        elif self._epochs.get(at) == event.gen:
            del self._epochs[at]
            self._emit(event)

    async def reassert_service(self, service_id: bytes, conn: int, epoch: int, day: int) -> ServiceTotals | None:
        """After Redis was unavailable: assert the ownership of the service.

        None, with an EndsEvent, if another connection owns it. The caller starts a fold, which brings missed messages.
        """
        shares = await self._claim_partitions(service_id, self._core.token(conn, epoch), epoch, day)
        if not any(isinstance(share, int) for share in shares):
            return replace(_sum(shares), epoch=epoch)
        self.ended(EndsEvent(service_id, conn, epoch))
        return None

    async def release_service(self, service_id: bytes, conn: int, epoch: int) -> None:
        """End the ownership of a connection that has closed."""
        if self._epochs.get((service_id, conn)) == epoch:
            del self._epochs[(service_id, conn)]
        token = self._core.token(conn, epoch)
        await asyncio.gather(
            *(self._core.call(p, "release_service", [self._keys.service(p, service_id)], [token]) for p in _ALL)
        )

    async def fold_page(
        self,
        service_id: bytes,
        conn: int,
        epoch: int,
        partition: int,
        cursor: int,
        n: int,
        expire_before: int,
        *,
        again: bool = False,
    ) -> Page:
        """One page of queues with messages. Puts the first message of each queue in flight to this owner.

        With `again`, or after a broken connection, the page also has messages that are already in flight, because the
        page that marked them may have been lost. The caller knows which messages it has.
        """
        p = partition
        place = _Place.parse(cursor, again, self._muxes[p].generation)
        raw = await self._core.call(
            p,
            "fold_page",
            [self._keys.service(p, service_id), self._keys.service_ready(p, service_id)],
            [self._core.token(conn, epoch), place.scan, n, expire_before, int(place.again)],
        )
        if isinstance(raw, int):
            return Page(None, [], True)
        entries = [(raw[i], Entry.parse(raw[i + 1])) for i in range(1, len(raw), 2)]
        return Page(place.following(raw[0], self._muxes[p].generation), entries)

    async def ntf_page(self, service_id: bytes, conn: int, epoch: int, partition: int, cursor: int, n: int) -> NtfPage:
        """One page of notifier ids with waiting notifications."""
        p = partition
        place = _Place.parse(cursor, False, self._muxes[p].generation)
        raw = await self._core.call(
            p,
            "ntf_page",
            [self._keys.service(p, service_id), self._keys.service_ready(p, service_id)],
            [self._core.token(conn, epoch), place.scan, n],
        )
        if isinstance(raw, int):
            return NtfPage(None, [], True)
        return NtfPage(place.following(raw[0], self._muxes[p].generation), raw[1:])

    async def service_totals(self, service_id: bytes) -> ServiceTotals:
        """The exact count and idsHash of a service, and its owner according to its home partition."""
        asked: list[asyncio.Future[Any]] = []
        for p in _ALL:
            asked.append(self._core.read(p, b"HMGET", self._keys.service(p, service_id), b"c", b"h", b"o", b"e", b"w"))
            asked.append(self._core.read(p, b"SCARD", self._keys.service_ready(p, service_id)))
        replies = await asyncio.gather(*asked)
        shares = [(int(f[0] or 0), f[1] or b"", ready) for f, ready in zip(replies[::2], replies[1::2], strict=True)]
        totals = _sum(shares)
        _, _, owner, epoch, since = replies[2 * self._core.partition(service_id)]
        connection = owner.decode().rpartition(":")[0] if owner else None
        return replace(totals, owner=connection, epoch=int(epoch or 0), since=int(since or 0) if owner else None)


class _Place(NamedTuple):
    """The position of a fold in a partition.

    A cursor of SCAN is good for one connection. On a new connection the fold starts the partition again and includes
    messages in flight, because an answer may have been lost.
    """

    scan: int
    again: bool
    generation: int

    @staticmethod
    def parse(cursor: int, again: bool, generation: int) -> "_Place":
        if cursor == 0:
            return _Place(0, again, generation)
        if cursor & 0xFFFFFFFF != generation:
            return _Place(0, True, generation)
        return _Place(cursor >> 33, bool(cursor >> 32 & 1), generation)

    def following(self, scan: bytes, generation: int) -> int | None:
        if generation != self.generation:
            return 1 << 32 | generation
        return int(scan) << 33 | self.again << 32 | generation if scan != b"0" else None


def _sum(shares: Iterable[_Share]) -> ServiceTotals:
    """Add up the shares of all partitions, in their order."""
    count, total = 0, ids_hash.EMPTY
    ready_in: dict[int, int] = {}
    for partition, (share_count, share_hash, share_ready) in enumerate(shares):
        count += share_count
        total = ids_hash.add(total, share_hash)
        if share_ready:
            ready_in[partition] = share_ready
    return ServiceTotals(count, total, ready_in)
