"""Redis Cluster: one mux for each master.

    a node answers MOVED ─┐
    a connection breaks ──┼──► reconcile: CLUSTER SLOTS ──► muxes[place] = mux of the new master
    pokes stop ───────────┘                              └─► queued operations follow their slot, in order

    a node answers ASK or TRYAGAIN ──► muxes[place] = Moving, until the migration of the slot ends (moving.py)

Partitions are fixed and each has one slot, so a *place* (weir.redis.partitions) stands for the slot everywhere.
"""

import asyncio
import logging
import random
import re
from collections.abc import Sequence

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from weir.redis.connection import ReplyError
from weir.redis.errors import UNAVAILABLE, StoreError
from weir.redis.moving import Moving, as_asking, first_wire
from weir.redis.mux import Mux
from weir.redis.operations import CTX, ON_REPLY, Op, needs_its_slot
from weir.redis.partitions import Partitions
from weir.redis.scripts import Folders
from weir.redis.topology import Topology
from weir.redis.url import Node, RedisUrl
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)

_RETRY_DELAY = 0.2


class Cluster(Topology):
    def __init__(
        self, url: RedisUrl, *, deadline: float, lua: Folders = (), partitions: Partitions | None = None
    ) -> None:
        super().__init__(url, deadline=deadline, lua=lua, partitions=partitions)
        name, prefix = (re.escape(text) for text in (self.partitions.name, self.partitions.prefix.encode()))
        self._tag = re.compile(rb"\{(%b\d+|%b)\}:" % (prefix + rb"\." if prefix else b"", name))
        self._owners: list[Node] = []
        self._by_node: dict[Node, Mux] = {}
        self._named: Node | None = None  # the node that MOVED named last: other nodes may learn of the change later
        self._closed = False

    @property
    def nodes(self) -> list[Mux]:
        return list(dict.fromkeys(self._by_node[node] for node in self._owners))

    async def open(self) -> None:
        await self._refresh()
        for mux in self.nodes:
            await mux.started

    async def close(self) -> None:
        self._closed = True
        await super().close()
        for mux in {*self.muxes, *self._by_node.values()}:
            await mux.close()

    async def masters(self) -> list[Node]:
        return list(dict.fromkeys(await self._slots()))

    async def master(self, p: int) -> Node:
        return self._owners[p]

    async def _slots(self) -> list[Node]:
        """The master of each place, as reported by the first node whose view of the cluster is complete."""
        seeds = list(dict.fromkeys([*self._by_node, *self.url.nodes]))
        random.shuffle(seeds)
        if self._named is not None:
            seeds.insert(0, self._named)
            self._named = None
        refused: RedisError | None = None
        for seed in seeds:
            try:
                async with self.admin(seed) as client:
                    state = await client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
                    ranges = await client.execute_command("CLUSTER SLOTS")  # type: ignore[no-untyped-call]
            except (RedisError, OSError) as error:
                refused = error if isinstance(error, RedisError) else refused
                continue
            if state["cluster_state"] != "ok":
                continue
            owners = _owners(ranges, seed, self.partitions.slots)
            if owners is not None:
                return owners
        if isinstance(refused, (AuthenticationError, ResponseError)):
            raise StoreError(f"Redis refuses the connection: {refused}")
        raise OSError("no node of the cluster serves all slots")

    def _mux(self, node: Node) -> Mux:
        mux = self._by_node.get(node)
        if mux is None:

            async def dial(protocol: asyncio.Protocol) -> None:
                await self.dial(node, protocol)

            mux = self._by_node[node] = Mux(
                dial,
                self.greeting,
                deadline=self.deadline,
                durability=self.durability,
                on_up=self._up,
                on_down=self._down,
                on_moved=lambda error: self._moved(error, node),
                on_moving=lambda op, error: self._moving(op, error, node),
                on_round_trip=lambda seconds: self.on_round_trip(seconds),
                failures=self.failures,
            )
            mux.start_soon()
        return mux

    async def _refresh(self) -> None:
        """Look up the slots, and pass operations on that wait at a node that no longer serves them."""
        self._owners = await self._slots()
        before = list(dict.fromkeys([*self._by_node.values(), *self.muxes]))
        self.muxes[:] = [self._mux(node) for node in self._owners]
        # In the order of the calls: operations that a node refused, queued ones, those that came for a migrating slot.
        for mux in before:
            if isinstance(mux, Moving):
                for op in mux.taken_back():
                    self._route(op, mux)
        for mux in before:
            for op in mux.hand_over():
                self._route(op, mux)
            mux.resume()
            if isinstance(mux, Moving):
                mux.end()
        serving = set(self.muxes)
        for node, mux in list(self._by_node.items()):
            if mux not in serving and mux.idle:
                del self._by_node[node]
                await mux.close()

    def _route(self, op: Op, was: Mux) -> None:
        place = self._place(op)
        if place is not None:
            self.muxes[place].resubmit([op])
        elif was in self.muxes:
            was.resubmit([op])
        else:
            op[ON_REPLY](UNAVAILABLE, op[CTX])  # without a key: it was meant for this node, which is gone

    def _place(self, op: Op) -> int | None:
        tag = self._tag.search(first_wire(op))
        return None if tag is None else self.partitions.places[tag.group(0)[:-1]]

    def _moved(self, error: ReplyError, node: Node) -> None:
        if error.code == "MOVED":
            self._named = _named(error, node)
        self.reconcile()

    def _moving(self, op: Op, error: ReplyError, node: Node) -> None:
        """A node did not execute the operation because its slot is migrating."""
        if isinstance(op[CTX], Moving):
            op[CTX].still_migrating()
            return
        place = self._place(op)
        assert place is not None  # only a command with a key gets ASK
        if error.code == "ASK" and not needs_its_slot(op):
            self._mux(_named(error, node)).resubmit([as_asking(op)])
            return
        mux = self.muxes[place]
        if not isinstance(mux, Moving):
            mux = self.muxes[place] = Moving(mux, place, self.partitions.tags[place], self._settled, self.deadline)
        mux.take_back(op)

    def _settled(self, moving: Moving) -> None:
        """The migration of the slot was given up."""
        if self.muxes[moving.place] is moving:
            moving.end()
            mux = self.muxes[moving.place] = self._mux(self._owners[moving.place])
            mux.resubmit(moving.hand_over())

    def _up(self) -> None:
        self.on_up()

    def _down(self) -> None:
        self.on_down()
        self.reconcile()

    def reconcile(self) -> None:
        if not self._closed and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._reconcile_until_served())

    async def _reconcile_until_served(self) -> None:
        """A fail-over takes a while: repeat until each place is served by a connected node."""
        while not self._closed:
            try:
                await self._refresh()
                if all(mux.connected for mux in self.nodes):
                    return
            except (OSError, RedisError, StoreError):
                pass
            except Exception as error:
                log_mistake(_log, "looking up the slots failed and starts again", error)
            await asyncio.sleep(_RETRY_DELAY)


def _named(error: ReplyError, node: Node) -> Node:
    """MOVED slot host:port, ASK slot host:port; the same host when it names none."""
    host, _, port = str(error).split()[2].rpartition(":")
    return Node(node.host if host in ("", "?") else host, int(port))


def _owners(ranges: list[list[object]], seed: Node, slots: Sequence[int]) -> list[Node] | None:
    """The master of each slot in `slots`. None while some slots have none."""
    owners: list[Node | None] = [None] * len(slots)
    for first, last, master, *_replicas in ranges:
        host, port = master[0], master[1]  # type: ignore[index]
        host = host.decode() if isinstance(host, bytes) else str(host or "")
        node = Node(host or seed.host, int(port))
        for place, slot in enumerate(slots):
            if first <= slot <= last:  # type: ignore[operator]
                owners[place] = node
    found = [node for node in owners if node is not None]
    return found if len(found) == len(slots) else None
