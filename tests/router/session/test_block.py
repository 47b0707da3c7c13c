"""How much of one connection is in progress at a time, while other connections wait."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pytest

from tests.router.fleet import Fleet, Peer, Queue, raw_blocks, sok
from tests.router.notifier import nkey
from tests.router.session.test_outgoing import until
from weir.client.smp import Request
from weir.crypto.block import pad_block
from weir.redis import operations
from weir.redis.embedded import Embedded
from weir.router.session.block import Block
from weir.router.session.session import Session
from weir.runtime import turns as turning
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import MSG, OK
from weir.wire.smp.transmission import ServerTransmission
from weir.wire.versions import VersionRange

BODY = bytes(16000)
PING = pad_block(b"\1\0\7\0\0\0PING")
PINGS = pad_block(b"\xff" + b"\0\7\0\0\0PING" * 255)
UNENCRYPTED = VersionRange(7, 10)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections count as active for the whole test, so none is alone on its edge."""
    monkeypatch.setattr(turning, "_ALONE", 3600.0)


class Timers:
    """A loop whose timers are rung by hand."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: list[tuple[float, Callable[[], None]]]) -> None:
        self._loop = loop
        self._timers = timers

    def call_later(self, seconds: float, ring: Callable[[], None]) -> None:
        self._timers.append((seconds, ring))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


@contextmanager
def stopped(redis: Embedded) -> Iterator[None]:
    """Redis takes commands and answers nothing."""
    os.kill(redis.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(redis.pid, signal.SIGCONT)


async def connect(fleet: Fleet, **options: Any) -> tuple[Peer, Session]:
    """A connection's two sides."""
    peer = await fleet.client(0, **options)
    await peer.smp.ping()
    clients = fleet[0].router.clients
    return peer, clients[max(clients)]


def in_redis_hands(fleet: Fleet) -> int:
    """Scripts and reads that are written and not answered; a body's SET goes with its script."""
    muxes = set(fleet[0].store.core.muxes)
    return sum(op is not operations.BODY for mux in muxes for op in mux._pending)


async def sender(fleet: Fleet) -> tuple[Peer, Session, Queue]:
    """A connection, with a queue whose credentials the edge has at hand."""
    peer, client = await connect(fleet)
    queue = await peer.new(subscribe=False, secure=True)
    assert await peer.send(queue, b"1") == OK()
    return peer, client, queue


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(("alone", "under_way"), [(False, 2), (True, 8)])
async def test_what_others_wait_behind(fleet: Fleet, redis: Embedded, alone: bool, under_way: int) -> None:
    other, others_client, others_queue = await sender(fleet)
    flooder, client, queue = await sender(fleet)
    turns = fleet[0].router.turns
    if alone:
        turns._shared_until = 0.0
        assert turns.alone
    await fleet[0].store.core.ask(0, b"PING")
    before = in_redis_hands(fleet)
    with stopped(redis):
        sent = [asyncio.create_task(flooder.send(queue, BODY)) for _ in range(30)]
        await until(lambda: client.incoming.paused)
        for _ in range(100):
            await asyncio.sleep(0)
        assert client.incoming.in_progress == under_way
        assert in_redis_hands(fleet) - before == under_way
        one = asyncio.create_task(other.send(others_queue, BODY))
        await until(lambda: others_client.incoming.in_progress == 1)
        assert in_redis_hands(fleet) - before == under_way + 1
        assert not turns.alone
    assert await one == OK()
    assert await asyncio.gather(*sent) == [OK()] * 30
    assert not client.incoming.paused and client.incoming.in_progress == 0


@pytest.mark.usefixtures("shared")
async def test_one_block_of_a_connection_in_a_turn(fleet: Fleet) -> None:
    """However many one read brought, and although each is answered at once."""
    _, client = await connect(fleet, versions=UNENCRYPTED)
    _, other = await connect(fleet, versions=UNENCRYPTED)
    other.on_blocks([PING])
    await asyncio.sleep(0)
    client.on_blocks([PING] * 12)
    assert len(client.incoming.blocks) == 11
    other.on_blocks([PING])
    assert not other.incoming.blocks and other.outgoing._items, "it is answered in the same turn"
    turns = 0
    while client.incoming.blocks:
        left = len(client.incoming.blocks)
        await asyncio.sleep(0)
        assert left - len(client.incoming.blocks) <= 1
        turns += 1
    assert turns >= 11


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(("command", "under_way"), [(cmd.GET, 16), (cmd.SUB, 100)])
async def test_a_few_commands_of_a_block(
    fleet: Fleet, redis: Embedded, command: type[cmd.Command], under_way: int
) -> None:
    """A block of 100 GETs has sixteen of them under way, whatever a GET waits for. SUBs share calls to the store."""
    owner = await fleet.client(0)
    r, client = await connect(fleet)
    queues = [await owner.new(subscribe=False) for _ in range(100)]
    most = 0
    dispatch = Session.dispatch

    def counting(self: Session, *args: object) -> None:
        nonlocal most
        dispatch(self, *args)  # type: ignore[arg-type]
        if self is client and self.incoming.block is not None:
            most = max(most, self.incoming.block.in_progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "dispatch", counting)
        requests = [Request(command(), queue.rcv_id, queue.rcv_key) for queue in queues]
        with stopped(redis):
            asked = asyncio.create_task(r.smp.send_many(requests))
            await until(lambda: most == under_way)
        replies = await asked
    assert replies == [sok(r) if command is cmd.SUB else OK()] * 100
    assert most == under_way
    assert client.incoming.holds == 0 and client.incoming.in_progress == 0 and client.incoming.block is None


@pytest.mark.usefixtures("shared")
async def test_commands_that_are_answered_at_once_take_turns_too(fleet: Fleet) -> None:
    _, client = await connect(fleet, versions=UNENCRYPTED)
    client.on_blocks([PINGS])
    turns = 0
    while client.incoming.in_progress:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 255 // 16


@pytest.mark.usefixtures("shared")
async def test_a_connection_that_works_without_end_rests(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The router stops reading from the busy connection, serves the others, and then continues where it stopped."""
    _, client = await connect(fleet, versions=UNENCRYPTED)
    _, other = await connect(fleet, versions=UNENCRYPTED)
    loop = fleet[0].router.loop
    timers: list[tuple[float, Callable[[], None]]] = []
    other.on_blocks([PING])
    client.incoming.share.charge(perf_counter(), perf_counter() + 30)
    with monkeypatch.context() as patch:
        patch.setattr(client.shared.turns, "loop", Timers(loop, timers))
        client.on_blocks([PING, PINGS])
        client.on_blocks([PING])
        for _ in range(100):
            await asyncio.sleep(0)
    [(seconds, go_on)] = timers
    assert 29 < seconds <= 60
    assert client.incoming.paused and len(client.incoming.blocks) == 3 and client.incoming.in_progress == 0
    other.on_blocks([PING])
    assert not other.incoming.blocks and other.outgoing._items
    client.incoming.share.throttled_until = 0.0
    go_on()
    # On a busy machine, the connection may have to rest once more.
    incoming = client.incoming
    await until(lambda: not (incoming.in_progress or incoming.blocks or incoming.paused or incoming.throttled))


@pytest.mark.usefixtures("shared")
async def test_what_a_connection_has_done_is_counted(fleet: Fleet) -> None:
    """Reading and answering its blocks, and sending what they bring; one command at a time is no burden."""
    _, client = await connect(fleet, versions=UNENCRYPTED)
    _, other = await connect(fleet, versions=UNENCRYPTED)
    began = perf_counter()
    client.on_blocks([PINGS] * 4)
    await until(lambda: not client.incoming.in_progress and not client.incoming.blocks)
    assert client.incoming.share.throttled_until > began
    other.on_blocks([PING])
    assert other.incoming.share.throttled_until == 0.0


async def filled(fleet: Fleet, peer: Peer, count: int) -> list[Queue]:
    """Queues with a message of full size each."""
    queues = [await peer.new(subscribe=False) for _ in range(count)]
    sends = [Request(cmd.SEND(False, BODY), queue.snd_id) for queue in queues]
    assert await peer.smp.send_many(sends) == [OK()] * count
    return queues


async def test_large_answers_leave_before_the_last_and_in_order(fleet: Fleet) -> None:
    peer = await fleet.client(0)
    queues = await filled(fleet, peer, 60)
    requests = [Request(cmd.GET(), queue.rcv_id, queue.rcv_key) for queue in queues]
    replies: list[ServerTransmission] = []
    for block in await raw_blocks(peer, requests, 60):
        replies += block  # type: ignore[arg-type]
    assert [reply.entity_id for reply in replies] == [request.entity_id for request in requests]
    assert all(isinstance(reply.reply, MSG) for reply in replies)


@pytest.mark.usefixtures("shared")
async def test_large_answers_to_a_client_that_does_not_read(fleet: Fleet) -> None:
    """Blocks of 16 KB that ask for 1.6 MB each: what waits for the client stays bounded."""
    peer, client = await connect(fleet)
    queues = await filled(fleet, peer, 100)
    peer.smp.connection.pause_reading()
    requests = [Request(cmd.GET(), queue.rcv_id, queue.rcv_key) for queue in queues] * 5
    asked = asyncio.create_task(peer.smp.send_many(requests))
    # Nothing more is begun while there is no room.
    await until(
        lambda: client.outgoing.full and client.incoming.block is not None and client.incoming.block.in_progress == 0
    )
    block = client.incoming.block
    assert block is not None
    assert client.outgoing.pending_bytes + block.pending_bytes < fleet.config.transport.outgoing_bytes + 24 * 16384
    peer.read_again()
    assert all(isinstance(reply, MSG) for reply in await asked)
    assert client.incoming.block is None and client.incoming.holds == 0 and not client.incoming.paused


@pytest.mark.usefixtures("shared")
async def test_a_client_that_leaves_before_its_block_is_begun(fleet: Fleet, redis: Embedded) -> None:
    owner, holder = await fleet.client(0), await fleet.client(0)
    r, client = await connect(fleet)
    queues = [await owner.new(secure=True) for _ in range(100)]
    notifiers = [await nkey(owner, queue) for queue in queues]
    for notifier in notifiers:
        assert await holder.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(holder)
    with stopped(redis):
        for notifier in notifiers:
            r.smp.submit(cmd.NSUB(), notifier.ntf_id, notifier.key, lambda _: None)
        r.smp.flush()
        await until(lambda: client.incoming.block is not None)
        r.smp.connection.abort()
        await until(lambda: client.closed)
    await until(lambda: not fleet[0].router._tasks)
    await holder.smp.ping()
    ended = holder.smp.events.qsize()
    assert ended <= 16, "what was not begun displaces nobody"


async def test_an_answered_block_is_freed_without_the_garbage_collector(fleet: Fleet) -> None:
    """A reference cycle would keep a block and its commands until the collector's next search."""
    peer = await fleet.client(0)
    queues = [await peer.new(subscribe=False) for _ in range(3)]
    gc.collect()
    gc.disable()
    try:
        replies = await peer.smp.send_many([Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues])
        assert replies == [sok(peer)] * len(queues)
        await until(lambda: not [one for one in gc.get_objects() if isinstance(one, Block)])
    finally:
        gc.enable()


async def test_results_come_in_the_order_of_the_commands(fleet: Fleet) -> None:
    c = await fleet.client(0)
    queues = [await c.new() for _ in range(3)]
    commands = [
        Request(cmd.SUB(), queues[0].rcv_id, queues[0].rcv_key),
        Request(cmd.PING()),
        Request(cmd.QUE(), queues[1].rcv_id, queues[1].rcv_key),
        Request(cmd.SUB(), os.urandom(24), queues[0].rcv_key),
        Request(cmd.DEL(), queues[2].rcv_id, queues[2].rcv_key),
        Request(cmd.SUB(), queues[1].rcv_id, queues[1].rcv_key),
    ]
    blocks = await raw_blocks(c, commands, 1)
    kinds = [type(t.reply).__name__ for t in blocks[0]]
    assert kinds == ["SOK", "PONG", "INFO", "ERR", "OK", "SOK"]
