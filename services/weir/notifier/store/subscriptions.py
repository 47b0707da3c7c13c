"""Subscriptions of tokens to queues: SNEW, SCHK, SDEL.

A subscription is in its token's partition; the index from its notifier is in the partition of the notifier's hash. SNEW
reserves the index, makes the subscription, and then keeps the index. A reservation expires by itself. Whoever meets one
waits; a token in the same partition makes the subscription with the reserved id instead, and the script that makes it
decides whose it is. An index whose subscription is gone is replaced. So one notifier has one subscription at most.
"""

from __future__ import annotations

import asyncio
from hashlib import md5
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from weir.notifier.store.core import EXISTS, OK, TRIES, Core, pack_address, today
from weir.notifier.store.packing import open_notifier_key, parse_token, seal_notifier_key, unpack_sub_status
from weir.notifier.store.records import Created, Status, Subscription, Token
from weir.notifier.store.sealing import Damaged
from weir.notifier.store.tokens import free_notifier
from weir.redis.errors import UNAVAILABLE
from weir.wire.address import ServerHost
from weir.wire.ntf.types import SmpQueueNtf, SubError, SubStatus

if TYPE_CHECKING:
    from weir.notifier.store.servers import Servers

_RESERVED_MS = 60_000  # longer than any call to Redis may take
_PAUSE = 0.1  # seconds to wait for a subscription that is being made


class Subscriptions:
    def __init__(self, core: Core, servers: Servers) -> None:
        self._core = core
        self._keys = core.keys
        self._sealer = core.sealer
        self._servers = servers

    async def create(self, token: Token, queue: SmpQueueNtf, ntf_key: bytes) -> Created | None:
        """SNEW: make a subscription, or find the token's own one with the same notifier key (behaviour 3).

        None when the notifier belongs to another token, or the key is another one: AUTH. The SMP server is recorded.
        """
        core = self._core
        server_id = await self._servers.ensure(queue.server)
        at = core.partition(server_id + queue.notifier_id)
        index = self._keys.notifier(at, server_id, queue.notifier_id)
        sub_id, stale = core.placement.draw(token.partition), b""
        for _ in range(TRIES):
            reserved = await core.call(at, "claim_notifier", [index], [sub_id, stale, _RESERVED_MS])
            if reserved == OK:
                break
            known, making = reserved
            found = await self.fetch(known)
            if found is not None:
                return await self._existing(found[0], token, queue, ntf_key)
            if not making:
                stale = known
            elif core.partition(known) == token.partition:
                sub_id = known
            else:
                await asyncio.sleep(_PAUSE)
        else:
            return None
        owned = await self._make(sub_id, token, server_id, queue, ntf_key)
        if owned is None:
            await free_notifier(core, server_id, queue.notifier_id, sub_id)
            return None
        if owned == EXISTS:
            found = await self.fetch(sub_id)
            return None if found is None else await self._existing(found[0], token, queue, ntf_key)
        sub = Subscription(sub_id, token.id, server_id, queue, ntf_key, SubStatus.NEW, False)
        if await core.call(at, "keep_notifier", [index], [sub_id]) != OK:
            await self.delete(sub)
            return None
        core.notifiers.put(server_id + queue.notifier_id, sub_id)
        return Created(sub, True, bool(owned[0]))

    async def _make(self, sub_id: bytes, token: Token, server_id: bytes, queue: SmpQueueNtf, ntf_key: bytes) -> Any:
        """EXISTS, [whether the server is owned], or None: not allowed."""
        p = token.partition
        raw = await self._core.call(
            p,
            "subscribe",
            [self._keys.subscription(p, sub_id), self._keys.token(p, token.id)],
            [
                token.id, server_id,
                b"n", queue.notifier_id,
                b"g", md5(queue.notifier_id, usedforsecurity=False).digest(),
                b"h", self._sealer.address(pack_address(queue.server)),
                b"k", seal_notifier_key(self._sealer, sub_id, ntf_key),
            ],
        )  # fmt: skip
        return raw if raw == EXISTS or isinstance(raw, list) else None

    async def _existing(self, sub: Subscription, token: Token, queue: SmpQueueNtf, ntf_key: bytes) -> Created | None:
        if sub.token_id != token.id or not compare_digest(sub.ntf_key, ntf_key):
            return None
        if sub.queue.server != queue.server:
            p = self._core.partition(sub.id)
            address = self._sealer.address(pack_address(queue.server))
            await self._core.call(p, "readdress", [self._keys.subscription(p, sub.id)], [address])
        at = self._core.partition(sub.server_id + queue.notifier_id)
        index = self._keys.notifier(at, sub.server_id, queue.notifier_id)
        if await self._core.call(at, "keep_notifier", [index], [sub.id]) != OK:
            return None
        return Created(sub, False, True)

    async def fetch(self, sub_id: bytes) -> tuple[Subscription, Token] | None:
        """A subscription and its token, in one round trip, e.g. for SCHK."""
        core, p = self._core, self._core.partition(sub_id)
        raw = await core.call(p, "fetch_subscription", [self._keys.subscription(p, sub_id)], [today()])
        if raw is None:
            return None
        token_id, server_id, notifier_id, address, key, packed, associated, mark, session, service_up = raw[:10]
        server = (await core.resolve([address])).get(address)
        if server is None:
            raise UNAVAILABLE
        status = unpack_sub_status(packed)
        if status is SubStatus.ACTIVE and not (service_up == b"1" if associated else mark == session):
            status = SubStatus.INACTIVE
        sub = _subscription(core, sub_id, token_id, server_id, notifier_id, server, key, status, bool(associated))
        return sub, parse_token(self._sealer, token_id, p, raw[10:17])

    async def delete(self, sub: Subscription) -> Status:
        """SDEL."""
        p = self._core.partition(sub.id)
        raw = await self._core.call(p, "unsubscribe", [self._keys.subscription(p, sub.id)], [])
        await free_notifier(self._core, sub.server_id, sub.queue.notifier_id, sub.id)
        return Status.OK if raw == OK else Status.GONE


def _subscription(
    core: Core,
    sub_id: bytes,
    token_id: bytes,
    server_id: bytes,
    notifier_id: bytes,
    server: ServerHost,
    key: bytes,
    status: SubStatus | SubError,
    associated: bool,
) -> Subscription:
    queue = SmpQueueNtf(server, notifier_id)
    return Subscription(
        sub_id, token_id, server_id, queue, open_notifier_key(core.sealer, sub_id, key), status, associated
    )


async def picked(core: Core, server_id: bytes, flat: list[bytes]) -> list[Subscription]:
    """Subscriptions as include/pick.lua answers them."""
    rows = [flat[n : n + 6] for n in range(0, len(flat), 6)]
    addresses = await core.resolve(row[3] for row in rows)
    found: list[Subscription] = []
    for sub_id, token_id, notifier_id, address, key, packed in rows:
        if address not in addresses:
            core.count_damaged()
            continue
        try:
            found.append(
                _subscription(
                    core,
                    sub_id,
                    token_id,
                    server_id,
                    notifier_id,
                    addresses[address],
                    key,
                    unpack_sub_status(packed),
                    False,
                )
            )
        except Damaged:  # one subscription must not hold up those of a whole server
            core.count_damaged()
    return found
