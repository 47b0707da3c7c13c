"""The common ground of the store's concerns: settings, keys, and changes of the totals that are not saved yet."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeVar

from weir.redis.durability import Mode
from weir.redis.topology import Topology
from weir.router.store.keys import Keys, Placement
from weir.router.store.records import Assoc, Status
from weir.runtime.state import calls

LUA = (files("weir.router.store") / "lua", calls.LUA)
STATUS = {s.value: s for s in Status}
ASSOC = {a.value: a for a in Assoc}
CHANGED_ASSOC = (Assoc.NEW, Assoc.UPDATED, Assoc.REMOVED)  # the script has increased the revision


class OfQueue(Protocol):
    """A value about one queue."""

    @property
    def rcv_id(self) -> bytes: ...


Q = TypeVar("Q", bound=OfQueue)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """All times are in seconds."""

    url: str
    placement_key: bytes
    prefix: str = ""  # of all keys: several deployments on one Redis
    password: str | None = None  # overrides the password in the URL
    password_file: Path | None = None  # overrides both; read for each connection
    edge: bytes = b""
    durability: Mode = Mode.EVERYSEC
    replicas: int = 1
    replication_limit: float = 1.0
    deadline: float = 5.0
    connect_timeout: float = 10.0
    lease: float = 10.0
    lease_refresh: float = 3.0
    poll: float = 5.0
    quota: int = 128
    message_ttl: int = 21 * 86400
    ntf_ttl: int = 24 * 3600
    ntf_limit: int = 1024
    queue_ttl_days: int | None = None


@dataclass(slots=True)
class Unsaved:
    """Changes of the fleet's totals by this edge that the statistics do not contain yet."""

    messages: int = 0  # stored less removed
    notifications: int = 0  # queued less removed


class Core(calls.Calls):
    """Each concern gets this object."""

    placement: Placement

    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(topology, Placement(config.placement_key), config.edge)
        self.config = config
        self.keys = Keys(topology.partitions)
        self.unsaved = Unsaved()

    def token(self, conn: int, gen: int) -> bytes:
        return b"%b:%d:%d" % (self.edge, conn, gen)

    def own(self, conn: int) -> bytes:
        """The prefix of all owner tokens of a connection."""
        return b"%b:%d:" % (self.edge, conn)

    async def call_in_batches(
        self, items: Iterable[Q], size: int, call: Callable[[int, list[Q]], Awaitable[list[Any]]]
    ) -> AsyncIterator[tuple[Q, Any]]:
        """Call a script for the queues of one partition at a time, at most `size` in a call. Yield every answer."""
        by_partition: dict[int, list[Q]] = {}
        for item in items:
            by_partition.setdefault(self.partition(item.rcv_id), []).append(item)
        for p, listed in by_partition.items():
            for at in range(0, len(listed), size):
                for batch, answers in await calls.isolating(listed[at : at + size], partial(call, p)):
                    for pair in zip(batch, answers, strict=True):
                        yield pair
