"""Durability: what is true of a write when its answer reaches the caller.

`everysec`: Redis has it in memory and syncs it to disk within a second. `fsync`: it is on disk. `replicated`: replicas
have it, too.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from weir.redis.resp import command


class Mode(Enum):
    EVERYSEC = "everysec"
    FSYNC = "fsync"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class Durability:
    """`wait` is sent after each flush that contains writes. Its answer decides whether those writes count."""

    mode: Mode = Mode.EVERYSEC
    wait: bytes | None = None
    replicas: int = 0

    def enough(self, reply: Any) -> bool:
        if self.mode is Mode.REPLICATED:
            return isinstance(reply, int) and reply >= self.replicas
        return isinstance(reply, list) and reply[0] >= 1  # WAITAOF: [local, replicas]


def replicated(replicas: int, limit: float) -> Durability:
    return Durability(Mode.REPLICATED, command(b"WAIT", replicas, int(limit * 1000)), replicas)


def waitaof(limit: float) -> Durability:
    return Durability(Mode.FSYNC, command(b"WAITAOF", 1, 0, int(limit * 1000)))
