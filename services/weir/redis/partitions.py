"""Partitions: a key's hash tag names one of 64, and all keys of a partition share one slot of a Redis Cluster.

A *place* is the index of a tag: 0 to 63 for the partitions, 64 (`REGISTRY`) for the keys under {weir}.
"""

from binascii import crc_hqx
from typing import Final

PARTITIONS: Final = 64
REGISTRY: Final = PARTITIONS
TAGS: Final = (*(b"{%d}" % p for p in range(PARTITIONS)), b"{weir}")
PLACES: Final = {tag: place for place, tag in enumerate(TAGS)}
SLOTS: Final = tuple(crc_hqx(tag[1:-1], 0) % 16384 for tag in TAGS)  # Redis Cluster hashes the text inside the braces
