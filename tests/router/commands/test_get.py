"""GET, and GET beside SUB."""

import pytest

from tests.router.fleet import Fleet, body_of, err, sok
from weir.client.smp import Request
from weir.runtime import turns as turning
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import MSG, OK, PONG

EDGES = [pytest.param(0, id="same edge"), pytest.param(1, id="across edges")]


async def test_get(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False, secure=True)
    assert await s.send(queue, b"hello") == OK()
    message = await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert body_of(queue, message) == b"hello"
    assert isinstance(message, MSG)
    again = await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert again == message
    assert await r.ack(queue, message.msg_id) == OK()
    assert await r.ack(queue, message.msg_id) == err(Simple.NO_MSG)
    assert await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == OK()


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
    assert got.msg_id == id1 and body_of(queue, got) == b"hello 1"
    assert await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == err(CommandError.PROHIBITED)
    assert await g.sub(queue) == err(CommandError.PROHIBITED)
    second = await r.ack(queue, id1)
    assert body_of(queue, second) == b"hello 2"
    assert await g.ack(queue, b"1234") == err(Simple.NO_MSG)
    assert await g.ack(queue, id1) == OK(), "the subscriber has acknowledged it before"
    got = await get()
    assert body_of(queue, got) == b"hello 2"
    assert await g.ack(queue, got.msg_id) == OK(), "no next message in a GET client's answer"
    third = await get()
    assert body_of(queue, third) == b"hello 3"
    reply = await r.ack(queue, got.msg_id)
    assert body_of(queue, reply) == b"hello 3", "the subscriber's ACK of a message that the other removed loses nothing"
    assert isinstance(reply, MSG)
    reply = await r.ack(queue, reply.msg_id)
    assert body_of(queue, reply) == b"hello 4"
    assert isinstance(reply, MSG)
    assert await r.ack(queue, reply.msg_id) == OK()
    assert await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == OK()
    await g.silence()
    await r.silence()


async def test_gets_behind_del_in_one_block(fleet: Fleet) -> None:
    """GET finds that the queue is gone after DEL has made the session forget it. (tests/fuzz/edge.py found this.)"""
    r = await fleet.client()
    queue = await r.new(subscribe=False)
    commands = [cmd.DEL(), cmd.GET(), cmd.GET(), cmd.PING()]
    requests = [
        Request(one, b"" if one == cmd.PING() else queue.rcv_id, None if one == cmd.PING() else queue.rcv_key)
        for one in commands
    ]
    assert await r.smp.send_many(requests) == [OK(), err(Simple.AUTH), err(Simple.AUTH), PONG()]


async def test_get_and_sub_in_one_block(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one of the two succeeds, even when the other is verified before the first has found its message."""
    monkeypatch.setattr(turning, "_SLICE", 0.0)
    monkeypatch.setattr(turning, "_SLICE_ALONE", 0.0)
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    both = [Request(command, queue.rcv_id, queue.rcv_key) for command in (cmd.GET(), cmd.SUB())]
    replies = await r.smp.send_many(both)
    assert replies in ([OK(), err(CommandError.PROHIBITED)], [err(CommandError.PROHIBITED), sok(r)])
    assert await s.send(queue, b"1") == OK()
    if replies[1] == sok(r):
        assert await r.text(queue) == b"1"
    else:
        assert body_of(queue, await r.do(cmd.GET(), queue.rcv_id, queue.rcv_key)) == b"1"
        await r.silence()
