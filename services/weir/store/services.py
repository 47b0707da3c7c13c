"""Services while they are connected: takeover, the fold over ready queues, release, totals."""

import asyncio
import time
from dataclasses import replace
from typing import Any, NamedTuple

from weir.store import keys
from weir.store.core import Core, StoreConfig
from weir.store.records import EndsEvent, Entry, NtfPage, Page, ServiceTotals, Takeover
from weir.store.topology import Topology

_EMPTY = bytes(16)
_ALL = range(keys.PARTITIONS)


def _xor(a: bytes, b: bytes) -> bytes:
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).to_bytes(16, "big") if b else a


class Services(Core):
    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(config, topology)
        self._taking: dict[tuple[bytes, int], list[EndsEvent]] = {}  # ENDS held back while a takeover is under way
        self._epochs: dict[tuple[bytes, int], int] = {}  # (service, conn) → epoch that has not been told to end

    async def takeover(self, service_id: bytes, conn: int, day: int) -> Takeover:
        """Makes a connection the service's owner in all partitions. Whoever had it gets one EndsEvent, as this one
        will when it loses it, even while this call runs."""
        at = (service_id, conn)
        home = self.partition(service_id)
        held = self._taking.setdefault(at, [])
        lowest = 1
        try:
            while True:
                epoch: int = await self.call(
                    home,
                    "claim",
                    [keys.service(home, service_id)],
                    [self.own(conn), lowest, service_id, int(time.time())],
                )
                self._epochs[at] = epoch
                token = self.token(conn, epoch)
                shares = await asyncio.gather(
                    *(
                        self.call(
                            p,
                            "takeover",
                            [keys.service(p, service_id), keys.service_ready(p, service_id)],
                            [token, epoch, day],
                        )
                        for p in _ALL
                    )
                )
                higher = max((share for share in shares if isinstance(share, int)), default=0)
                # Redis may have lost epochs of the home partition alone; then nobody owns the higher one.
                if not higher or await self.ask(home, b"HGET", keys.service(home, service_id), b"o") != token:
                    break
                lowest = higher + 1
        finally:
            if self._taking.pop(at, None) is not None:
                for event in held:
                    asyncio.get_running_loop().call_soon(self._service_ended, event)
        totals = _sum([share for share in shares if not isinstance(share, int)])
        if higher:
            totals = await self.service_totals(service_id)
        return Takeover(epoch, totals.count, totals.ids_hash, totals.ready)

    def _service_ended(self, event: EndsEvent) -> None:
        """Passes ENDS on once, and not before the takeover it ends has returned."""
        at = (event.service_id, event.conn)
        if at in self._taking:
            self._taking[at].append(event)
        elif self._epochs.get(at) == event.gen:
            del self._epochs[at]
            self.emit(event)

    async def reassert_service(self, service_id: bytes, conn: int, epoch: int, day: int) -> bool:
        """Redis was away: says again who owns the service; False (and an EndsEvent) when another does.
        The fold that follows finds what was missed."""
        token = self.token(conn, epoch)
        shares = await asyncio.gather(
            *(
                self.call(
                    p,
                    "takeover",
                    [keys.service(p, service_id), keys.service_ready(p, service_id)],
                    [token, epoch, day],
                )
                for p in _ALL
            )
        )
        if not any(isinstance(share, int) for share in shares):
            return True
        self._service_ended(EndsEvent(service_id, conn, epoch))
        return False

    async def release_service(self, service_id: bytes, conn: int, epoch: int) -> None:
        """The connection has closed."""
        if self._epochs.get((service_id, conn)) == epoch:
            del self._epochs[(service_id, conn)]
        token = self.token(conn, epoch)
        await asyncio.gather(*(self.call(p, "release_service", [keys.service(p, service_id)], [token]) for p in _ALL))

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
        """Queues with messages: the first message of each that was not in flight to this owner now is. `again` brings
        what is in flight too: the edge knows what it has. So does a page after a broken connection."""
        p = partition
        place = _Place.parse(cursor, again, self.muxes[p].generation)
        raw = await self.call(
            p,
            "fold_page",
            [keys.service(p, service_id), keys.service_ready(p, service_id)],
            [self.token(conn, epoch), place.scan, n, expire_before, place.again],
        )
        if isinstance(raw, int):
            return Page(None, [], True)
        entries = [(raw[i], Entry.parse(raw[i + 1])) for i in range(1, len(raw), 2)]
        return Page(place.following(raw[0], self.muxes[p].generation), entries)

    async def ntf_page(self, service_id: bytes, conn: int, epoch: int, partition: int, cursor: int, n: int) -> NtfPage:
        """Notifier ids with notifications."""
        p = partition
        place = _Place.parse(cursor, False, self.muxes[p].generation)
        raw = await self.call(
            p,
            "ntf_page",
            [keys.service(p, service_id), keys.service_ready(p, service_id)],
            [self.token(conn, epoch), place.scan, n],
        )
        if isinstance(raw, int):
            return NtfPage(None, [], True)
        return NtfPage(place.following(raw[0], self.muxes[p].generation), raw[1:])

    async def service_totals(self, service_id: bytes) -> ServiceTotals:
        """The exact count and idsHash, and who owns the service (as its home partition has it)."""
        asked: list[asyncio.Future[Any]] = []
        for p in _ALL:
            asked.append(self.look(p, b"HMGET", keys.service(p, service_id), b"c", b"h", b"o", b"e", b"w"))
            asked.append(self.look(p, b"SCARD", keys.service_ready(p, service_id)))
        replies = await asyncio.gather(*asked)
        shares = [(int(f[0] or 0), f[1] or b"", ready) for f, ready in zip(replies[::2], replies[1::2], strict=True)]
        totals = _sum(shares)
        _, _, owner, epoch, since = replies[2 * self.partition(service_id)]
        connection = owner.decode().rpartition(":")[0] if owner else None
        return replace(totals, owner=connection, epoch=int(epoch or 0), since=int(since or 0) if owner else None)


class _Place(NamedTuple):
    """Where a fold is in a partition. A SCAN's cursor is good for one connection: after that the partition starts
    again, and with what is in flight, since an answer may have been lost."""

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


def _sum(shares: list[Any]) -> ServiceTotals:
    count, total, ready = 0, _EMPTY, 0
    for share_count, share_hash, share_ready in shares:
        count += share_count
        total = _xor(total, share_hash)
        ready += share_ready
    return ServiceTotals(count, total, ready)
