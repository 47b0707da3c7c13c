"""The edge's inboxes: drained when poked, after a reconnect, and on a slow timer."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import hiredis

from weir.store import keys
from weir.store.core import Core
from weir.store.packing import unpack_status
from weir.store.records import (
    UNAVAILABLE,
    BlockedEvent,
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    Event,
    MovedEvent,
    MsgEvent,
    NtfEvent,
)
from weir.store.resp import bulk
from weir.wire.errors import BlockingInfo

_BATCH = 256


def parse_event(raw: bytes) -> Event:
    """kind ‖ conn:gen ‖ ':' ‖ length of id ‖ id ‖ rest (lua/include/tell.lua)."""
    kind = raw[:1]
    conn_text, gen_text, tail = raw[1:].split(b":", 2)
    conn, gen = int(conn_text), int(gen_text)
    length = tail[0]
    entity_id, rest = tail[1 : 1 + length], tail[1 + length :]
    if kind == b"M":
        return MsgEvent(entity_id, Entry.parse(rest), conn, gen)
    if kind == b"E":
        return EndEvent(entity_id, conn, gen)
    if kind == b"N":
        return NtfEvent(entity_id, conn, gen)
    if kind == b"D":
        return DeldEvent(entity_id, conn, gen, rest or None)
    if kind == b"V":
        return MovedEvent(entity_id, rest[: keys.ID_LENGTH], conn, gen)
    if kind == b"S":
        return EndsEvent(entity_id, conn, gen)
    info = unpack_status(b"b" + rest)
    assert isinstance(info, BlockingInfo)
    return BlockedEvent(entity_id, conn, gen, info)


class _Box:
    """One partition's inbox."""

    __slots__ = ("busy", "handled", "poked", "recent", "sure")

    def __init__(self) -> None:
        self.busy = False
        self.poked = False
        self.handled = 0  # events at its start that were handled and not removed
        self.sure = True  # `handled` is right: no connection broke since
        self.recent: deque[bytes] = deque(maxlen=_BATCH)  # the last ones handled; each event is unique


class Inbox:
    def __init__(self, core: Core, emit: Callable[[Event], None]) -> None:
        self._core = core
        self._emit = emit
        self._boxes = [_Box() for _ in range(keys.PARTITIONS)]
        boxes = [bulk(keys.inbox(p, core.edge)) for p in range(keys.PARTITIONS)]
        self._trims = [b"*4\r\n$5\r\nLTRIM\r\n" + box for box in boxes]
        self._ranges = [b"*4\r\n$6\r\nLRANGE\r\n" + box + bulk(b"0") + bulk(b"%d" % (_BATCH - 1)) for box in boxes]
        self.drains = 0

    def reconnected(self) -> None:
        """What Redis has removed is not known any more: compare what is there with what was handled."""
        for box in self._boxes:
            box.sure = False

    def drain_all(self) -> None:
        for p in range(keys.PARTITIONS):
            self.drain(p)

    def drain(self, p: int) -> None:
        box = self._boxes[p]
        if box.busy:
            box.poked = True
            return
        box.busy, box.poked = True, False
        self.drains += 1
        mux = self._core.muxes[p]
        if box.handled and box.sure:
            # Not repeated when the connection breaks, or it might remove what nobody has seen.
            mux.once(self._trims[p] + bulk(b"%d" % box.handled) + bulk(b"-1"), self._trimmed, box)
        mux.read(self._ranges[p], self._found, (p, box))

    def _trimmed(self, raw: Any, box: _Box) -> None:
        if raw is UNAVAILABLE:
            box.sure = False
        else:
            box.handled = 0

    def _found(self, raw: Any, ctx: tuple[int, _Box]) -> None:
        p, box = ctx
        box.busy = False
        if raw is UNAVAILABLE:
            box.sure = False
            return  # the slow timer looks again
        items: list[bytes] = raw
        known = () if box.sure else frozenset(box.recent)
        box.handled, box.sure = len(items), True
        for item in items:
            if item not in known:
                box.recent.append(item)
                self._emit(parse_event(item))
        # A single event stays until the next look: the one behind it pokes again (lua/include/tell.lua).
        if len(items) > 1 or box.poked:
            self.drain(p)


class Pokes(asyncio.Protocol):
    """The subscriber's side of one connection: each message names a partition."""

    def __init__(self, on_poke: Callable[[int], None], subscribe: list[bytes], greeting: bytes) -> None:
        self._on_poke = on_poke
        self._hello = greeting + b"".join(subscribe)
        self._awaited = len(subscribe)
        self._reader = hiredis.Reader()
        self._transport: asyncio.BaseTransport | None = None
        self.subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._hello)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if isinstance(reply, hiredis.ReplyError):
                self.close()  # the slot is not here, or not yet
            if not isinstance(reply, list):
                continue
            if reply[0] in (b"message", b"smessage"):
                self._on_poke(int(reply[2]))
            elif reply[0] in (b"subscribe", b"ssubscribe"):
                self._awaited -= 1
                if self._awaited == 0 and not self.subscribed.done():
                    self.subscribed.set_result(None)
            elif reply[0] == b"sunsubscribe":
                self.close()  # the slot has moved: find it again

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.subscribed.done():
            self.subscribed.set_exception(OSError("closed"))
            self.subscribed.exception()  # asked here, since nobody else may
        if not self.closed.done():
            self.closed.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()  # type: ignore[attr-defined]


class Listener:
    """Keeps the subscriptions to pokes up, on as many nodes as it takes."""

    def __init__(self, core: Core, inbox: Inbox) -> None:
        self._core = core
        self._inbox = inbox
        self._task: asyncio.Task[None] | None = None
        self.listening = asyncio.Event()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())
        async with asyncio.timeout(self._core.config.deadline):
            await self.listening.wait()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            protocols: list[Pokes] = []
            try:
                topology = self._core.topology
                for node, subscribe in (await topology.listening_places(self._core.edge)).items():
                    protocol = Pokes(self._inbox.drain, subscribe, topology.login())
                    protocols.append(protocol)
                    await topology.dial(node, protocol)
                async with asyncio.timeout(self._core.config.deadline):
                    await asyncio.gather(*(protocol.subscribed for protocol in protocols))
                self.listening.set()
                self._inbox.drain_all()
                await asyncio.wait([p.closed for p in protocols], return_when=asyncio.FIRST_COMPLETED)
            except OSError:
                pass
            finally:
                for protocol in protocols:
                    protocol.close()
            self._core.topology.look_again()
            await asyncio.sleep(0.2)
