"""idsHash: the XOR of the MD5 hashes of queue ids (protocol, "SUBS").

Hashes can be combined in any order, and each hash is its own inverse: adding an id a second time removes it.
"""

from collections.abc import Iterable
from hashlib import md5
from typing import Final

SIZE: Final = 16
EMPTY: Final = bytes(SIZE)


def of_id(queue_id: bytes) -> bytes:
    return md5(queue_id, usedforsecurity=False).digest()


def add(left: bytes, right: bytes) -> bytes:
    """Combine two hashes. This adds ids that only one hash contains and removes ids that both contain."""
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(SIZE, "big")


def of_ids(queue_ids: Iterable[bytes]) -> bytes:
    total = 0
    for queue_id in queue_ids:
        total ^= int.from_bytes(of_id(queue_id), "big")
    return total.to_bytes(SIZE, "big")


ServiceSubs = tuple[int, bytes]
"""A count of queues and the hash of their ids."""


def subtract_subs(total: ServiceSubs, part: ServiceSubs) -> ServiceSubs:
    """Subtract `part` from `total`. The result is empty if `part` is not smaller than `total` (specification)."""
    return (total[0] - part[0], add(total[1], part[1])) if total[0] > part[0] else (0, EMPTY)
