"""Placement of ids in partitions."""

import os
from hashlib import blake2b
from typing import Final

ID_LENGTH: Final = 24


class Placement:
    """`partition(id) = keyed_hash(K, id) mod 64`. Without K, nobody can tell that two ids belong to one queue."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError("the placement key is 32 bytes")
        self._keyed = blake2b(key=key, digest_size=8)

    def partition(self, entity_id: bytes) -> int:
        keyed = self._keyed.copy()
        keyed.update(entity_id)
        return keyed.digest()[7] & 63

    def check(self) -> bytes:
        """A value that differs for different keys and does not reveal the key."""
        keyed = self._keyed.copy()
        keyed.update(b"weir placement")
        return keyed.hexdigest().encode()

    def draw(self, partition: int) -> bytes:
        """A random id in the given partition."""
        while True:
            entity_id = os.urandom(ID_LENGTH)
            if self.partition(entity_id) == partition:
                return entity_id
