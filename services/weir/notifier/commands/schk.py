"""SCHK: the status of a subscription."""

from __future__ import annotations

from weir.notifier.commands.handler import SubscriptionHandler, handles
from weir.notifier.store.records import Subscription, Token
from weir.wire.ntf.types import SCHK, SUB, NtfReply


@handles(SCHK)
class SchkHandler(SubscriptionHandler[SCHK]):
    __slots__ = ()

    async def execute(self, record: tuple[Subscription, Token]) -> NtfReply:
        return SUB(record[0].status)
