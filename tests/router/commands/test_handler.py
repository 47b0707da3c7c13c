"""A handler: credentials that change under a command, and commands that hold back what follows."""

import asyncio
import os

import pytest

from tests.router.fleet import Fleet, err, sok
from weir.client.smp import Request
from weir.crypto.keys import KeyType, generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import MSG, OK


async def test_a_stale_record_is_fetched_and_verified_again(fleet: Fleet) -> None:
    """The other edge changes the queue; this one has it in its cache, and answers as of now."""
    here, there = await fleet.client(0), await fleet.client(1)
    queue = await here.new(request=ContactReq())
    assert await here.sub(queue) == sok(here)
    old = queue.rcv_key
    queue.rcv_key = generate("x25519")
    assert await there.do(cmd.RKEY((queue.rcv_key.spki,)), queue.rcv_id, old) == OK()
    assert await here.do(cmd.SUB(), queue.rcv_id, old) == err(Simple.AUTH), "the old key authorises nothing"
    assert await here.sub(queue) == sok(here)


@pytest.mark.parametrize("kind", ["x25519", "ed25519", "ed448"])
async def test_a_stale_send_is_sent_again_as_it_was(fleet: Fleet, kind: KeyType) -> None:
    """The other edge changes the queue between two SENDs: verified again, whole, with its flag."""
    r, s, other = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    queue = await r.new(kind, secure=True)
    for notification, body in ((False, b""), (True, b"n"), (False, os.urandom(16000)), (True, os.urandom(16048))):
        ntf_key = generate("ed25519")
        await other.do(cmd.NKEY(ntf_key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
        assert await s.send(queue, body, notification) == OK()
        reply = (await r.event()).reply
        assert isinstance(reply, MSG)
        message = queue.open(reply)
        assert isinstance(message, RcvMsgBody)
        assert (message.notification, message.body) == (notification, body)
        assert await r.ack(queue, reply.msg_id) == OK()


async def test_a_deleted_queue_is_not_there_whatever_the_cache_says(fleet: Fleet) -> None:
    here, there = await fleet.client(0), await fleet.client(1)
    queue = await here.new(secure=True)
    assert await here.send(queue, b"1") == OK()
    assert await here.text(queue) == b"1"
    assert await there.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    assert await here.send(queue, b"2") == err(Simple.AUTH)
    assert await here.ack(queue, b"x") == err(Simple.AUTH)
    assert await here.sub(queue) == err(Simple.AUTH)


async def test_a_key_that_another_edge_added_is_not_refused_from_the_cache(fleet: Fleet) -> None:
    here, there = await fleet.client(0), await fleet.client(1)
    queue = await here.new(request=ContactReq())
    assert await here.sub(queue) == sok(here)
    added = generate("ed25519")
    keys = (queue.rcv_key.spki, added.spki)
    assert await there.do(cmd.RKEY(keys), queue.rcv_id, queue.rcv_key) == OK()
    assert await here.do(cmd.SUB(), queue.rcv_id, added) == sok(here)


async def test_what_follows_waits_for_what_needs_redis_first(fleet: Fleet) -> None:
    """KEY, then SEND with that key, without waiting for answers: in this order."""
    c, r = await fleet.client(1), await fleet.client(0)
    for _ in range(10):
        queue = await r.new()
        key = generate("x25519")
        replies = await asyncio.gather(
            c.do(cmd.KEY(key.spki), queue.rcv_id, queue.rcv_key),
            c.do(cmd.SEND(False, b"1"), queue.snd_id, key),
            c.do(cmd.DEL(), queue.rcv_id, queue.rcv_key),
            c.do(cmd.SEND(False, b"2"), queue.snd_id, key),
        )
        assert replies[0] == OK() and replies[2] == OK() and replies[3] == err(Simple.AUTH)


async def test_order_while_credentials_change(fleet: Fleet) -> None:
    """Messages of one connection keep their order through STALE."""
    r, s, other = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    sent = 0

    async def send() -> None:
        nonlocal sent
        for _ in range(10):
            batch = [Request(cmd.SEND(False, b"%d" % (sent + n)), queue.snd_id) for n in range(10)]
            replies = await s.smp.send_many(batch)
            assert set(map(type, replies)) == {OK}
            sent += 10

    async def change() -> None:
        for _ in range(30):
            key = generate("ed25519")
            await other.do(cmd.NKEY(key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)

    async def receive() -> list[int]:
        found: list[int] = []
        while len(found) < 100:
            reply = (await r.event()).reply
            while isinstance(reply, MSG):
                body = queue.open(reply)
                assert isinstance(body, RcvMsgBody)
                found.append(int(body.body))
                reply = await r.ack(queue, reply.msg_id)
        return found

    _, _, found = await asyncio.gather(send(), change(), receive())
    assert found == list(range(100))


async def test_a_burst_on_queues_that_do_not_exist(fleet: Fleet) -> None:
    c = await fleet.client(0)
    key = generate("x25519")
    replies = await c.smp.send_many([Request(cmd.SUB(), os.urandom(24), key) for _ in range(300)])
    assert set(map(repr, replies)) == {repr(err(Simple.AUTH))}
    assert fleet[0].router.stats.qSubAuth == 300
