"""Keys: their form on the wire (X.509 SubjectPublicKeyInfo, DER), in memory and in Redis, and generating them.

All the protocol's keys have a fixed length, so their DER is a constant prefix and the raw key.
"""

import os
from typing import Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey

from weir.crypto import sodium

KeyType = Literal["ed25519", "ed448", "x25519"]

_ED25519_SPKI = bytes.fromhex("302a300506032b6570032100")
_ED448_SPKI = bytes.fromhex("3043300506032b6571033a00")
_X25519_SPKI = bytes.fromhex("302a300506032b656e032100")
_PREFIXES: dict[KeyType, bytes] = {"ed25519": _ED25519_SPKI, "ed448": _ED448_SPKI, "x25519": _X25519_SPKI}
_BY_PREFIX: dict[bytes, tuple[KeyType, int]] = {
    _ED25519_SPKI: ("ed25519", 44),
    _X25519_SPKI: ("x25519", 44),
    _ED448_SPKI: ("ed448", 69),
}
_PKCS8: dict[KeyType, bytes] = {
    "ed25519": bytes.fromhex("302e020100300506032b657004220420"),
    "ed448": bytes.fromhex("3047020100300506032b6571043b0439"),
    "x25519": bytes.fromhex("302e020100300506032b656e04220420"),
}
_TAGS: dict[KeyType, bytes] = {"ed25519": b"E", "ed448": b"F", "x25519": b"X"}
_BY_TAG: dict[int, KeyType] = {tag[0]: key_type for key_type, tag in _TAGS.items()}


class KeyPair(NamedTuple):
    """`public` and `private` are raw: 32 bytes each, 57 for Ed448."""

    type: KeyType
    public: bytes
    private: bytes

    def __repr__(self) -> str:
        return f"KeyPair({self.type})"  # keys stay out of logs and tracebacks

    @property
    def spki(self) -> bytes:
        return _PREFIXES[self.type] + self.public

    @property
    def pkcs8(self) -> bytes:
        """The private key as it goes over the wire (SNEW)."""
        return _PKCS8[self.type] + self.private


def spki(key_type: KeyType, raw: bytes) -> bytes:
    return _PREFIXES[key_type] + raw


def parse_spki(der: bytes) -> tuple[KeyType, bytes] | None:
    """Parse a key that may authorise commands: Ed25519, Ed448 or X25519. None for anything else."""
    found = _BY_PREFIX.get(der[:12])
    if found is None or len(der) != found[1]:
        return None
    return found[0], der[12:]


def parse_x25519(der: bytes) -> bytes | None:
    """Return the raw key; None if the DER holds no X25519 key."""
    if len(der) == 44 and der.startswith(_X25519_SPKI):
        return der[12:]
    return None


def parse_private(der: bytes) -> tuple[KeyType, bytes] | None:
    """The raw private key in a PKCS8 object; None for anything but the protocol's key types."""
    for key_type, prefix in _PKCS8.items():
        if der.startswith(prefix) and len(der) == 16 + (57 if key_type == "ed448" else 32):
            return key_type, der[16:]
    return None


def pack_key(der: bytes) -> bytes:
    """The stored form of a key that `parse_spki` accepts: one type byte and the raw key."""
    key_type, _ = _BY_PREFIX[der[:12]]
    return _TAGS[key_type] + der[12:]


def packed_spki(packed: bytes) -> bytes:
    """The wire form of a stored key."""
    return _PREFIXES[_BY_TAG[packed[0]]] + packed[1:]


def pack_private(der: bytes) -> bytes:
    """The short form of a private key that `parse_private` accepts: one type byte and the raw key."""
    found = parse_private(der)
    if found is None:
        raise ValueError("not a private key of the protocol")
    return _TAGS[found[0]] + found[1]


def packed_private(packed: bytes) -> bytes:
    """The PKCS8 object of a private key in its short form."""
    return _PKCS8[_BY_TAG[packed[0]]] + packed[1:]


def public_of(key_type: KeyType, private: bytes) -> bytes:
    if key_type == "x25519":
        return sodium.x25519_public(private)
    if key_type == "ed25519":
        return sodium.ed25519_public(private)
    return Ed448PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def generate(key_type: KeyType = "x25519") -> KeyPair:
    private = os.urandom(57 if key_type == "ed448" else 32)
    return KeyPair(key_type, public_of(key_type, private), private)


def key_pair(key_type: KeyType, private: bytes) -> KeyPair:
    return KeyPair(key_type, public_of(key_type, private), private)


def dh_raw(public: bytes, private: bytes) -> bytes:
    """X25519 without HSalsa20. The key chains of the block encryption start from it."""
    return sodium.x25519(public, private)


def dh(public: bytes, private: bytes) -> bytes:
    """Compute the box key of two X25519 keys: HSalsa20 of the DH result (NaCl's beforenm)."""
    return sodium.box_key(public, private)
