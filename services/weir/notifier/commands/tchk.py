"""TCHK: the status of a token."""

from __future__ import annotations

from weir.notifier.commands.handler import TokenHandler, handles
from weir.notifier.store.records import Token
from weir.wire.ntf.types import TCHK, TKN, NtfReply


@handles(TCHK)
class TchkHandler(TokenHandler[TCHK]):
    __slots__ = ()

    async def execute(self, record: Token) -> NtfReply:
        return TKN(record.status)
