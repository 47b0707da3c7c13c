"""SNEW: a token subscribes to the notifications of a queue. The edge that owns the queue's SMP server hears of it."""

from __future__ import annotations

from weir.notifier.commands.handler import VerifiedHandler, handles
from weir.notifier.store.records import Token
from weir.wire.errors import ErrorType, Simple
from weir.wire.ntf.types import IDSUB, SNEW, NtfReply


@handles(SNEW)
class SnewHandler(VerifiedHandler[SNEW, Token]):
    """The command names the token whose key authorises it."""

    __slots__ = ()

    async def find(self) -> Token | None:
        return await self.shared.fetch_token(self.command.token_id)

    def key_of(self, record: Token) -> bytes:
        return record.verify_key

    def allows(self, record: Token) -> bool:
        return record.may_subscribe

    async def execute(self, record: Token) -> NtfReply | ErrorType:
        shared, command = self.shared, self.command
        result = await shared.store.subscriptions.create(record, command.queue, command.ntf_key)
        if result is None:
            return Simple.AUTH
        if result.created:
            shared.stats.count(record.device.provider, "subCreated")
            if not result.owned:
                shared.on_unowned(result.subscription.server_id)
        return IDSUB(result.subscription.id)
