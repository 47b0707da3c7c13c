"""Partitions: a key's hash tag names one of 64, and all keys of a partition share one slot of a Redis Cluster.

A *place* is the index of a tag: 0 to 63 for the partitions, 64 (`REGISTRY`) for small and rarely used keys.
A deployment with a prefix has tags and channels of its own, so that several deployments can live on one Redis.
"""

import re
from binascii import crc_hqx
from typing import Final

PARTITIONS: Final = 64
REGISTRY: Final = PARTITIONS
_NAME: Final = "weir"  # of the registry's tag and of channels, where there is no prefix
_PREFIX: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")


def is_prefix(text: str) -> bool:
    """Whether a deployment may have this prefix. "" stands for none."""
    return not text or (text != _NAME and _PREFIX.fullmatch(text) is not None)


class Partitions:
    """The hash tags of one deployment: {7} and {weir}, or {prefix.7} and {prefix}."""

    def __init__(self, prefix: str = "") -> None:
        if not is_prefix(prefix):
            raise ValueError("a prefix is a letter, and up to 30 letters, digits and hyphens")
        self.prefix = prefix
        self.name = (prefix or _NAME).encode()  # channels begin with it
        start = f"{prefix}.".encode() if prefix else b""
        self.tags = (*(b"{%b%d}" % (start, p) for p in range(PARTITIONS)), b"{%b}" % self.name)
        self.places = {tag: place for place, tag in enumerate(self.tags)}
        # Redis Cluster hashes the text inside the braces.
        self.slots = tuple(crc_hqx(tag[1:-1], 0) % 16384 for tag in self.tags)

    @property
    def registry(self) -> bytes:
        return self.tags[REGISTRY]
