"""Dummy records: parsing one for a missing token or subscription makes a miss take as long as a hit."""

from __future__ import annotations

from weir.crypto.authenticator import DUMMY_X25519
from weir.notifier.store.packing import (
    TokenFields,
    open_notifier_key,
    parse_token,
    seal_notifier_key,
    token_fields,
)
from weir.notifier.store.records import Token
from weir.notifier.store.sealing import Sealer
from weir.wire.ntf.types import DeviceToken, PushProvider, TokenStatus

_ID = bytes(24)
_TOKEN = Token(
    _ID,
    0,
    1,
    DeviceToken(PushProvider.APNS_PROD, bytes(32)),
    TokenStatus.ACTIVE,
    DUMMY_X25519.spki,
    bytes(32),
    bytes(32),
    bytes(32),
    0,
)


class Dummies:
    def __init__(self, sealer: Sealer) -> None:
        written = token_fields(sealer, _TOKEN, 0)
        fields = dict(zip(written[::2], written[1::2], strict=True))
        self._sealer = sealer
        self._token = TokenFields(*(fields[letter] for letter in (b"u", b"p", b"r", b"f", b"x", b"d", b"c")))
        self._key = seal_notifier_key(sealer, _ID, DUMMY_X25519.pkcs8)

    def token(self) -> None:
        parse_token(self._sealer, _ID, 0, list(self._token))

    def subscription(self) -> None:
        open_notifier_key(self._sealer, _ID, self._key)
        self.token()
