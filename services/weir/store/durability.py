"""What an OK means: `everysec`, `fsync` or `replicated`."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from weir.store.records import StoreError
from weir.store.resp import command

if TYPE_CHECKING:
    from weir.store.core import StoreConfig
    from weir.store.topology import Topology


class Mode(Enum):
    EVERYSEC = "everysec"
    FSYNC = "fsync"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class Durability:
    """`wait` is sent after each flush that wrote something; its answer decides over that flush."""

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


async def choose(config: "StoreConfig", topology: "Topology") -> Durability:
    """The way to keep the promise with these nodes; raises StoreError when there is none."""
    if config.durability is Mode.EVERYSEC:
        return Durability()
    if config.durability is Mode.REPLICATED:
        return replicated(config.replicas, config.replication_limit)
    for node in await topology.masters():
        async with topology.admin(node) as client:
            appendonly = await client.config_get("append*")
        if appendonly.get("appendonly") != "yes":
            raise StoreError("durability fsync needs appendonly yes in Redis")
        if appendonly.get("appendfsync") != "always":
            if topology.version < (7, 2):
                raise StoreError("durability fsync needs appendfsync always in Redis")
            return waitaof(config.deadline)
    return Durability(Mode.FSYNC)
