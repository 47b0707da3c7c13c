"""A walk through all keys of a deployment, in slices that block Redis only briefly. One edge at a time walks.

A cursor stands for a node and a position on that node.
"""

from dataclasses import dataclass

from weir.redis.partitions import REGISTRY
from weir.redis.resp import command
from weir.runtime.state.calls import Calls
from weir.runtime.state.keys import CommonKeys

_LOCK_MS = 60_000
_SCAN = 500  # keys of one SCAN


@dataclass(frozen=True, slots=True)
class Slice:
    following: int  # the next cursor, 0 at the end
    registry: list[bytes]  # keys of the registry
    partitions: list[tuple[int, bytes, bytes]]  # partition, and the key's part behind the tag: letter, id


class Scan:
    def __init__(self, calls: Calls, keys: CommonKeys) -> None:
        self._calls = calls
        self._keys = keys
        self._places = calls.topology.partitions.places

    async def lock(self) -> bool:
        """Take or keep the lock. False while another edge has it."""
        return bool(await self._calls.call(REGISTRY, "sweep_lock", [self._keys.sweeper], [self._calls.edge, _LOCK_MS]))

    async def unlock(self) -> None:
        """Release the lock, so that another edge can continue at once."""
        await self._calls.call(REGISTRY, "sweep_unlock", [self._keys.sweeper], [self._calls.edge])

    async def slice(self, cursor: int) -> Slice:
        """Some keys, starting with cursor 0. Keys of other deployments are left out."""
        node, at = cursor & 0xFF, cursor >> 8
        muxes = self._calls.topology.nodes
        if node >= len(muxes):
            return Slice(0, [], [])
        mux = muxes[node]
        position, found = await mux.ask(command(b"SCAN", at, b"COUNT", _SCAN), durable=False)
        registry: list[bytes] = []
        partitions: list[tuple[int, bytes, bytes]] = []
        for key in found:
            tag, brace, rest = key.partition(b"}:")
            place = self._places.get(tag + brace[:1])
            if place is None or self._calls.muxes[place] is not mux:
                continue
            if place == REGISTRY:
                registry.append(key)
            else:
                partitions.append((place, rest[:1], rest[2:]))
        following = int(position)
        last = following << 8 | node if following else node + 1 if node + 1 < len(muxes) else 0
        return Slice(last, registry, partitions)

    async def drop_inbox(self, p: int, edge: bytes) -> None:
        """Delete the inbox of a dead edge."""
        await self._calls.call(p, "sweep_inbox", [self._keys.inbox(p, edge), self._keys.lease(p, edge)], [])
