"""TVFY: the device proves with the code that pushes reach it. The device's other tokens are deleted.

Nothing is pushed to a token of the null provider, so no device can know its code: any code makes it active. Checks and
benches use such tokens.
"""

from __future__ import annotations

from weir.notifier.commands.handler import TokenHandler, done, handles
from weir.notifier.store.records import Status, Token
from weir.wire.errors import ErrorType
from weir.wire.ntf.types import TVFY, NtfReply, PushProvider


@handles(TVFY)
class TvfyHandler(TokenHandler[TVFY]):
    __slots__ = ()

    def allows(self, record: Token) -> bool:
        return record.may_verify

    async def execute(self, record: Token) -> NtfReply | ErrorType:
        provider = record.device.provider
        code = record.code if provider is PushProvider.APNS_NULL else self.command.code
        status = await self.shared.store.tokens.activate(record, code)
        if status is Status.OK:
            self.shared.stats.count(provider, "tknVerified")
        return done(status)
