"""The encrypted contents of MSG (time, flags and body of a message) and of NMSG (metadata of a message).

The router encrypts both with a secret that it shares with the recipient (`crypto.keys.dh`). The nonce of MSG is the
message's id; the nonce of NMSG is random.
"""

from typing import Final, NamedTuple

from weir.crypto.boxes import cb_decrypt, cb_encrypt, nonce_of
from weir.crypto.sodium import secretbox
from weir.wire.encoding import Malformed, int64, read_int64, read_short, short

MAX_BODY: Final = 16088
PADDED_LENGTH: Final = MAX_BODY + 16 + 2
"""The size of every padded message: 2 bytes of length, 8 of time, 8 of flags and space, and the longest body."""
ENCRYPTED_LENGTH: Final = PADDED_LENGTH + 16
NMSG_PADDED_LENGTH: Final = 128

_PADDING: Final = b"#" * PADDED_LENGTH


class RcvMsgBody(NamedTuple):
    """timestamp msgFlags SP sentMsgBody."""

    ts: int
    notification: bool
    body: bytes


class RcvMsgQuota(NamedTuple):
    """ "QUOTA" SP timestamp: the time at which a sender found the queue full."""

    ts: int


class NMsgMeta(NamedTuple):
    """msgId timestamp."""

    msg_id: bytes
    ts: int


def encode_body(message: RcvMsgBody | RcvMsgQuota) -> bytes:
    if isinstance(message, RcvMsgQuota):
        return b"QUOTA " + int64(message.ts)
    return int64(message.ts) + (b"T " if message.notification else b"F ") + message.body


def decode_body(data: bytes) -> RcvMsgBody | RcvMsgQuota | None:
    if len(data) == 14 and data.startswith(b"QUOTA "):
        return RcvMsgQuota(read_int64(data, 6)[0])
    if len(data) < 10:
        return None
    space = data.find(b" ", 9)
    flag = data[8]
    if space < 0 or flag not in b"TF":
        return None
    return RcvMsgBody(read_int64(data, 0)[0], flag == 0x54, data[space + 1 :])


def encrypt_message(secret: bytes, msg_id: bytes, ts: int, notification: bool, body: bytes) -> bytes:
    """Encrypt the body of MSG to `ENCRYPTED_LENGTH` bytes. `body` has at most `MAX_BODY` bytes, `msg_id` has 24."""
    size = len(body)
    padded = b"".join(
        (
            (size + 10).to_bytes(2, "big"),
            ts.to_bytes(8, "big"),
            b"T " if notification else b"F ",
            body,
            _PADDING[: PADDED_LENGTH - 12 - size],
        )
    )
    return secretbox(secret, msg_id, padded)


def encrypt_quota(secret: bytes, msg_id: bytes, ts: int) -> bytes:
    return cb_encrypt(secret, msg_id, encode_body(RcvMsgQuota(ts)), PADDED_LENGTH)


def decrypt_message(secret: bytes, msg_id: bytes, encrypted: bytes) -> RcvMsgBody | RcvMsgQuota | None:
    plain = cb_decrypt(secret, nonce_of(msg_id), encrypted)
    return None if plain is None else decode_body(plain)


def encode_nmsg_meta(meta: NMsgMeta) -> bytes:
    return short(meta.msg_id) + int64(meta.ts)


def decode_nmsg_meta(data: bytes) -> NMsgMeta | None:
    """Decode the metadata. Bytes after the timestamp are reserved for later versions."""
    try:
        msg_id, at = read_short(data, 0)
        return NMsgMeta(msg_id, read_int64(data, at)[0])
    except Malformed:
        return None


def encrypt_nmsg_meta(secret: bytes, nonce: bytes, meta: NMsgMeta) -> bytes:
    return cb_encrypt(secret, nonce, encode_nmsg_meta(meta), NMSG_PADDED_LENGTH)


def decrypt_nmsg_meta(secret: bytes, nonce: bytes, encrypted: bytes) -> NMsgMeta | None:
    plain = cb_decrypt(secret, nonce, encrypted)
    return None if plain is None else decode_nmsg_meta(plain)
