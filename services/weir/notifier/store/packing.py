"""Records as Redis hashes, and the answers of scripts as records.

Token: u status · p provider · r rev · f verify key · x DH private key and secret (sealed) · d code and device token
(sealed) · h hash of the device · c cron minutes · y day of use · z last TNEW · q counter; v, m, k its value when a
verification, a message push, a periodic push became due · o claim of the push · n tries

Subscription: t token id · s server id · n notifier id · g MD5 of the notifier id · h digest of the server's address ·
k notifier key (sealed) · u status · a associated · e mark of the session it was subscribed in

Share of an SMP server: o owner (edge:epoch) · e epoch · d mark of the session · u service subscribed · c count · h
idsHash
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple

from weir.crypto.keys import pack_key, pack_private, packed_private, packed_spki
from weir.notifier.store.records import Token
from weir.notifier.store.sealing import Sealer
from weir.wire.ntf.types import (
    DeviceToken,
    InvalidReason,
    PushProvider,
    SubError,
    SubStatus,
    TokenInvalid,
    TokenStatus,
)

CODE_LENGTH: Final = 32
_ERROR_LENGTH: Final = 200


class TokenLetter(Enum):
    """The letters of lua/include/token_status.lua."""

    NEW = "n"
    REGISTERED = "r"
    CONFIRMED = "c"
    ACTIVE = "a"
    EXPIRED = "e"
    INVALID = "i"
    DELETED = "x"


class SubLetter(Enum):
    """The letters of lua/include/sub_status.lua."""

    NEW = "N"
    PENDING = "P"
    ACTIVE = "A"
    INACTIVE = "I"
    END = "E"
    DELETED = "D"
    AUTH = "U"
    SERVICE = "S"
    ERR = "X"


_TOKEN = {status: TokenLetter[status.name].value.encode() for status in TokenStatus}
_TOKEN_OF = {letter: status for status, letter in _TOKEN.items()}
_INVALID = TokenLetter.INVALID.value.encode()
_REASON = {reason: reason.value[:1].encode() for reason in InvalidReason}
_REASON_OF = {letter: reason for reason, letter in _REASON.items()}
_SUB = {status: SubLetter[status.name].value.encode() for status in SubStatus}
_SUB_OF = {letter: status for status, letter in _SUB.items()}
_ERR = SubLetter.ERR.value.encode()
PROVIDERS: Final = {provider.value: provider for provider in PushProvider}


def pack_token_status(status: TokenStatus | TokenInvalid) -> bytes:
    if isinstance(status, TokenStatus):
        return _TOKEN[status]
    return _INVALID + (b"" if status.reason is None else _REASON[status.reason])


def unpack_token_status(packed: bytes) -> TokenStatus | TokenInvalid:
    if packed[:1] == _INVALID:
        return TokenInvalid(_REASON_OF.get(packed[1:]))
    return _TOKEN_OF[packed]


def pack_sub_status(status: SubStatus | SubError) -> bytes:
    return _SUB[status] if isinstance(status, SubStatus) else _ERR + status.text[:_ERROR_LENGTH]


def unpack_sub_status(packed: bytes) -> SubStatus | SubError:
    return SubError(packed[1:]) if packed[:1] == _ERR else _SUB_OF[packed]


class TokenFields(NamedTuple):
    """The part of a token record that scripts answer, in their order."""

    status: bytes
    provider: bytes
    rev: bytes
    verify_key: bytes
    keys: bytes
    device: bytes
    cron: bytes


def seal_device(sealer: Sealer, code: bytes, device: DeviceToken) -> bytes:
    return sealer.seal(b"device token", code + device.token)


def token_fields(sealer: Sealer, token: Token, day: int) -> list[bytes]:
    """Field, value, … of a new token. The provider comes first: register.lua reads it there."""
    return [
        b"p", token.device.provider.value,
        b"u", pack_token_status(token.status),
        b"r", b"%d" % token.rev,
        b"f", pack_key(token.verify_key),
        b"x", sealer.seal(b"token keys", token.dh_private + token.dh_secret),
        b"d", seal_device(sealer, token.code, token.device),
        b"h", sealer.device(token.device),
        b"c", b"%d" % token.cron,
        b"y", b"%d" % day,
    ]  # fmt: skip


def parse_token(sealer: Sealer, token_id: bytes, partition: int, raw: list[Any]) -> Token:
    fields = TokenFields(*raw)
    secrets = sealer.open(b"token keys", fields.keys)
    device = sealer.open(b"device token", fields.device)
    return Token(
        token_id,
        partition,
        int(fields.rev),
        DeviceToken(PROVIDERS[fields.provider], device[CODE_LENGTH:]),
        unpack_token_status(fields.status),
        packed_spki(fields.verify_key),
        secrets[:32],
        secrets[32:],
        device[:CODE_LENGTH],
        int(fields.cron),
    )


def seal_notifier_key(sealer: Sealer, sub_id: bytes, pkcs8: bytes) -> bytes:
    return sealer.seal_for(b"notifier key", sub_id, pack_private(pkcs8))


def open_notifier_key(sealer: Sealer, sub_id: bytes, sealed: bytes) -> bytes:
    return packed_private(sealer.open_for(b"notifier key", sub_id, sealed))
