"""TCRN: how often the device is woken up to look for messages itself. 0: never."""

from __future__ import annotations

from weir.notifier.commands.handler import TokenHandler, done, handles
from weir.notifier.store.records import Token
from weir.wire.errors import ErrorType, Simple
from weir.wire.ntf.types import TCRN, NtfReply

_SHORTEST = 20  # minutes


@handles(TCRN)
class TcrnHandler(TokenHandler[TCRN]):
    __slots__ = ()

    async def execute(self, record: Token) -> NtfReply | ErrorType:
        minutes = self.command.minutes
        if 0 < minutes < _SHORTEST:
            return Simple.QUOTA
        return done(await self.shared.store.tokens.set_cron(record, minutes))
