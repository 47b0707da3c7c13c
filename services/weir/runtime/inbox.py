"""The inbox brings an edge the events that scripts leave for it.

A script that changes an owner appends an event to the inbox of the owner's edge, in the same partition and the same
step. When the inbox held at most one event before, the script also publishes a *poke* that names the partition.

    script on edge A                   Redis, partition p             edge B
      RPUSH event ───────────────────► inbox of B
      PUBLISH p ─────────────────────► channel of B ────────────────► PokeListener
                                                                          │ drain(p)
                                       inbox of B  ◄── LTRIM handled ─────┤ only what was handled before
                                                   ◄── LRANGE ────────────┤
                                                   ─── events ───────────►│ each event once, in order

An edge drains an inbox on a poke, drains all of them after a reconnect, and all of them on a slow timer. A lost poke
therefore delays an event and never loses it.

Events are removed one round trip after they were handled, by the next drain. LTRIM must not run twice: it would remove
events that nobody has seen. It is therefore never repeated on a new connection; instead, the next drain compares what
it finds with the events handled last. Each event is unique, so that an event handled before is recognised.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import hiredis

from weir.redis.connection import ReplyError
from weir.redis.errors import UNAVAILABLE
from weir.redis.mux import Mux
from weir.redis.operations import NOT_EXECUTED
from weir.redis.resp import bulk, command
from weir.redis.topology import Topology
from weir.redis.url import Node
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)

Event = TypeVar("Event")
_BATCH = 256  # events of one drain
_RETRY_DELAY = 0.2  # seconds


class _Partition:
    """The state of an edge's inbox in one partition, as the edge knows it."""

    __slots__ = ("certain", "draining", "handled", "poked", "recent")

    def __init__(self) -> None:
        self.draining = False
        self.poked = False  # while draining: drain once more
        self.handled = 0  # events at the start of the list that were handled and are not removed yet
        self.certain = True  # `handled` is right, because no connection broke since
        self.recent: deque[bytes] = deque(maxlen=_BATCH)  # the events handled last


class Inbox(Generic[Event]):
    """`keys[p]` is the inbox of this edge in partition p; `decode` turns an entry of an inbox into an event."""

    def __init__(
        self,
        muxes: Sequence[Mux],
        keys: Sequence[bytes],
        decode: Callable[[bytes], Event],
        emit: Callable[[Event], None],
    ) -> None:
        self._muxes = muxes
        self._keys = keys
        self._decode = decode
        self._emit = emit
        self._partitions = [_Partition() for _ in keys]
        self._trims = [b"*4\r\n$5\r\nLTRIM\r\n" + bulk(key) for key in keys]
        self._ranges = [command(b"LRANGE", key, 0, _BATCH - 1) for key in keys]

    def reconnected(self) -> None:
        """Redis may or may not have executed the last LTRIM: the next drain compares its events with those handled."""
        for partition in self._partitions:
            partition.certain = False

    def doubt(self, p: int) -> None:
        """The inbox may have been deleted meanwhile: the next drain compares its events with those handled."""
        self._partitions[p].certain = False

    def drain_all(self) -> None:
        for p in range(len(self._keys)):
            self.drain(p)

    def drain(self, p: int) -> None:
        partition = self._partitions[p]
        if partition.draining:
            partition.poked = True
            return
        partition.draining, partition.poked = True, False
        mux = self._muxes[p]
        if partition.handled and partition.certain:
            mux.once(self._trims[p] + bulk(b"%d" % partition.handled) + bulk(b"-1"), self._trimmed, partition)
        mux.read(self._ranges[p], self._found, (p, partition))

    def _trimmed(self, reply: Any, partition: _Partition) -> None:
        if reply is UNAVAILABLE:
            partition.certain = False
        else:
            partition.handled = 0

    def _found(self, reply: Any, asked: tuple[int, _Partition]) -> None:
        p, partition = asked
        partition.draining = False
        if reply is UNAVAILABLE:
            partition.certain = False
            return  # the slow timer drains again
        items: list[bytes] = reply
        known = () if partition.certain else frozenset(partition.recent)
        partition.handled, partition.certain = len(items), True
        for item in items:
            if item not in known:
                partition.recent.append(item)
                self._emit(self._decode(item))
        # A single event stays in the inbox until the next drain: the script that appends a second event pokes.
        if len(items) > 1 or partition.poked:
            self.drain(p)

    async def delete(self) -> None:
        """Delete the inboxes: this edge owns nothing any more."""
        calls = (self._muxes[p].ask(command(b"UNLINK", key)) for p, key in enumerate(self._keys))
        await asyncio.gather(*calls, return_exceptions=True)


class _Subscriber(asyncio.Protocol):
    """One connection that receives messages of channels. `on_message` gets the channel and the message."""

    def __init__(self, on_message: Callable[[bytes, bytes], None], subscribe: list[bytes], login: bytes) -> None:
        self._on_message = on_message
        self._first_bytes = login + b"".join(subscribe)
        self._unconfirmed = len(subscribe)
        self._reader = hiredis.Reader(replyError=ReplyError)
        self._transport: asyncio.BaseTransport | None = None
        self.refused: str | None = None  # the code of the error that Redis answered
        self.subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._first_bytes)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if isinstance(reply, ReplyError):
                if reply.code not in NOT_EXECUTED:
                    self.refused = reply.code
                self.close()  # the node does not serve the slot, or not yet, or refuses this edge
            if not isinstance(reply, list):
                continue
            if reply[0] in (b"message", b"smessage"):
                self._on_message(reply[1], reply[2])
            elif reply[0] in (b"subscribe", b"ssubscribe"):
                self._unconfirmed -= 1
                if self._unconfirmed == 0 and not self.subscribed.done():
                    self.subscribed.set_result(None)
            elif reply[0] == b"sunsubscribe":
                self.close()  # the slot has moved to another node

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.subscribed.done():
            self.subscribed.set_exception(OSError("closed"))
            self.subscribed.exception()  # mark the exception as retrieved: perhaps nobody awaits the future
        if not self.closed.done():
            self.closed.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()  # type: ignore[attr-defined]


class PokeListener:
    """Keeps the subscriptions to this edge's pokes alive, on as many nodes as needed.

    `channel` is used with PUBLISH, for all partitions. `shard_channels[p]` is used with SPUBLISH, where Redis has it.
    `others` are further channels that the edge listens to, used with PUBLISH, and who takes their messages.
    """

    def __init__(
        self,
        topology: Topology,
        channel: bytes,
        shard_channels: Sequence[bytes],
        drain: Callable[[int], None],
        drain_all: Callable[[], None],
        *,
        limit: float,
        others: Mapping[bytes, Callable[[bytes], None]] | None = None,
    ) -> None:
        self._topology = topology
        self._others = others or {}
        self._channel = channel
        self._shard_channels = shard_channels
        self._drain = drain
        self._drain_all = drain_all
        self._limit = limit
        self._task: asyncio.Task[None] | None = None
        self._subscribers: list[_Subscriber] = []
        self.listening = asyncio.Event()

    async def start(self) -> None:
        """Raises TimeoutError when the subscriptions are not confirmed within the limit."""
        self._topology.on_replaced = self._subscribe_again
        self._task = asyncio.create_task(self._run())
        async with asyncio.timeout(self._limit):
            await self.listening.wait()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _subscriptions(self) -> dict[Node, list[bytes]]:
        """For each node to listen to, the (S)SUBSCRIBE commands for the channels of this edge."""
        others = [command(b"SUBSCRIBE", channel) for channel in self._others]
        if not self._topology.scripts.sharded:
            return {await self._topology.master(0): [command(b"SUBSCRIBE", self._channel), *others]}
        by_node: dict[Node, list[bytes]] = {await self._topology.master(0): others}
        for p, channel in enumerate(self._shard_channels):
            node = await self._topology.master(p)
            by_node.setdefault(node, []).append(command(b"SSUBSCRIBE", channel))
        return by_node

    def _subscribe_again(self) -> None:
        for subscriber in self._subscribers:
            subscriber.close()

    def _on_message(self, channel: bytes, message: bytes) -> None:
        take = self._others.get(channel)
        if take is None:
            self._drain(int(message))  # a poke names a partition
        else:
            take(message)

    async def _run(self) -> None:
        while True:
            subscribers = self._subscribers = []
            try:
                for node, subscribe in (await self._subscriptions()).items():
                    subscriber = _Subscriber(self._on_message, subscribe, self._topology.login())
                    subscribers.append(subscriber)
                    await self._topology.dial(node, subscriber)
                async with asyncio.timeout(self._limit):
                    await asyncio.gather(*(subscriber.subscribed for subscriber in subscribers))
                self.listening.set()
                self._drain_all()
                await asyncio.wait([s.closed for s in subscribers], return_when=asyncio.FIRST_COMPLETED)
            except OSError:
                pass
            except Exception as error:
                log_mistake(_log, "the subscription to pokes failed and starts again", error)
            finally:
                for subscriber in subscribers:
                    subscriber.close()
                    if subscriber.refused is not None:
                        self._topology.failures.count(subscriber.refused)
            self._topology.reconcile()
            await asyncio.sleep(_RETRY_DELAY)
