"""Secrets at rest, and the digests that stand for what must not be readable in Redis.

Everything is derived from the deployment's storage key, which is not in Redis. A secret is sealed for a purpose: the
box of one purpose does not open for another one.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Final

from weir.crypto import sodium
from weir.redis.errors import Unavailable
from weir.wire.ntf.types import DeviceToken

_NONCE: Final = 24
_BOXES: Final = (b"token keys", b"device token", b"notifier key", b"service keys")
_DIGESTS: Final = (b"device", b"verify key", b"server", b"address", b"check")


class Damaged(Unavailable):
    """A record does not open with the storage key. Callers treat it as one that Redis does not answer."""

    def __init__(self) -> None:
        super().__init__("a record in Redis does not open with the storage key")


class Sealer:
    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError("the storage key is 32 bytes")
        self._keys = {name: blake2b(name, key=key, digest_size=32).digest() for name in (*_BOXES, *_DIGESTS)}

    def seal(self, purpose: bytes, plain: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + sodium.secretbox(self._keys[purpose], nonce, plain)

    def open(self, purpose: bytes, sealed: bytes) -> bytes:
        return self.open_for(purpose, sealed[:_NONCE], sealed[_NONCE:])

    def seal_for(self, purpose: bytes, unique_id: bytes, plain: bytes) -> bytes:
        """Seal the one secret that belongs to a random id of 24 bytes. The id is the nonce, which saves its space."""
        return sodium.secretbox(self._keys[purpose], unique_id, plain)

    def open_for(self, purpose: bytes, unique_id: bytes, sealed: bytes) -> bytes:
        try:
            plain = sodium.secretbox_open(self._keys[purpose], unique_id, sealed)
        except ValueError:
            plain = None
        if plain is None:
            raise Damaged
        return plain

    def device(self, device: DeviceToken) -> bytes:
        return self._digest(b"device", device.provider.value + device.token, 16)

    def verify_key(self, spki: bytes) -> bytes:
        return self._digest(b"verify key", spki, 16)

    def server_id(self, key_hash: bytes) -> bytes:
        return self._digest(b"server", key_hash, 24)

    def address(self, address: bytes) -> bytes:
        return self._digest(b"address", address, 8)

    def check(self) -> bytes:
        """A value that differs for different keys and does not reveal the key."""
        return self._digest(b"check", b"", 16).hex().encode()

    def _digest(self, purpose: bytes, data: bytes, size: int) -> bytes:
        return blake2b(data, key=self._keys[purpose], digest_size=size).digest()
