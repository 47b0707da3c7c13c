"""What every concern of the store stands on: the node of a partition, script calls, and how to wait for an answer."""

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import md5
from typing import Any, TypeVar

from weir.store.durability import Mode
from weir.store.keys import Placement
from weir.store.records import UNAVAILABLE, Event, Status, Unavailable
from weir.store.resp import command, script_call
from weir.store.topology import REGISTRY, Topology

STATUS = {s.value: s for s in Status}
T = TypeVar("T")


async def awaited(start: Callable[[Callable[[T | Unavailable], None]], None]) -> T:
    """What a call answers that takes a callback; raises Unavailable. An answer after that, or to nobody, is dropped."""
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


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Times are seconds."""

    url: str
    placement_key: bytes
    password: str | None = None  # instead of the URL's
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


class Core:
    """The base of the store's concerns."""

    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        self.config = config
        self.edge = config.edge or os.urandom(6).hex().encode()
        self.placement = Placement(config.placement_key)
        self.partition = self.placement.partition
        self.topology = topology
        self.muxes = topology.muxes
        self.stored_delta = 0  # messages stored less messages removed, since last added to the statistics
        self.ntf_delta = 0  # the same of notifications that wait
        self._heads: dict[tuple[str, int, int], bytes] = {}

    def emit(self, event: Event) -> None:
        """An event for the edge."""
        raise NotImplementedError

    def new_ids(self, snd_id: bytes | None, ntf: bool) -> tuple[bytes, bytes, bytes | None]:
        return self.placement.new_ids(snd_id, ntf)

    def token(self, conn: int, gen: int) -> bytes:
        return b"%b:%d:%d" % (self.edge, conn, gen)

    def own(self, conn: int) -> bytes:
        """What all tokens of a connection start with."""
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
        """Calls a script; the future raises Unavailable when there is no answer."""
        return self.muxes[p].ask(self.script_wire(name, script_keys, args), script=True)

    def ask(self, p: int, *words: bytes | int) -> "asyncio.Future[Any]":
        """The answer counts once all that it tells of is durable."""
        return self.muxes[p].ask(command(*words))

    def ask_registry(self, *words: bytes | int) -> "asyncio.Future[Any]":
        return self.muxes[REGISTRY].ask(command(*words))

    def look(self, p: int, *words: bytes | int) -> "asyncio.Future[Any]":
        """Reads what nobody is promised anything about: it needs no replica and waits for no disk."""
        return self.muxes[p].ask(command(*words), durable=False)

    def look_registry(self, *words: bytes | int) -> "asyncio.Future[Any]":
        return self.look(REGISTRY, *words)


def gather_into(count: int, done: Callable[[Any], None]) -> Callable[[Any, int], None]:
    """A callback for `count` calls whose context is their place: `done` gets the list, or UNAVAILABLE if one failed."""
    results: list[Any] = [None] * count
    left = count

    def reply(raw: Any, place: int) -> None:
        nonlocal left
        results[place] = raw
        left -= 1
        if left == 0:
            done(UNAVAILABLE if any(r is UNAVAILABLE for r in results) else results)

    return reply


def ids_hash(entity_id: bytes) -> bytes:
    """An id's part in the idsHash."""
    return md5(entity_id, usedforsecurity=False).digest()
