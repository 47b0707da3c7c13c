"""Values in the data of Secrets, and the kinds of keys that certificates may have."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from weir.crypto import certificates
from weir.crypto.keys import KeyType

Data = Mapping[str, str]  # the data of a Secret: base64

KEY_TYPES: Final[Mapping[str, KeyType]] = {"Ed25519": "ed25519", "Ed448": "ed448"}


def fingerprint_text(certificate: bytes) -> str:
    return base64.urlsafe_b64encode(certificates.fingerprint(certificate)).decode()


def decode(data: Data, key: str) -> bytes | None:
    """One value. None when it is missing or not base64."""
    try:
        return base64.b64decode(data[key], validate=True) if key in data else None
    except (binascii.Error, ValueError):
        return None


def encode(value: bytes) -> str:
    return base64.b64encode(value).decode()
