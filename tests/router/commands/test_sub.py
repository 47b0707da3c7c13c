"""SUB: displacement, the message of a subscription, batches, and END behind the answer that it ends."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.redis.proxy import Proxy
from tests.router.fleet import Fleet, Queue, body_of, err, raw_blocks, sok
from tests.router.session.test_outgoing import until
from weir.client.smp import Request
from weir.crypto.keys import generate
from weir.router.store.records import QueueRecord
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import DELD, END, MSG, OK, SOK

EDGES = [pytest.param(0, id="same edge"), pytest.param(1, id="across edges")]


@pytest.mark.parametrize("other_edge", EDGES)
async def test_switch_subscription(fleet: Fleet, other_edge: int) -> None:
    r1, r2, s = await fleet.client(0), await fleet.client(other_edge), await fleet.client(other_edge)
    queue = await r1.new()
    assert await s.send(queue, b"test1") == OK()
    assert await s.send(queue, b"test2, no ACK") == OK()
    msg_id, opened = await r1.msg(queue)
    assert isinstance(opened, RcvMsgBody) and opened.body == b"test1"
    second = await r1.ack(queue, msg_id)
    assert body_of(queue, second) == b"test2, no ACK"

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
    assert body_of(queue, event.reply) == b"for the first"
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


async def test_end_stays_behind_the_answer_in_a_block(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first SUB's answer waits for the second's; meanwhile another connection takes the first queue."""
    r, other = await fleet.client(0), await fleet.client(1)
    first, second = await r.new(subscribe=False), await r.new(subscribe=False)
    store = fleet[0].store
    sub_many, held = store.subscriptions.sub_many, list[Any]()

    def hold_second(records: Sequence[QueueRecord], *rest: Any) -> None:
        *options, on_result = rest
        places = [place for place, record in enumerate(records) if record.rcv_id != second.rcv_id]
        sub_many([records[place] for place in places], *options, lambda n, result: on_result(places[n], result))
        if len(places) < len(records):
            place = len(places)
            held.append((records[place:], *options, lambda _, result: on_result(place, result)))

    monkeypatch.setattr(store.subscriptions, "sub_many", hold_second)
    subs = [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in (first, second)]
    blocks = asyncio.create_task(raw_blocks(r, subs, 1))
    await until(lambda: bool(held))
    assert await other.sub(first) == sok(other)
    await until(lambda: fleet[0].router.stats.qSubEnd == 1)
    sub_many(*held[0])
    assert replies_for(first, await blocks) == [sok(r), END()]


async def test_end_stays_behind_the_answer_with_a_message(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    r, other, s = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"1") == OK()
    store = fleet[0].store
    body, held = store.messages.body, list[Any]()
    monkeypatch.setattr(store.messages, "body", lambda *asked: held.append(asked))
    blocks = asyncio.create_task(raw_blocks(r, [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key)], 1))
    await until(lambda: bool(held))
    await other.sub(queue)
    await until(lambda: fleet[0].router.stats.qSubEnd == 1)
    body(*held[0])
    assert replies_for(queue, await blocks) == [sok(r), END()]


def replies_for(queue: Queue, blocks: list[list[Any]]) -> list[object]:
    """The replies and events for one queue, in order."""
    return [t.reply for block in blocks for t in block if t.entity_id == queue.rcv_id]


async def test_a_repeated_sub_that_is_refused_leaves_the_subscription(fleet: Fleet) -> None:
    """The edge has the old key in its cache, so the script sees the SUB first and refuses it."""
    r, other, s = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(request=cmd.ContactReq())
    assert await r.sub(queue) == sok(r)
    key = generate("x25519")
    assert await other.do(cmd.RKEY((key.spki,)), queue.rcv_id, queue.rcv_key) == OK()
    assert await r.sub(queue) == err(Simple.AUTH)
    assert await s.send(queue, b"1") == OK()
    msg_id, _ = await r.msg(queue)
    assert await r.do(cmd.ACK(msg_id), queue.rcv_id, key) == OK()
    assert await other.do(cmd.DEL(), queue.rcv_id, key) == OK()
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    await r.silence()


async def test_a_queue_that_is_deleted_before_an_unanswered_sub(hasty: Fleet, proxy: Proxy) -> None:
    """DELD was left for the earlier subscription, and the client has got INTERNAL for the later one."""
    r, other = await hasty.client(0), await hasty.client(1)
    queue = await r.new()
    assert await r.sub(queue) == sok(r)
    proxy.hold()
    deletion = other.do(cmd.DEL(), queue.rcv_id, queue.rcv_key)
    assert await asyncio.gather(r.sub(queue), deletion) == [err(Simple.INTERNAL), OK()]
    proxy.release()
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    await r.silence()
    assert not hasty[0].router.clients[1].subscriptions.queues
