"""TRPL: the device has got another device token. A new code is pushed to it; keys and subscriptions stay."""

from __future__ import annotations

from weir.notifier.commands.handler import TokenHandler, done, handles
from weir.notifier.store.records import Status, Token
from weir.wire.errors import CommandError, ErrorType
from weir.wire.ntf.types import TRPL, NtfReply


@handles(TRPL)
class TrplHandler(TokenHandler[TRPL]):
    __slots__ = ()

    async def execute(self, record: Token) -> NtfReply | ErrorType:
        shared, device = self.shared, self.command.token
        if not shared.takes(device.provider):
            return CommandError.PROHIBITED
        status = await shared.store.tokens.replace(record, device)
        if status is Status.OK:
            shared.stats.count(device.provider, "tknReplaced")
            shared.push_verification(record)
        return done(status)
