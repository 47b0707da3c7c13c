"""Authorisation of commands: box authenticators (X25519 keys) and signatures (Ed25519, Ed448)."""

import functools
import hmac
from collections.abc import Callable
from hashlib import sha512
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey, Ed448PublicKey

from weir.crypto import sodium
from weir.crypto.boxes import NONCE_SIZE, nonce_of
from weir.crypto.keys import KeyPair, KeyType, key_pair

AUTHENTICATOR_SIZE: Final = 80
ED25519_SIGNATURE_SIZE: Final = 64
ED448_SIGNATURE_SIZE: Final = 114

_secretbox = sodium.secretbox
_secretbox_open = sodium.secretbox_open
_compare: Callable[[bytes, bytes], bool] = hmac.compare_digest


def authenticate(secret: bytes, nonce: bytes, message: bytes) -> bytes:
    """Encrypt the SHA-512 of the message in a box (protocol, "Deniable client authentication scheme").

    `secret` is `dh(…)`, `nonce` the transmission's correlation id, whatever its length.
    """
    return _secretbox(secret, nonce_of(nonce), sha512(message).digest())


def verify(secret: bytes, nonce: bytes, authenticator: bytes, message: bytes) -> bool:
    if len(nonce) != NONCE_SIZE:
        nonce = nonce_of(nonce)
    opened = _secretbox_open(secret, nonce, authenticator)
    return opened is not None and _compare(opened, sha512(message).digest())


@functools.lru_cache(maxsize=16)
def _ed448(private: bytes) -> Ed448PrivateKey:
    return Ed448PrivateKey.from_private_bytes(private)


def sign(key_type: KeyType, private: bytes, message: bytes) -> bytes:
    if key_type == "ed25519":
        return sodium.ed25519_sign(private, message)
    if key_type == "ed448":
        return _ed448(private).sign(message)
    raise ValueError("an X25519 key does not sign")


def verify_signature(key_type: KeyType, public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the signature is valid. False also if it is not of the key's type."""
    if key_type == "ed25519":
        return len(signature) == ED25519_SIGNATURE_SIZE and sodium.ed25519_verify(public, signature, message)
    if key_type == "ed448" and len(signature) == ED448_SIGNATURE_SIZE:
        try:
            Ed448PublicKey.from_public_bytes(public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True
    return False


# A command on a missing queue is verified against these keys, so that its answer takes as long as for an existing one.
DUMMY_X25519: Final[KeyPair] = key_pair("x25519", bytes(range(32)))
DUMMY_ED25519: Final[KeyPair] = key_pair("ed25519", bytes(range(32)))
DUMMY_ED448: Final[KeyPair] = key_pair("ed448", bytes(range(57)))


def dummy_verify(session_private: bytes, nonce: bytes, auth: bytes, message: bytes) -> bool:
    """Verify `auth` against a dummy key of its type, for the time this takes, and return False."""
    if len(auth) == AUTHENTICATOR_SIZE:
        verify(sodium.box_key(DUMMY_X25519.public, session_private), nonce, auth, message)
    elif len(auth) == ED25519_SIGNATURE_SIZE:
        verify_signature("ed25519", DUMMY_ED25519.public, auth, message)
    elif len(auth) == ED448_SIGNATURE_SIZE:
        verify_signature("ed448", DUMMY_ED448.public, auth, message)
    return False
