"""A session's key, signed by the leaf certificate's key: what both hellos carry (protocol, "signedServerKey").

An X.509 SIGNED object: SEQUENCE { SEQUENCE { key }, algorithm, BIT STRING }. The signature covers the inner
SEQUENCE with its header. All lengths are fixed by the two key types, so the DER is constants and raw bytes.
"""

from typing import Final

from weir.crypto.authenticator import sign, verify_signature
from weir.crypto.keys import KeyPair, KeyType, parse_spki

_ENVELOPE: Final[dict[KeyType, tuple[bytes, bytes]]] = {
    "ed25519": (bytes.fromhex("3078"), bytes.fromhex("300506032b6570034100")),
    "ed448": (bytes.fromhex("3081aa"), bytes.fromhex("300506032b6571037300")),
}
_OBJECT: Final = bytes.fromhex("302c")
_OBJECT_SIZE: Final = 46


def sign_session_key(signer: KeyPair, session_spki: bytes) -> bytes:
    """`session_spki`: a router's X25519 key, a service's Ed25519 key (44 bytes of DER)."""
    head, algorithm = _ENVELOPE[signer.type]
    signed = _OBJECT + session_spki
    return head + signed + algorithm + sign(signer.type, signer.private, signed)


def verify_session_key(signer: tuple[KeyType, bytes], der: bytes) -> tuple[KeyType, bytes] | None:
    """Return the session key; None if `signer` (the key of the leaf certificate) has not signed it."""
    key_type, public = signer
    envelope = _ENVELOPE.get(key_type)
    if envelope is None or not der.startswith(envelope[0]):
        return None
    start = len(envelope[0])
    middle = start + _OBJECT_SIZE
    signed = der[start:middle]
    if not signed.startswith(_OBJECT) or not der.startswith(envelope[1], middle):
        return None
    if not verify_signature(key_type, public, der[middle + len(envelope[1]) :], signed):
        return None
    return parse_spki(signed[2:])
