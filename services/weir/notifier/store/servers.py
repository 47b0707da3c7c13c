"""SMP servers: addresses, service credentials, which edge owns a server, and the state of its subscriptions.

An edge owns a server as long as it holds its leases: an ownership needs no renewal of its own. When `store.on_lost` is
called, the edge owns nothing any more; after `store.on_restored` it asks `is_owner`. Every ownership has an *epoch*.
The scripts refuse changes of an epoch that is not the newest: the calls raise Fenced.

The status of a subscription is derived where a whole server changes: a subscription that was ACTIVE in an earlier
session reads as INACTIVE. So `disconnected` and `session_up` cost the same for any number of subscriptions.

A server's record is in the registry. Each partition has a *share* of the server: owner, epoch, mark of the session,
count and idsHash of the subscriptions that the server's service has. The home partition of the server id draws the
epoch.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any

from weir.notifier.store.core import FENCED, GONE, TRIES, Core, pack_address, unpack_address
from weir.notifier.store.notifications import Notifications
from weir.notifier.store.packing import pack_sub_status
from weir.notifier.store.records import Fenced, Server, ServiceKeys, Subscription, Totals
from weir.notifier.store.subscriptions import picked
from weir.redis.partitions import PARTITIONS, REGISTRY
from weir.runtime.cache import Cache
from weir.wire.address import ServerHost
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp import ids_hash

_SEEN = 10_000  # addresses that an edge need not record again
_BATCH = 500  # subscriptions of one script call
_PAGE = 1000


class Servers:
    def __init__(self, core: Core, notifications: Notifications) -> None:
        self._core = core
        self._keys = core.keys
        self._find = notifications.find
        self._seen: Cache[bytes] = Cache(_SEEN)  # address → server id

    def reconnected(self) -> None:
        """Redis may have lost writes in a fail-over: servers are recorded again by the next SNEW."""
        self._seen.clear()

    async def ensure(self, host: ServerHost) -> bytes:
        """The id of the server with this identity, which is recorded if it is new.

        An address without a common host with the recorded one becomes the server's candidate, and the owner gets a
        ServerMovedEvent. No round trip for an address that this edge has seen lately.
        """
        packed = pack_address(host)
        server_id = self._seen.get(packed)
        if server_id is not None:
            return server_id
        core = self._core
        server_id = core.sealer.server_id(host.key_hash)
        record = self._keys.server(server_id)
        recorded, candidate = await core.read_registry(b"HMGET", record, b"a", b"n")
        moved = recorded is not None and not _same_place(unpack_address(recorded), host)
        digest = core.sealer.address(packed)
        await core.call(
            REGISTRY,
            "add_server",
            [record, self._keys.servers, self._keys.addresses],
            [server_id, packed, digest, b"1" if moved else b""],
        )
        core.remember(digest, host)
        if not moved:
            self._seen.put(packed, server_id)
        elif candidate != packed:
            home = core.partition(server_id)
            await core.call(home, "tell_moved", [self._keys.share(home, server_id)], [digest])
        return server_id

    async def ids(self) -> list[bytes]:
        found: list[bytes] = await self._core.read_registry(b"SMEMBERS", self._keys.servers)
        return found

    async def all(self) -> list[Server]:
        found = await asyncio.gather(*(self.fetch(server_id) for server_id in sorted(await self.ids())))
        return [server for server in found if server is not None]

    async def fetch(self, server_id: bytes) -> Server | None:
        address, candidate, service_id, state = await self._core.read_registry(
            b"HMGET", self._keys.server(server_id), b"a", b"n", b"i", b"j"
        )
        if address is None:
            return None
        return Server(
            server_id,
            unpack_address(address),
            None if candidate is None else unpack_address(candidate),
            service_id,
            {} if state is None else json.loads(state),
        )

    async def verified(self, server_id: bytes, epoch: int, address: ServerHost) -> None:
        """A server with the right identity answered at this address: it becomes the recorded one."""
        await self._settle_address(server_id, epoch, address, b"1")

    async def rejected(self, server_id: bytes, epoch: int, address: ServerHost) -> None:
        """Nobody with the right identity answered at the candidate's address: forget it."""
        await self._settle_address(server_id, epoch, address, b"")

    async def _settle_address(self, server_id: bytes, epoch: int, address: ServerHost, verified: bytes) -> None:
        await self._check_owner(server_id, epoch)
        await self._core.call(
            REGISTRY, "settle_address", [self._keys.server(server_id)], [pack_address(address), verified]
        )

    async def set_state(self, server_id: bytes, state: Mapping[str, str]) -> None:
        """Publish what the page shows of a server, e.g. since when it is subscribed."""
        text = json.dumps(dict(state)).encode()
        await self._core.ask_registry(b"HSET", self._keys.server(server_id), b"j", text)

    # Ownership

    async def own(self, server_id: bytes) -> int | None:
        """Become the server's owner in all partitions. Returns the epoch; None while another live edge is the owner."""
        core, home = self._core, self._core.partition(server_id)
        floor = 0
        for _ in range(TRIES):
            mark = os.urandom(8)
            epoch: int = await core.call(home, "own", [self._keys.share(home, server_id)], [core.edge, mark, floor])
            if epoch == 0:
                return None
            token = b"%b:%d" % (core.edge, epoch)
            answers = await self._in_all(server_id, "take_share", [token, epoch, mark])
            floor = max(answers)
            if floor == 0:
                return epoch
            # A partition has a higher epoch: another edge became the owner meanwhile, or Redis has lost writes.
        return None

    async def is_owner(self, server_id: bytes, epoch: int) -> bool:
        home = self._core.partition(server_id)
        owner = await self._core.ask(home, b"HGET", self._keys.share(home, server_id), b"o")
        return bool(owner == b"%b:%d" % (self._core.edge, epoch))

    async def _check_owner(self, server_id: bytes, epoch: int) -> None:
        if not await self.is_owner(server_id, epoch):
            raise Fenced

    async def owners(self) -> dict[bytes, str]:
        """The live edge that owns a server, by server id."""
        core, ids = self._core, await self.ids()
        homes = [core.partition(server_id) for server_id in ids]
        tokens = await asyncio.gather(
            *(core.read(p, b"HGET", self._keys.share(p, each), b"o") for p, each in zip(homes, ids, strict=True))
        )
        owned = [
            (p, each, token.partition(b":")[0]) for p, each, token in zip(homes, ids, tokens, strict=True) if token
        ]
        live = await asyncio.gather(*(core.read(p, b"EXISTS", self._keys.lease(p, edge)) for p, _, edge in owned))
        return {each: edge.decode() for (_, each, edge), held in zip(owned, live, strict=True) if held}

    async def release(self, server_id: bytes, epoch: int) -> None:
        """Let another edge become the owner at once. The subscriptions read as INACTIVE then."""
        await self._in_all(server_id, "release_share", [b"%b:%d" % (self._core.edge, epoch), os.urandom(8)])

    # Services

    async def credentials(self, server_id: bytes) -> ServiceKeys | None:
        sealed = await self._core.read_registry(b"HGET", self._keys.server(server_id), b"c")
        return None if sealed is None else self._open(sealed)

    async def set_credentials(self, server_id: bytes, keys: ServiceKeys) -> ServiceKeys:
        """Store the credentials made on first use. Returns the stored ones: the first call wins."""
        sealed = self._core.sealer.seal(
            b"service keys", b"%08d" % len(keys.certificate) + keys.certificate + keys.private_key
        )
        return self._open(await self._core.call(REGISTRY, "set_credentials", [self._keys.server(server_id)], [sealed]))

    def _open(self, sealed: bytes) -> ServiceKeys:
        plain = self._core.sealer.open(b"service keys", sealed)
        end = 8 + int(plain[:8])
        return ServiceKeys(plain[8:end], plain[end:])

    async def set_service(self, server_id: bytes, epoch: int, service_id: bytes) -> bool:
        """Store the service id that the server named in its handshake. Returns whether it is another one than before.

        Associations with another service are void: their subscriptions become pending before the id is stored.
        """
        record = self._keys.server(server_id)
        known = await self._core.ask_registry(b"HGET", record, b"i")
        if known == service_id:
            return False
        await self._dissociate(server_id, epoch)
        await self._core.ask_registry(b"HSET", record, b"i", service_id)
        return known is not None

    async def remove_service(self, server_id: bytes, epoch: int) -> int:
        """Behaviour 7: associated subscriptions that are to be resubscribed become pending; others are not touched.

        Count and hash are 0 then, and service id and credentials are forgotten. Returns the number of subscriptions.
        """
        removed = await self._dissociate(server_id, epoch)
        await self._core.ask_registry(b"HDEL", self._keys.server(server_id), b"i", b"c")
        return removed

    async def _dissociate(self, server_id: bytes, epoch: int) -> int:
        async def all_of(p: int) -> int:
            removed = 0
            while page := await self._core.call(
                p, "dissociate_page", [self._keys.share(p, server_id)], [epoch, _BATCH]
            ):
                if page < 0:
                    raise Fenced
                removed += page
            return removed

        return sum(await asyncio.gather(*map(all_of, range(PARTITIONS))))

    # Subscriptions

    async def totals(self, server_id: bytes) -> Totals:
        core = self._core
        shares, pending = await asyncio.gather(
            asyncio.gather(
                *(core.ask(p, b"HMGET", self._keys.share(p, server_id), b"c", b"h") for p in range(PARTITIONS))
            ),
            self._pending_sizes(server_id),
        )
        count, total = 0, ids_hash.EMPTY
        for number, part in shares:
            count += int(number or 0)
            total = ids_hash.add(total, part or ids_hash.EMPTY)
        return Totals(count, total, sum(pending))

    async def _pending_sizes(self, server_id: bytes) -> list[int]:
        return await _all(*(self._core.ask(p, b"ZCARD", self._keys.pending(p, server_id)) for p in range(PARTITIONS)))

    async def session_up(self, server_id: bytes, epoch: int) -> None:
        """The service is subscribed (NSUBS was answered): its associated subscriptions read as ACTIVE."""
        _check(*await self._in_all(server_id, "set_session", [epoch, b""]))

    async def disconnected(self, server_id: bytes, epoch: int) -> None:
        """The session has ended: ACTIVE subscriptions of the server read as INACTIVE."""
        _check(*await self._in_all(server_id, "set_session", [epoch, os.urandom(8)]))

    async def pending(self, server_id: bytes, epoch: int, *, page: int = _PAGE) -> AsyncIterator[list[Subscription]]:
        """The subscriptions to make one by one in this session, page by page. Those subscribed already are left out.

        NEW and INACTIVE ones become PENDING. Those with ERR and SERVICE come again in every walk, and keep their status
        until they are subscribed.
        """
        for p, size in enumerate(await self._pending_sizes(server_id)):
            after = b""
            while size:
                raw = await self._core.call(p, "pending_page", [self._keys.share(p, server_id)], [epoch, after, page])
                _check(raw)
                after, flat = raw[0], raw[1:]
                if flat:
                    yield await picked(self._core, server_id, flat)
                if not after:
                    break

    async def to_subscribe(self, server_id: bytes, epoch: int, sub_ids: Collection[bytes]) -> list[Subscription]:
        """As `pending`, for the subscriptions of SubscribeEvents. Those that are gone or subscribed are left out."""
        answers = await self._by_partition(server_id, "pick_subscriptions", [epoch], ((each, ()) for each in sub_ids))
        return [sub for flat in answers for sub in await picked(self._core, server_id, flat)]

    async def subscribed(
        self, server_id: bytes, epoch: int, subs: Sequence[Subscription], service_id: bytes | None
    ) -> None:
        """NSUB was answered with OK (or SOK and the service's id): ACTIVE, and associated with the service or not."""
        associated = b"" if service_id is None else b"1"
        await self._by_partition(server_id, "subscribed", [epoch, associated], ((sub.id, ()) for sub in subs))

    async def errors(
        self, server_id: bytes, epoch: int, errors: Sequence[tuple[Subscription, SubStatus | SubError]]
    ) -> None:
        """NSUB was refused: the new status, and no association."""
        rows = ((sub.id, (pack_sub_status(status),)) for sub, status in errors)
        await self._by_partition(server_id, "refused", [epoch], rows)

    async def _by_partition(
        self,
        server_id: bytes,
        script: str,
        args: list[bytes | int],
        rows: Iterable[tuple[bytes, tuple[bytes, ...]]],
    ) -> list[Any]:
        """Call a script with subscriptions, each with further arguments, in the partitions that they are in."""
        by_partition: dict[int, list[tuple[bytes, ...]]] = {}
        for sub_id, more in rows:
            by_partition.setdefault(self._core.partition(sub_id), []).append((sub_id, *more))
        answers: list[Any] = await asyncio.gather(
            *(
                self._core.call(
                    p,
                    script,
                    [self._keys.share(p, server_id)],
                    [*args, *(word for row in listed[n : n + _BATCH] for word in row)],
                )
                for p, listed in by_partition.items()
                for n in range(0, len(listed), _BATCH)
            )
        )
        _check(*answers)
        return answers

    async def ended(self, server_id: bytes, epoch: int, notifier_id: bytes) -> bool:
        """END of the current session (behaviour 5). Returns False when the notifier has no subscription."""
        return await self._ended(server_id, notifier_id, b"%d" % epoch, SubStatus.END)

    async def deleted(self, server_id: bytes, notifier_id: bytes) -> bool:
        """DELD, of any session (behaviour 15)."""
        return await self._ended(server_id, notifier_id, b"", SubStatus.DELETED)

    async def _ended(self, server_id: bytes, notifier_id: bytes, epoch: bytes, status: SubStatus) -> bool:
        core, name = self._core, server_id + notifier_id
        sub_id = core.notifiers.get(name)
        for _ in range(2):
            if sub_id is None:
                sub_id = await self._find(server_id, notifier_id)
            if sub_id is None:
                return False
            p = core.partition(sub_id)
            raw = await core.call(p, "ended", [self._keys.subscription(p, sub_id)], [epoch, pack_sub_status(status)])
            _check(raw)
            if raw != GONE:
                return True
            core.notifiers.drop(name)
            sub_id = None
        return False

    async def _in_all(self, server_id: bytes, script: str, args: list[bytes | int]) -> list[int]:
        """Call a script on the server's share of every partition."""
        return await _all(
            *(self._core.call(p, script, [self._keys.share(p, server_id)], args) for p in range(PARTITIONS))
        )


async def _all(*calls: asyncio.Future[Any]) -> list[int]:
    return list(await asyncio.gather(*calls))


def _check(*answers: Any) -> None:
    if FENCED in answers:
        raise Fenced


def _same_place(one: ServerHost, other: ServerHost) -> bool:
    return one.port == other.port and not set(one.hosts).isdisjoint(other.hosts)
