"""PING: answered at once."""

from __future__ import annotations

from weir.notifier.commands.handler import Handler, handles
from weir.wire.ntf.types import PING, PONG, NtfReply


@handles(PING)
class PingHandler(Handler[PING, None]):
    __slots__ = ()

    async def find(self) -> None:
        return None

    async def execute(self, record: None) -> NtfReply:
        return PONG()
