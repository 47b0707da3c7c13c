"""NaCl boxes as the protocol uses them: XSalsa20-Poly1305, with or without padding to a fixed length.

Every `secret` here is a box key: `keys.dh(…)`, or `hsalsa20(key)` of a symmetric key.
"""

from weir.crypto import sodium

hsalsa20 = sodium.hsalsa20
secretbox = sodium.secretbox
secretbox_open = sodium.secretbox_open

NONCE_SIZE = 24

_PADDING = b"#" * 0x10000


class LargeMessage(ValueError):
    """The message does not fit into the padded length. Callers check the length first: this is a bug."""


def pad(message: bytes, padded_length: int) -> bytes:
    """Return two bytes of length, the message, and `#` up to `padded_length` (protocol, "padded string")."""
    length = len(message)
    rest = padded_length - length - 2
    if rest < 0 or length > 0xFFFD:
        raise LargeMessage(f"{length} bytes do not fit into {padded_length}")
    return b"".join((length.to_bytes(2, "big"), message, _PADDING[:rest]))


def unpad(padded: bytes) -> bytes | None:
    """Return the message; None if the length prefix is cut off or too large. The padding is not checked."""
    if len(padded) < 2:
        return None
    end = (padded[0] << 8 | padded[1]) + 2
    if end > len(padded):
        return None
    return padded[2:end]


def cb_encrypt(secret: bytes, nonce: bytes, message: bytes, padded_length: int) -> bytes:
    return sodium.secretbox(secret, nonce, pad(message, padded_length))


def cb_decrypt(secret: bytes, nonce: bytes, box: bytes) -> bytes | None:
    padded = sodium.secretbox_open(secret, nonce, box)
    return None if padded is None else unpad(padded)


def cb_encrypt_no_pad(secret: bytes, nonce: bytes, message: bytes) -> bytes:
    return sodium.secretbox(secret, nonce, message)


def cb_decrypt_no_pad(secret: bytes, nonce: bytes, box: bytes) -> bytes | None:
    return sodium.secretbox_open(secret, nonce, box)


def nonce_of(data: bytes) -> bytes:
    """Make a nonce from a correlation id of any length: its first 24 bytes, filled up with zeros."""
    return data if len(data) == NONCE_SIZE else data[:NONCE_SIZE].ljust(NONCE_SIZE, b"\0")


def reverse_nonce(nonce: bytes) -> bytes:
    """Return the nonce of a proxied answer: the bytes of the request's nonce in reverse order."""
    return nonce[::-1]
