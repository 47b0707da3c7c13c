"""SEND, delivery and ACK, on one edge and across two."""

import asyncio
import os

import pytest

from tests.router.fleet import Fleet, Peer, Queue, body_of, err, sok
from tests.router.links import link_queue
from weir.client.errors import ConnectionClosed
from weir.client.smp import Request
from weir.crypto.keys import KeyType, generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import LNK, MSG, OK
from weir.wire.versions import VersionRange, max_message_length

EDGES = [pytest.param(0, id="same edge"), pytest.param(1, id="across edges")]


@pytest.mark.parametrize("sender_edge", EDGES)
@pytest.mark.parametrize("key_type", ["x25519", "ed25519", "ed448"])
async def test_create_secure_send(fleet: Fleet, sender_edge: int, key_type: KeyType) -> None:
    r, s = await fleet.client(0), await fleet.client(sender_edge)
    queue = await r.new(key_type)
    assert await s.send(queue, b"hello") == OK(), "unsigned SEND before the queue is secured"
    msg_id, body = await r.msg(queue)
    assert isinstance(body, RcvMsgBody) and body.body == b"hello"
    assert await r.ack(queue, msg_id) == OK()
    assert await r.ack(queue, msg_id) == err(Simple.NO_MSG)

    sender_key, other_key = generate(key_type), generate(key_type)
    signed = cmd.SEND(False, b"hello")
    assert await s.do(signed, queue.snd_id, sender_key) == err(Simple.AUTH), "signed SEND before it is secured"
    assert await r.do(cmd.KEY(sender_key.spki), queue.rcv_id, generate(key_type)) == err(Simple.AUTH)
    assert await r.do(cmd.KEY(sender_key.spki), queue.snd_id, queue.rcv_key) == err(Simple.AUTH), "sender's id"
    assert await r.do(cmd.KEY(sender_key.spki), queue.rcv_id, queue.rcv_key) == OK()
    assert await r.do(cmd.KEY(sender_key.spki), queue.rcv_id, queue.rcv_key) == OK(), "the same key again"
    assert await r.do(cmd.KEY(other_key.spki), queue.rcv_id, queue.rcv_key) == err(Simple.AUTH)

    queue.snd_key = sender_key
    assert await s.send(queue, b"hello again") == OK()
    assert await r.text(queue) == b"hello again"
    assert await s.do(signed, queue.snd_id) == err(Simple.AUTH), "unsigned SEND after it is secured"


@pytest.mark.parametrize("sender_edge", EDGES)
@pytest.mark.parametrize("version", [6, 7, 8, 11, 19])
async def test_largest_message(fleet: Fleet, sender_edge: int, version: int) -> None:
    r = await fleet.client(0)
    s = await fleet.client(sender_edge, versions=VersionRange(6, version))
    queue = await r.new("ed25519")
    largest = b"-" * max_message_length(version)
    assert await s.send(queue, largest) == OK()
    assert await r.text(queue) == largest
    if version > 7:
        assert await s.send(queue, largest + b"-") == err(Simple.LARGE_MSG)
    await r.silence()


@pytest.mark.parametrize("sender_edge", EDGES)
async def test_one_unacknowledged_message_at_a_time(fleet: Fleet, sender_edge: int) -> None:
    r, s = await fleet.client(0), await fleet.client(sender_edge)
    queue = await r.new()
    for body in (b"1", b"2", b"3"):
        assert await s.send(queue, body) == OK()
    msg_id, _ = await r.msg(queue)
    await r.silence()
    reply = await r.ack(queue, msg_id)
    assert isinstance(reply, MSG)
    assert isinstance(body2 := queue.open(reply), RcvMsgBody) and body2.body == b"2"
    reply = await r.ack(queue, reply.msg_id)
    assert isinstance(reply, MSG)
    assert await r.ack(queue, reply.msg_id) == OK()


async def test_many_messages_in_order_across_edges(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)

    async def receive() -> list[bytes]:
        bodies = []
        while len(bodies) < 200:
            event = await r.event()
            reply = event.reply
            while isinstance(reply, MSG):
                body = queue.open(reply)
                assert isinstance(body, RcvMsgBody)
                bodies.append(body.body)
                reply = await r.ack(queue, reply.msg_id)
            assert reply == OK()
        return bodies

    async def send() -> None:
        for n in range(200):
            while (reply := await s.send(queue, b"%d" % n)) == err(Simple.QUOTA):
                await asyncio.sleep(0.01)
            assert reply == OK()

    bodies, _ = await asyncio.gather(receive(), send())
    assert bodies == [b"%d" % n for n in range(200)]


async def test_sends_of_one_connection_keep_their_order(fleet: Fleet) -> None:
    """Pipelined, without waiting for answers, while the queue's credentials are not cached."""
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    replies = await asyncio.gather(*(s.send(queue, b"%d" % n) for n in range(50)))
    assert set(map(type, replies)) == {OK}
    assert await numbers(r, queue) == list(range(50))


async def test_a_block_of_sends_keeps_its_order_at_a_busy_edge(fleet: Fleet) -> None:
    """The last ones of the block find credentials in the cache while others still wait for their verification."""
    r, s = await fleet.client(0), await fleet.client(1)
    others, key = [await fleet.client(1) for _ in range(6)], generate("ed448")
    queue = await r.new(secure=True)
    nobody = [Request(cmd.SUB(), os.urandom(24), key) for _ in range(50)]
    load = [asyncio.create_task(other.smp.send_many(nobody)) for other in others for _ in range(4)]
    await others[0].do(cmd.SUB(), os.urandom(24), key)
    replies = await s.smp.send_many([send(queue, n) for n in range(100)])
    assert not all(task.done() for task in load), "it was busy all the time"
    assert replies == [OK()] * 100
    assert await numbers(r, queue) == list(range(100))
    await asyncio.gather(*load)


async def test_the_sends_that_remove_the_link_keep_their_order(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await link_queue(r, None)
    assert queue.ids.link_id is not None
    queue.snd_key = generate("x25519")
    assert isinstance(await s.do(cmd.LKEY(queue.snd_key.spki), queue.ids.link_id, queue.snd_key), LNK)
    assert await s.smp.send_many([send(queue, n) for n in range(10)]) == [OK()] * 10
    assert await numbers(r, queue) == list(range(10))


async def test_a_sender_that_leaves_before_its_message_has_to_be_sent_again(fleet: Fleet) -> None:
    """The store's answer, STALE, finds no client; nobody else may notice."""
    r, s, other = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new()
    assert await s.send(queue, b"0") == OK(), "its credentials are cached"
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    assert await r.do(cmd.NKEY(generate("ed25519").spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
    client = next(c for c in fleet[1].router.clients.values() if c.id == min(fleet[1].router.clients))
    sending = asyncio.create_task(s.send(queue, b"1"))
    async with asyncio.timeout(10):
        while not client.sends:
            await asyncio.sleep(0)
    client.on_closed()
    assert await other.send(queue, b"2") == OK()
    assert errors == []
    s.smp.connection.abort()
    with pytest.raises(ConnectionClosed):
        await sending


def send(queue: Queue, number: int) -> Request:
    return Request(cmd.SEND(False, b"%d" % number), queue.snd_id, queue.snd_key)


async def numbers(r: Peer, queue: Queue) -> list[int]:
    """Receive and acknowledge the queue's messages one after the other."""
    bodies = []
    reply = (await r.event()).reply
    while isinstance(reply, MSG):
        body = queue.open(reply)
        assert isinstance(body, RcvMsgBody)
        bodies.append(int(body.body))
        reply = await r.ack(queue, reply.msg_id)
    return bodies


async def test_messages_wait_for_a_subscriber(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"waits") == OK()
    await r.silence()
    assert await r.sub(queue) == sok(r)
    assert await r.text(queue) == b"waits"


async def test_concurrent_senders(fleet: Fleet) -> None:
    r, s1, s2 = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    for _ in range(30):
        await asyncio.gather(s1.send(queue, b"1"), s2.send(queue, b"2"))
        msg_id, first = await r.msg(queue)
        reply = await r.ack(queue, msg_id)
        assert isinstance(first, RcvMsgBody)
        assert {first.body, body_of(queue, reply)} == {b"1", b"2"}
        assert isinstance(reply, MSG)
        assert await r.ack(queue, reply.msg_id) == OK()
