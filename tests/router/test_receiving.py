"""SUB, ACK and GET: displacement, exclusion, batches."""

import asyncio
import os
from typing import Any

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err, sok
from tests.router.test_outgoing import until
from weir.client.smp import Request
from weir.crypto.authenticator import authenticate
from weir.crypto.keys import dh
from weir.router import scheduler
from weir.store.records import QueueRecord
from weir.wire import commands as cmd
from weir.wire.errors import CommandError, Simple
from weir.wire.message import RcvMsgBody
from weir.wire.replies import DELD, END, ERR, MSG, OK, SOK
from weir.wire.smp import encode_command
from weir.wire.transmission import decode_replies, encode_client, for_auth, pack

EDGES = [pytest.param(0, id="same edge"), pytest.param(1, id="across edges")]


def body(queue: Queue, message: object) -> bytes:
    assert isinstance(message, MSG), message
    opened = queue.open(message)
    assert isinstance(opened, RcvMsgBody)
    return opened.body


@pytest.mark.parametrize("other_edge", EDGES)
async def test_switch_subscription(fleet: Fleet, other_edge: int) -> None:
    r1, r2, s = await fleet.client(0), await fleet.client(other_edge), await fleet.client(other_edge)
    queue = await r1.new()
    assert await s.send(queue, b"test1") == OK()
    assert await s.send(queue, b"test2, no ACK") == OK()
    msg_id, opened = await r1.msg(queue)
    assert isinstance(opened, RcvMsgBody) and opened.body == b"test1"
    second = await r1.ack(queue, msg_id)
    assert body(queue, second) == b"test2, no ACK"

    assert await r2.sub(queue) == sok(r2)
    msg_id2, opened = await r2.msg(queue)
    assert isinstance(opened, RcvMsgBody) and opened.body == b"test2, no ACK", "delivered again: not acknowledged"
    event = await r1.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, END())
    assert await r1.ack(queue, msg_id2) == err(Simple.NO_MSG), "the displaced connection has no message"
    assert await r2.ack(queue, msg_id2) == OK()
    assert await s.send(queue, b"test3") == OK()
    msg_id3, opened = await r2.msg(queue)
    assert isinstance(opened, RcvMsgBody) and opened.body == b"test3"
    assert await r1.ack(queue, msg_id3) == err(Simple.NO_MSG)
    assert await r2.ack(queue, msg_id3) == OK()
    assert await r1.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await r2.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    await r1.silence()
    await r2.silence()


@pytest.mark.parametrize("other_edge", EDGES)
async def test_back_and_forth(fleet: Fleet, other_edge: int) -> None:
    """A connection that subscribed again is not ended by the END for its earlier subscription."""
    r1, r2, s = await fleet.client(0), await fleet.client(other_edge), await fleet.client(0)
    queue = await r1.new()
    for _ in range(10):
        assert await r2.sub(queue) == sok(r2)
        assert await r1.sub(queue) == sok(r1)
    event = await r2.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, END())
    assert await s.send(queue, b"for the first") == OK()
    while (event := await r1.event()).reply == END():
        pass
    assert body(queue, event.reply) == b"for the first"
    await r1.silence()


async def test_a_repeated_sub_brings_the_message_again(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    assert await s.send(queue, b"1") == OK()
    first, _ = await r.msg(queue)
    assert await r.sub(queue) == sok(r)
    again, _ = await r.msg(queue)
    assert again == first
    assert await r.ack(queue, again) == OK()
    await r.silence()


async def test_disconnected_subscriber_leaves_the_queue_free(fleet: Fleet) -> None:
    r1, r2, s = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r1.new()
    await r1.close()
    assert await s.send(queue, b"1") == OK()
    assert await r2.sub(queue) == sok(r2)
    assert await r2.text(queue) == b"1"


async def test_get(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False, secure=True)
    assert await s.send(queue, b"hello") == OK()
    message = await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert body(queue, message) == b"hello"
    assert isinstance(message, MSG)
    again = await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert again == message
    assert await r.ack(queue, message.msg_id) == OK()
    assert await r.ack(queue, message.msg_id) == err(Simple.NO_MSG)
    assert await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == OK()


async def test_two_acks_in_one_block(fleet: Fleet) -> None:
    """The second has no message, whether it came by GET or by SUB, and without an id takes none but that one."""
    r, g, s = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    for ack in (cmd.ACK(b""), None):
        queue = await r.new()
        for text in (b"1", b"2"):
            assert await s.send(queue, text) == OK()
        msg_id, _ = await r.msg(queue)
        got = await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
        assert body(queue, got) == b"1"
        both = [Request(ack or cmd.ACK(msg_id), queue.rcv_id, queue.rcv_key)] * 2
        assert await g.smp.send_many(both) == [OK(), err(Simple.NO_MSG)]
        first, second = await r.smp.send_many(both)
        assert body(queue, first) == b"2" and second == err(Simple.NO_MSG)


@pytest.mark.parametrize("other_edge", EDGES)
async def test_get_and_sub(fleet: Fleet, other_edge: int) -> None:
    r, g, s = await fleet.client(0), await fleet.client(other_edge), await fleet.client(0)
    queue = await r.new(secure=True)
    for text in (b"hello 1", b"hello 2", b"hello 3", b"hello 4"):
        assert await s.send(queue, text) == OK()

    async def get() -> MSG:
        reply = await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
        assert isinstance(reply, MSG), reply
        return reply

    id1, _ = await r.msg(queue)
    got = await get()
    assert got.msg_id == id1 and body(queue, got) == b"hello 1"
    assert await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == err(CommandError.PROHIBITED)
    assert await g.sub(queue) == err(CommandError.PROHIBITED)
    second = await r.ack(queue, id1)
    assert body(queue, second) == b"hello 2"
    assert await g.ack(queue, b"1234") == err(Simple.NO_MSG)
    assert await g.ack(queue, id1) == OK(), "the subscriber has acknowledged it before"
    got = await get()
    assert body(queue, got) == b"hello 2"
    assert await g.ack(queue, got.msg_id) == OK(), "no next message in a GET client's answer"
    third = await get()
    assert body(queue, third) == b"hello 3"
    reply = await r.ack(queue, got.msg_id)
    assert body(queue, reply) == b"hello 3", "the subscriber's ACK of a message that the other removed loses nothing"
    assert isinstance(reply, MSG)
    reply = await r.ack(queue, reply.msg_id)
    assert body(queue, reply) == b"hello 4"
    assert isinstance(reply, MSG)
    assert await r.ack(queue, reply.msg_id) == OK()
    assert await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == OK()
    await g.silence()
    await r.silence()


async def test_get_and_sub_in_one_block(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one of them is done, even when the other is verified before it has found its message."""
    monkeypatch.setattr(scheduler, "_SLICE", 0.0)
    monkeypatch.setattr(scheduler, "_SLICE_ALONE", 0.0)
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    both = [Request(command, queue.rcv_id, queue.rcv_key) for command in (cmd.GET(), cmd.SUB())]
    replies = await r.smp.send_many(both)
    assert replies in ([OK(), err(CommandError.PROHIBITED)], [err(CommandError.PROHIBITED), sok(r)])
    assert await s.send(queue, b"1") == OK()
    if replies[1] == sok(r):
        assert await r.text(queue) == b"1"
    else:
        assert body(queue, await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key)) == b"1"
        await r.silence()


async def test_concurrent_senders(fleet: Fleet) -> None:
    r, s1, s2 = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    for _ in range(30):
        await asyncio.gather(s1.send(queue, b"1"), s2.send(queue, b"2"))
        msg_id, first = await r.msg(queue)
        reply = await r.ack(queue, msg_id)
        assert isinstance(first, RcvMsgBody)
        assert {first.body, body(queue, reply)} == {b"1", b"2"}
        assert isinstance(reply, MSG)
        assert await r.ack(queue, reply.msg_id) == OK()


async def test_ack_without_an_id(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    assert await r.ack(queue, b"") == err(Simple.NO_MSG)
    assert await s.send(queue, b"1") == OK()
    await r.msg(queue)
    assert await r.ack(queue, b"other") == err(Simple.NO_MSG)
    assert await r.ack(queue, b"") == OK()


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


async def test_a_batch_of_subs_with_messages(fleet: Fleet) -> None:
    """Up to four SOKs travel with the first message, the other messages follow on their own."""
    s, c = await fleet.client(1), await fleet.client(0)
    queues = [await s.new(subscribe=False) for _ in range(3)]
    for queue in queues:
        assert await s.send(queue, b"m") == OK()
    blocks = await raw_blocks(c, [Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues], 3)
    assert [[type(t.reply).__name__ for t in block] for block in blocks] == [
        ["SOK", "SOK", "SOK", "MSG"],
        ["MSG"],
        ["MSG"],
    ]
    assert {t.entity_id for block in blocks for t in block if isinstance(t.reply, MSG)} == {q.rcv_id for q in queues}


async def test_a_large_batch_of_subs_with_messages(fleet: Fleet) -> None:
    s, c = await fleet.client(1), await fleet.client(0)
    queues = [await s.new(subscribe=False) for _ in range(6)]
    for queue in queues:
        assert await s.send(queue, b"m") == OK()
    blocks = await raw_blocks(c, [Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues], 7)
    assert [type(t.reply).__name__ for t in blocks[0]] == ["SOK"] * 6
    assert [[type(t.reply).__name__ for t in block] for block in blocks[1:]] == [["MSG"]] * 6


async def test_a_full_block_of_subs(fleet: Fleet) -> None:
    c, other = await fleet.client(0), await fleet.client(1)
    queues = [await c.new() for _ in range(135)]
    replies = await other.smp.send_many([Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues])
    assert replies == [SOK()] * 135
    ended = {(await c.event()).entity_id for _ in queues}
    assert ended == {queue.rcv_id for queue in queues}
    stats = fleet[0].router.stats
    assert stats.qSubEnd == 135 and 1 <= stats.qSubEndB < 135, "coalesced"
    assert fleet[1].router.stats.qSubAllB >= 1


async def test_unreadable_blocks_are_answered(fleet: Fleet) -> None:
    c = await fleet.client(0)
    for content in (b"", b"\0", b"\1", b"\1\0\1", b"\2\0\1\0"):
        c.smp.connection.send_contents([content])
        event = await c.event()
        assert event.reply == ERR(Simple.BLOCK)
    await c.smp.ping()


async def raw_blocks(peer: Peer, requests: list[Request], count: int) -> list[list[object]]:
    """Send the requests in one block and take the router's next blocks as they come."""
    blocks: asyncio.Queue[list[object]] = asyncio.Queue()
    session = peer.smp.session

    class Tap:
        def on_block(self, content: bytes) -> None:
            blocks.put_nowait(list(decode_replies(session, content)))

        def on_writable(self) -> None: ...

        def on_closed(self) -> None: ...

    encoded = []
    for command, entity_id, key in requests:
        corr_id = os.urandom(24)
        authorized, sent = for_auth(session, corr_id, entity_id, encode_command(session.version, command))
        server_key = peer.smp.connection.server_key
        assert server_key is not None
        auth = b"" if key is None else authenticate(dh(server_key, key.private), corr_id, authorized)
        encoded.append(encode_client(session, sent, auth, None))
    contents = pack(encoded)
    assert len(contents) == 1
    peer.smp.connection.attach(Tap())
    peer.smp.connection.send_contents(contents)
    async with asyncio.timeout(10):
        return [await blocks.get() for _ in range(count)]


# END and the answer that it ends


async def test_end_stays_behind_the_answer_in_a_block(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first SUB's answer waits for the second's; meanwhile another connection takes the first queue."""
    r, other = await fleet.client(0), await fleet.client(1)
    first, second = await r.new(subscribe=False), await r.new(subscribe=False)
    store = fleet[0].store
    sub, held = store.sub, list[Any]()

    def hold_second(record: QueueRecord, *rest: Any) -> None:
        if record.rcv_id == second.rcv_id:
            held.append((record, *rest))
        else:
            sub(record, *rest)

    monkeypatch.setattr(store, "sub", hold_second)
    subs = [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in (first, second)]
    blocks = asyncio.create_task(raw_blocks(r, subs, 1))
    await until(lambda: bool(held))
    assert await other.sub(first) == sok(other)
    await until(lambda: fleet[0].router.stats.qSubEnd == 1)
    sub(*held[0])
    assert of(first, await blocks) == [sok(r), END()]


async def test_end_stays_behind_the_answer_with_a_message(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    r, other, s = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"1") == OK()
    store = fleet[0].store
    body, held = store.body, list[Any]()
    monkeypatch.setattr(store, "body", lambda *asked: held.append(asked))
    blocks = asyncio.create_task(raw_blocks(r, [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key)], 1))
    await until(lambda: bool(held))
    await other.sub(queue)
    await until(lambda: fleet[0].router.stats.qSubEnd == 1)
    body(*held[0])
    assert of(queue, await blocks) == [sok(r), END()]


def of(queue: Queue, blocks: list[list[Any]]) -> list[object]:
    """What was said of a queue, in order."""
    return [t.reply for block in blocks for t in block if t.entity_id == queue.rcv_id]
