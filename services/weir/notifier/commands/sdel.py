"""SDEL: a subscription is deleted."""

from __future__ import annotations

from weir.notifier.commands.handler import SubscriptionHandler, done, handles
from weir.notifier.store.records import Status, Subscription, Token
from weir.wire.errors import ErrorType
from weir.wire.ntf.types import SDEL, NtfReply


@handles(SDEL)
class SdelHandler(SubscriptionHandler[SDEL]):
    __slots__ = ()

    async def execute(self, record: tuple[Subscription, Token]) -> NtfReply | ErrorType:
        subscription, token = record
        status = await self.shared.store.subscriptions.delete(subscription)
        if status is Status.OK:
            self.shared.stats.count(token.device.provider, "subDeleted")
        return done(status)
