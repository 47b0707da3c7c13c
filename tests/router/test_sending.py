"""SEND, delivery and ACK, on one edge and across two."""

import asyncio

import pytest

from tests.router.fleet import Fleet, err, sok
from weir.crypto.keys import KeyType, generate
from weir.wire import commands as cmd
from weir.wire.errors import Simple
from weir.wire.message import RcvMsgBody
from weir.wire.replies import MSG, OK
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
    bodies = []
    reply = (await r.event()).reply
    while isinstance(reply, MSG):
        body = queue.open(reply)
        assert isinstance(body, RcvMsgBody)
        bodies.append(int(body.body))
        reply = await r.ack(queue, reply.msg_id)
    assert bodies == list(range(50))


async def test_messages_wait_for_a_subscriber(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"waits") == OK()
    await r.silence()
    assert await r.sub(queue) == sok(r)
    assert await r.text(queue) == b"waits"
