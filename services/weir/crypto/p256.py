"""NIST P-256: the curve of push services. ES256 signs for them, and ECDH encrypts to their receivers.

Signatures are deterministic (RFC 6979): every edge that signs the same text gets the same token.
"""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from weir.crypto.pem import UnusableFile, write_file

PrivateKey = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey

_CURVE = ec.SECP256R1()
_ES256 = ec.ECDSA(SHA256(), deterministic_signing=True)
_ECDH = ec.ECDH()
# openssl ecparam writes a block with the parameters of the curve before the key.
_BLOCKS = re.compile(rb"-----BEGIN ((?:EC )?PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)


def base64url(data: bytes) -> bytes:
    """Without padding, as in JSON Web Tokens and in subscriptions of Web Push."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def from_base64url(text: bytes) -> bytes:
    """Decode with or without padding. ValueError: the text is not base64url."""
    bare = text.rstrip(b"=")
    return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))


def generate() -> PrivateKey:
    return ec.generate_private_key(_CURVE)


def point(key: PublicKey) -> bytes:
    """Return the uncompressed point, 65 bytes."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def public_text(key: PrivateKey) -> str:
    """Return the public key as Web Push publishes it (RFC 8292, 3.2): the point, base64url."""
    return base64url(point(key.public_key())).decode()


def public_key(uncompressed: bytes) -> PublicKey | None:
    """Read an uncompressed point. None if the bytes are no point of the curve."""
    if len(uncompressed) != 65 or uncompressed[0] != 4:
        return None
    try:
        return PublicKey.from_encoded_point(_CURVE, uncompressed)
    except ValueError:
        return None


def agree(private: PrivateKey, public: PublicKey) -> bytes:
    return private.exchange(_ECDH, public)


def sign(key: PrivateKey, message: bytes) -> bytes:
    """Sign with ES256. The signature has the form of JWS: r and s, 32 bytes each (RFC 7518, 3.4)."""
    r, s = decode_dss_signature(key.sign(message, _ES256))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def verify(key: PublicKey, message: bytes, signature: bytes) -> bool:
    if len(signature) != 64:
        return False
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    try:
        key.verify(encode_dss_signature(r, s), message, _ES256)
    except InvalidSignature:
        return False
    return True


def web_token(key: PrivateKey, header: Mapping[str, str], claims: Mapping[str, str | int]) -> bytes:
    """Return a JSON Web Token signed with ES256."""
    parts = ({**header, "alg": "ES256"}, claims)
    text = b".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    return text + b"." + base64url(sign(key, text))


def read_web_token(key: PublicKey, token: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return header and claims of a JSON Web Token. None if its form, algorithm or signature is wrong."""
    text, _, signature = token.rpartition(b".")
    try:
        header, claims = (json.loads(from_base64url(part)) for part in text.split(b"."))
        if not verify(key, text, from_base64url(signature)) or header["alg"] != "ES256":
            return None
    except (ValueError, KeyError, TypeError):
        return None
    return header, claims


def key_from_pem(pem: bytes, name: str = "key") -> PrivateKey:
    """Read a private key in PKCS8 (Apple's .p8 files) or SEC1 form (openssl ecparam)."""
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise UnusableFile(f"{name}: no unencrypted private key in PEM form") from None
    if not isinstance(key, PrivateKey) or key.curve.name != _CURVE.name:
        raise UnusableFile(f"{name}: the key is not of the curve P-256")
    return key


def keys_from_pem(pem: bytes, name: str = "key") -> tuple[PrivateKey, ...]:
    """Read a file with one key or several. The first is the current one; devices may still know the older ones."""
    blocks = [block[0] for block in _BLOCKS.finditer(pem)]
    return tuple(key_from_pem(block, name) for block in blocks or [pem])


def keys_to_pem(*keys: PrivateKey) -> bytes:
    return b"".join(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) for key in keys)


def load_key(path: Path) -> PrivateKey:
    return key_from_pem(path.read_bytes(), path.name)


def save_key(path: Path, key: PrivateKey) -> None:
    write_file(path, keys_to_pem(key), 0o600)
