"""Calls to Redis as the concerns of a store make them: partitions, scripts, and the name of this edge."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from typing import Any, TypeVar

from weir.redis.connection import ReplyError
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.partitions import REGISTRY
from weir.redis.resp import command, script_call
from weir.redis.topology import Topology
from weir.runtime.state.placement import Placement

LUA = files("weir.runtime.state") / "lua"  # scripts and includes for every router
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


class Calls:
    """Each concern gets this object. It knows partitions and scripts, and nothing of what is stored."""

    def __init__(self, topology: Topology, placement: Placement, edge: bytes = b"") -> None:
        self.edge = edge or os.urandom(6).hex().encode()
        self.placement = placement
        self.partition = self.placement.partition
        self.topology = topology
        self.muxes = topology.muxes
        self._heads: dict[tuple[str, int, int], bytes] = {}

    @property
    def connected(self) -> bool:
        """Whether every Redis node can be written to."""
        return all(mux.connected for mux in self.topology.nodes)

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

    async def publish(self, channel: bytes, message: bytes) -> None:
        """Send a message to whoever listens to the channel now, on any node of a cluster."""
        await self.read_registry(b"PUBLISH", channel, message)
