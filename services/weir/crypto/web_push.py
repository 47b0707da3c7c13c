"""Message encryption of Web Push (RFC 8291): content encoding aes128gcm (RFC 8188) with exactly one record.

Every message has a key pair and a salt of its own. The receiver's key and authentication secret are those of the
subscription.
"""

import hmac
import os
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from weir.crypto import p256

LARGEST_BODY: Final = 4096
RECORD_SIZE: Final = 4096
_HEADER: Final = 16 + 4 + 1 + 65
_OVERHEAD: Final = _HEADER + 1 + 16  # header, delimiter and tag
LARGEST_PLAINTEXT: Final = LARGEST_BODY - _OVERHEAD
_LAST_RECORD: Final = b"\x02"


class _Keys(NamedTuple):
    content_key: bytes
    nonce: bytes


def encrypt(
    receiver: p256.PublicKey,
    auth: bytes,
    plaintext: bytes,
    *,
    key: p256.PrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Return the body of a push message. `key` and `salt` are given by tests alone.

    ValueError: the plaintext is longer than LARGEST_PLAINTEXT.
    """
    if len(plaintext) > LARGEST_PLAINTEXT:
        raise ValueError(f"{len(plaintext)} bytes do not fit into a push message")
    key = key or p256.generate()
    salt = salt or os.urandom(16)
    sender = p256.point(key.public_key())
    keys = _derive(p256.agree(key, receiver), auth, p256.point(receiver), sender, salt)
    record = AESGCM(keys.content_key).encrypt(keys.nonce, plaintext + _LAST_RECORD, None)
    return b"".join((salt, RECORD_SIZE.to_bytes(4, "big"), bytes((len(sender),)), sender, record))


def decrypt(key: p256.PrivateKey, auth: bytes, body: bytes) -> bytes | None:
    """Decrypt a push message as its receiver. None if the body is not a message to this receiver."""
    salt, key_id, record = body[:16], body[21:_HEADER], body[_HEADER:]
    sender = p256.public_key(key_id)
    if len(body) < _OVERHEAD or len(body) > LARGEST_BODY or body[20] != 65 or sender is None:
        return None
    keys = _derive(p256.agree(key, sender), auth, p256.point(key.public_key()), key_id, salt)
    try:
        padded = AESGCM(keys.content_key).decrypt(keys.nonce, record, None).rstrip(b"\0")
    except InvalidTag:
        return None
    return padded[:-1] if padded.endswith(_LAST_RECORD) else None


def _derive(secret: bytes, auth: bytes, receiver: bytes, sender: bytes, salt: bytes) -> _Keys:
    """HKDF of RFC 8291, 3.4. Each output is at most one block of SHA-256, so HKDF is two HMACs."""
    material = _hkdf(auth, secret, b"WebPush: info\0" + receiver + sender)
    extracted = hmac.digest(salt, material, "sha256")
    return _Keys(
        hmac.digest(extracted, b"Content-Encoding: aes128gcm\0\x01", "sha256")[:16],
        hmac.digest(extracted, b"Content-Encoding: nonce\0\x01", "sha256")[:12],
    )


def _hkdf(salt: bytes, secret: bytes, info: bytes) -> bytes:
    return hmac.digest(hmac.digest(salt, secret, "sha256"), info + b"\x01", "sha256")
