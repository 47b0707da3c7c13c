"""The common ground of the store's concerns: partitions, script calls, and the name of this edge."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeVar

from weir.redis.connection import ReplyError
from weir.redis.durability import Mode
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.partitions import REGISTRY
from weir.redis.resp import command, script_call
from weir.redis.topology import Topology
from weir.router.store.keys import Placement
from weir.router.store.records import Assoc, Status

LUA = files("weir.router.store") / "lua"
STATUS = {s.value: s for s in Status}
ASSOC = {a.value: a for a in Assoc}
CHANGED_ASSOC = (Assoc.NEW, Assoc.UPDATED, Assoc.REMOVED)  # the script has increased the revision
_BAD_KEY = ("ERR", "WRONGTYPE")  # a script failed, because of what it found in a key
T = TypeVar("T")
R = TypeVar("R")


async def awaited(start: Callable[[Callable[[T | Unavailable], None]], None]) -> T:
    """Await a call that takes a callback. Raises Unavailable. A late answer is dropped."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(result: T | Unavailable) -> None:
        if future.done():
            return
        if isinstance(result, Unavailable):
            future.set_exception(result)
        else:
            future.set_result(result)

    start(done)
    return await future


async def isolating(items: list[T], call: Callable[[list[T]], Awaitable[R]]) -> list[tuple[list[T], R]]:
    """Call a script for many items. An item that makes the script fail is left out, so that the others are done.

    Returns the items that were done, with the answers. Errors that no item is to blame for are the caller's.
    """
    try:
        return [(items, await call(items))]
    except ReplyError as error:
        if error.code not in _BAD_KEY:
            raise
    if len(items) == 1:
        return []
    half = len(items) // 2
    return [*await isolating(items[:half], call), *await isolating(items[half:], call)]


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


class Core:
    """Each concern gets this object. It knows partitions and scripts, and nothing of queues or messages."""

    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        self.config = config
        self.edge = config.edge or os.urandom(6).hex().encode()
        self.placement = Placement(config.placement_key)
        self.partition = self.placement.partition
        self.topology = topology
        self.muxes = topology.muxes
        self.unsaved = Unsaved()
        self._heads: dict[tuple[str, int, int], bytes] = {}

    @property
    def connected(self) -> bool:
        """Whether every Redis node can be written to."""
        return all(mux.connected for mux in self.topology.nodes)

    def token(self, conn: int, gen: int) -> bytes:
        return b"%b:%d:%d" % (self.edge, conn, gen)

    def own(self, conn: int) -> bytes:
        """The prefix of all owner tokens of a connection."""
        return b"%b:%d:" % (self.edge, conn)

    def script_wire(self, name: str, script_keys: Iterable[bytes], args: Iterable[bytes | int]) -> bytes:
        script_keys, args = list(script_keys), list(args)
        shape = (name, len(script_keys), len(args) + 1)
        head = self._heads.get(shape)
        if head is None:
            head = self._heads[shape] = self.topology.scripts.head(*shape)
        return script_call(head, script_keys, args)

    def call(
        self, p: int, name: str, script_keys: Iterable[bytes], args: Iterable[bytes | int]
    ) -> "asyncio.Future[Any]":
        """Call a script. The future raises Unavailable when there is no answer in time."""
        return self.muxes[p].ask(self.script_wire(name, script_keys, args), script=True)

    def ask(self, p: int, *words: bytes | int) -> "asyncio.Future[Any]":
        """Send a command. The future resolves when the writes are durable: on disk or replicated, as configured."""
        return self.muxes[p].ask(command(*words))

    def ask_registry(self, *words: bytes | int) -> "asyncio.Future[Any]":
        return self.muxes[REGISTRY].ask(command(*words))

    def read(self, p: int, *words: bytes | int) -> "asyncio.Future[Any]":
        """Read without the durability wait, for values that may be slightly stale."""
        return self.muxes[p].ask(command(*words), durable=False)

    def read_registry(self, *words: bytes | int) -> "asyncio.Future[Any]":
        return self.read(REGISTRY, *words)

    async def call_in_batches(
        self, items: Iterable[Q], size: int, call: Callable[[int, list[Q]], Awaitable[list[Any]]]
    ) -> AsyncIterator[tuple[Q, Any]]:
        """Call a script for the queues of one partition at a time, at most `size` in a call. Yield every answer."""
        by_partition: dict[int, list[Q]] = {}
        for item in items:
            by_partition.setdefault(self.partition(item.rcv_id), []).append(item)
        for p, listed in by_partition.items():
            for at in range(0, len(listed), size):
                for batch, answers in await isolating(listed[at : at + size], partial(call, p)):
                    for pair in zip(batch, answers, strict=True):
                        yield pair

    async def publish(self, channel: bytes, message: bytes) -> None:
        """Send a message to whoever listens to the channel now, on any node of a cluster."""
        await self.read_registry(b"PUBLISH", channel, message)


def gather_into(count: int, done: Callable[[Any], None]) -> Callable[[Any, int], None]:
    """A callback for `count` calls; the context of each call is its place in the list that `done` gets.

    `done` gets UNAVAILABLE instead if one of the calls failed.
    """
    results: list[Any] = [None] * count
    left = count

    def reply(raw: Any, place: int) -> None:
        nonlocal left
        results[place] = raw
        left -= 1
        if left == 0:
            done(UNAVAILABLE if any(r is UNAVAILABLE for r in results) else results)

    return reply
