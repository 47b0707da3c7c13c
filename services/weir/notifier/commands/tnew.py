"""TNEW: a device's token is registered, and its code is pushed to the device. A repeated TNEW pushes the code again."""

from __future__ import annotations

from weir.notifier.commands.handler import VerifiedHandler, handles
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.ntf.types import IDTKN, TNEW, NtfReply


@handles(TNEW)
class TnewHandler(VerifiedHandler[TNEW, TNEW]):
    """The command brings the key that authorises it."""

    __slots__ = ()

    async def find(self) -> TNEW:
        return self.command

    def key_of(self, record: TNEW) -> bytes:
        return record.verify_key

    async def execute(self, record: TNEW) -> NtfReply | ErrorType:
        shared, device = self.shared, record.token
        if not shared.takes(device.provider):
            return CommandError.PROHIBITED
        registered = await shared.store.tokens.register(device, record.verify_key, record.dh_key)
        if registered is None:
            return Simple.AUTH
        token = registered.token
        if registered.created:
            shared.stats.count(device.provider, "tknCreated")
        shared.push_verification(token)
        return IDTKN(token.id, token.dh_public)
