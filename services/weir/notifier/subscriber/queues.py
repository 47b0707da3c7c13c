"""NSUB for the queues of one SMP server that no service covers.

The store is walked page by page. A page is 100 batches, of which some are in flight at once. When a page is answered,
the outcome is written to the store, and the page is forgotten. The subscriptions that all sessions together hold in
memory are bounded. What SNEW makes meanwhile goes in front of the next page, as many as have come by then together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from weir.client.errors import ClientError, ReplyTimeout
from weir.client.smp import Answer, Request, SmpClient
from weir.crypto.keys import KeyPair, parse_private
from weir.notifier.store.records import Subscription
from weir.notifier.subscriber.outcomes import is_associated, is_subscribed, refusal
from weir.notifier.subscriber.shared import Owned, Shared
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp.commands import NSUB

_NSUB = NSUB()
_UNUSABLE_KEY = SubError(b"unusable notifier key")


class Queues:
    """`is_over` says whether a connection takes no more NSUBs; `is_paused` whether nothing is read from it."""

    def __init__(
        self,
        shared: Shared,
        owned: Owned,
        *,
        is_over: Callable[[SmpClient], bool],
        is_paused: Callable[[], bool],
    ) -> None:
        self._servers = shared.store.servers
        self._limits = shared.limits
        self._budget = shared.budget
        self._owned = owned
        self._is_over = is_over
        self._is_paused = is_paused
        self._new: dict[bytes, None] = {}
        self._gone: set[bytes] | None = None  # notifiers that ended while the answers to a page were coming

    def add(self, sub_id: bytes) -> bool:
        """SNEW has made a subscription. Return False if there are too many: then the store must be walked."""
        if len(self._new) >= self._limits.new_subscriptions:
            return False
        self._new[sub_id] = None
        return True

    def forget_new(self) -> None:
        """A walk will find what SNEW has made."""
        self._new.clear()

    def on_gone(self, notifier_id: bytes) -> None:
        """END or DELD. It came behind an answer that is not stored yet."""
        if self._gone is not None:
            self._gone.add(notifier_id)

    async def subscribe_new(self, client: SmpClient) -> int:
        """Subscribe to what SNEW made. Return how many need another try."""
        most = self._limits.batch * self._limits.batches_in_flight
        left = 0
        while self._new and not self._is_over(client):
            ids = list(self._new)[:most]
            subs = await self._servers.to_subscribe(self._owned.server_id, self._owned.epoch, ids)
            for sub_id in ids:
                self._new.pop(sub_id, None)
            left += await self._subscribe_page(client, subs)
        return left

    async def walk(self, client: SmpClient) -> int | None:
        """Subscribe to everything that is not subscribed yet. Return how many need another try, or None if ended."""
        server_id, epoch, state = self._owned.server_id, self._owned.epoch, self._owned.state
        state.queues_pending = pending = (await self._servers.totals(server_id)).pending
        left = 0
        page = min(self._limits.page, pending)
        pages = aiter(self._servers.pending(server_id, epoch, page=max(page, 1)))
        while pending:
            # The store's pages end with a partition: some are read at a time, and 2 pages at most are in memory.
            async with self._budget.take(2 * page):
                subs: list[Subscription] = []
                while len(subs) < page:
                    part = await anext(pages, None)
                    if part is None:
                        pending = 0
                        break
                    subs += part
                left += await self._subscribe_page(client, subs)
            left += await self.subscribe_new(client)
            if self._is_over(client):
                return None
        state.queues_pending = left
        return left

    async def _subscribe_page(self, client: SmpClient, subs: Sequence[Subscription]) -> int:
        """Send NSUB for these subscriptions and store what came of it. Return how many need another try.

        Raises ReplyTimeout, after storing the answers that came.
        """
        gone: set[bytes] = set()
        self._gone = gone
        size = self._limits.batch
        batches = iter([subs[at : at + size] for at in range(0, len(subs), size)])
        answered: list[tuple[Subscription, Answer | ClientError]] = []
        unusable: list[tuple[Subscription, SubStatus | SubError]] = []

        async def send_batches() -> None:
            for batch in batches:
                if self._is_over(client):
                    return
                keys = [(sub, _key(sub)) for sub in batch]
                unusable.extend((sub, _UNUSABLE_KEY) for sub, key in keys if key is None)
                usable = [(sub, key) for sub, key in keys if key is not None]
                answers = await client.send_each(Request(_NSUB, sub.queue.notifier_id, key) for sub, key in usable)
                answered.extend((sub, answer) for (sub, _), answer in zip(usable, answers, strict=True))

        try:
            await asyncio.gather(*(send_batches() for _ in range(self._limits.batches_in_flight)))
            left = await self._store(
                client, ((sub, one) for sub, one in answered if sub.queue.notifier_id not in gone), unusable
            )
        finally:
            self._gone = None
        if any(isinstance(answer, ReplyTimeout) for _, answer in answered) and not self._is_paused():
            raise ReplyTimeout
        return left

    async def _store(
        self,
        client: SmpClient,
        answered: Iterable[tuple[Subscription, Answer | ClientError]],
        errors: list[tuple[Subscription, SubStatus | SubError]],
    ) -> int:
        associated, single, left = [], [], 0
        for sub, answer in answered:
            if is_associated(answer, client.service_id):
                associated.append(sub)
            elif is_subscribed(answer):
                single.append(sub)
            else:
                status = refusal(answer)
                if status is not None:
                    errors.append((sub, status))
                left += status is not SubStatus.AUTH
        owned, servers = self._owned, self._servers
        if associated:
            await servers.subscribed(owned.server_id, owned.epoch, associated, client.service_id)
        if single:
            await servers.subscribed(owned.server_id, owned.epoch, single, None)
        if errors:
            owned.log(logging.INFO, f"{len(errors)} subscriptions refused")
            await servers.errors(owned.server_id, owned.epoch, errors)
        state = owned.state
        state.service_active += len(associated)
        state.queues_active += len(single)
        state.queues_pending = max(0, state.queues_pending - len(associated) - len(single))
        return left


def _key(sub: Subscription) -> KeyPair | None:
    parsed = parse_private(sub.ntf_key)
    # NSUB needs no public key, and computing one costs as much as the rest of the command.
    return None if parsed is None else KeyPair(parsed[0], b"", parsed[1])
