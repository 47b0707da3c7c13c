"""TDEL: a token is deleted with its subscriptions."""

from __future__ import annotations

from weir.notifier.commands.handler import TokenHandler, done, handles
from weir.notifier.store.records import Status, Token
from weir.wire.errors import ErrorType
from weir.wire.ntf.types import TDEL, NtfReply


@handles(TDEL)
class TdelHandler(TokenHandler[TDEL]):
    __slots__ = ()

    async def execute(self, record: Token) -> NtfReply | ErrorType:
        status = await self.shared.store.tokens.delete(record)
        if status is Status.OK:
            self.shared.stats.count(record.device.provider, "tknDeleted")
        return done(status)
