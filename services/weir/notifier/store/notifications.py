"""Notifications that came from SMP servers (NMSG): the newest of each subscription, at most six for a token."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from weir.notifier.store.core import AUTH, GONE, OK, Core, entry_parts
from weir.notifier.store.records import MAX_NOTIFICATIONS, Received, Status
from weir.redis.resp import as_retry
from weir.wire.ntf.types import PushProvider

_OK, _AUTH = Received(Status.OK), Received(Status.AUTH)


class Notifications:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys = core.keys

    async def received(
        self,
        server_id: bytes,
        notifier_id: bytes,
        nonce: bytes,
        meta: bytes,
        ts: int,
        claim: Collection[PushProvider] = (),
        *,
        claim_id: bytes | None = None,
        again: bool = False,
    ) -> Received:
        """Keep a notification, and claim its push if the token's provider is one of `claim`. `ts` is in seconds.

        AUTH when no ACTIVE token has the subscription (behaviour 22). One round trip when the notifier is cached.

        A call that raised Unavailable may have claimed the push all the same. To call `again` with the same `claim_id`
        answers that push; without one, nobody would send it until the claim expires.
        """
        core, claim_id = self._core, claim_id or self.new_claim()
        rooms = b",".join([provider.value for provider in claim])
        head, rest = entry_parts(ts, nonce, notifier_id, meta)
        sub_id = core.notifiers.get(server_id + notifier_id)
        for cached in (True, False):
            if sub_id is None:
                sub_id = await self.find(server_id, notifier_id)
                if sub_id is None:
                    return _AUTH
                cached = False
            raw = await self._keep(sub_id, head, rest, rooms, claim_id, again)
            if raw == OK:
                return _OK
            if raw == AUTH:
                return _AUTH
            if raw != GONE:
                return Received(Status.OK, await core.push(raw))
            core.notifiers.drop(server_id + notifier_id)
            sub_id = None
            if not cached:
                break
        return _AUTH

    def new_claim(self) -> bytes:
        """An id for `received`."""
        return self._core.new_claim()

    async def _keep(self, sub_id: bytes, head: bytes, rest: bytes, rooms: bytes, claim_id: bytes, again: bool) -> Any:
        core = self._core
        p = core.partition(sub_id)
        call = core.script_wire(
            "received",
            [self._keys.subscription(p, sub_id)],
            [head, rest, MAX_NOTIFICATIONS, claim_id, core.claim_ms, rooms],
        )
        return await core.muxes[p].ask(as_retry(call) if again else call, script=True)

    async def find(self, server_id: bytes, notifier_id: bytes) -> bytes | None:
        """The id of a notifier's subscription."""
        core = self._core
        name = server_id + notifier_id
        p = core.partition(name)
        found: bytes | None = await core.read(p, b"GET", self._keys.notifier(p, server_id, notifier_id))
        if found is not None:
            core.notifiers.put(name, found)
        return found
