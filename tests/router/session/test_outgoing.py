"""Slow readers cost ids, not bodies; nobody waits for them; nothing is forgotten."""

import asyncio

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err, sok
from tests.router.service import service_id, subs
from weir.client.smp import Request
from weir.router.session.session import Session
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import ALLS, END, MSG, OK, SOKS

BODY = bytes(16000)


def client_of(fleet: Fleet, edge: int, queue: Queue) -> Session:
    """The edge's side of the connection that is subscribed to this queue."""
    return next(c for c in fleet[edge].router.clients.values() if queue.rcv_id in c.subscriptions.queues)


async def until(condition: object, limit: float = 10.0) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.01)


async def collect(peer: Peer, queues: list[Queue]) -> dict[bytes, bytes]:
    """One message of each queue, acknowledged."""
    found: dict[bytes, bytes] = {}
    by_id = {queue.rcv_id: queue for queue in queues}
    while len(found) < len(queues):
        event = await peer.event()
        assert isinstance(event.reply, MSG), event
        body = by_id[event.entity_id].open(event.reply)
        assert isinstance(body, RcvMsgBody) and event.entity_id not in found
        found[event.entity_id] = body.body
        assert await peer.ack(by_id[event.entity_id], event.reply.msg_id) == OK()
    return found


@pytest.mark.parametrize("sender_edge", [0, 1])
async def test_messages_for_a_client_that_does_not_read(fleet: Fleet, sender_edge: int) -> None:
    r, s = await fleet.client(0), await fleet.client(sender_edge)
    queues = [await r.new() for _ in range(100)]
    client = client_of(fleet, 0, queues[0])
    r.stop_reading()
    for queue in queues:
        assert await s.send(queue, BODY) == OK(), "senders do not wait"
    await until(lambda: client.outgoing.full)
    assert len(client.outgoing.waiting) > 20
    assert client.outgoing.pending_bytes < 3 * fleet.config.transport.outgoing_bytes
    assert fleet[0].gauges()["deferred"] == len(client.outgoing.waiting)
    r.read_again()
    assert set((await collect(r, queues)).values()) == {BODY}
    await r.silence()


async def test_subscribing_to_more_than_fits(fleet: Fleet) -> None:
    """SOKs come at once, messages as there is room."""
    s, r = await fleet.client(0), await fleet.client(1)
    queues = [await s.new(subscribe=False) for _ in range(100)]
    for queue in queues:
        assert await s.send(queue, BODY) == OK()
    r.stop_reading()
    replies = asyncio.create_task(r.smp.send_many([Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues]))
    await asyncio.sleep(0.3)
    client = client_of(fleet, 1, queues[0])
    await until(lambda: len(client.outgoing.waiting) > 20)
    assert client.outgoing.pending_bytes < 3 * fleet.config.transport.outgoing_bytes
    r.read_again()
    assert await replies == [sok(r)] * 100
    assert len(await collect(r, queues)) == 100


async def test_ends_are_delayed_not_lost(fleet: Fleet) -> None:
    r, s, other = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queues = [await r.new() for _ in range(100)]
    client = client_of(fleet, 0, queues[0])
    r.stop_reading()
    for queue in queues[:60]:
        assert await s.send(queue, BODY) == OK()
    await until(lambda: client.outgoing.full)
    for queue in queues[60:]:
        assert await other.sub(queue) == sok(other), "the new subscriber does not wait for the old one"
    waiting = set(client.outgoing.waiting)
    taken = [queue for queue in queues if queue.rcv_id in waiting][:5]
    assert taken
    for queue in taken:
        assert await other.sub(queue) == sok(other)
        assert (await other.event()).entity_id == queue.rcv_id, "the message goes to the new subscriber"
    r.read_again()
    ended, messages = set(), set()
    while len(ended) < 40 + len(taken):
        event = await r.event()
        if event.reply == END():
            ended.add(event.entity_id)
        else:
            assert isinstance(event.reply, MSG)
            messages.add(event.entity_id)
    assert ended == {queue.rcv_id for queue in queues[60:] + taken}
    assert not messages & {queue.rcv_id for queue in taken}, "nothing is sent for a subscription that has ended"


async def test_commands_of_a_client_that_does_not_read_are_not_read(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queues = [await r.new() for _ in range(60)]
    client = client_of(fleet, 0, queues[0])
    r.stop_reading()
    for queue in queues:
        assert await s.send(queue, BODY) == OK()
    await until(lambda: client.outgoing.full)
    pings = asyncio.create_task(r.smp.send_many([Request(cmd.PING())] * 5000))
    await asyncio.sleep(0.2)
    assert client.outgoing.pending_bytes < 4 * fleet.config.transport.outgoing_bytes
    assert len(client.incoming.blocks) < 40
    await s.smp.ping()
    r.read_again()
    assert len(await pings) == 5000
    assert len(await collect(r, queues)) == 60


async def test_a_message_whose_body_is_gone_is_passed_over(fleet: Fleet) -> None:
    """The message has expired between the script and the fetch: the next message is delivered instead."""
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    for body in (b"1", b"2", b"3"):
        assert await s.send(queue, body) == OK()
    store = fleet[0].store
    record = await store.lookups.get_rcv(queue.rcv_id)
    assert record is not None
    p = record.partition
    entries = await store.core.ask(p, b"LRANGE", b"{%d}:m:%b" % (p, queue.rcv_id), 0, -1)
    await store.core.ask(p, b"UNLINK", b"{%d}:b:%b" % (p, entries[0][:24]))
    await store.core.ask(p, b"UNLINK", b"{%d}:b:%b" % (p, entries[1][:24]))
    assert await r.sub(queue) == sok(r)
    assert await r.text(queue) == b"3"

    for body in (b"4", b"5", b"6"):
        assert await s.send(queue, body) == OK()
    msg_id, _ = await r.msg(queue)
    entries = await store.core.ask(p, b"LRANGE", b"{%d}:m:%b" % (p, queue.rcv_id), 0, -1)
    await store.core.ask(p, b"UNLINK", b"{%d}:b:%b" % (p, entries[1][:24]))
    reply = await r.ack(queue, msg_id)
    assert isinstance(reply, MSG)
    body6 = queue.open(reply)
    assert isinstance(body6, RcvMsgBody) and body6.body == b"6"
    assert await r.ack(queue, reply.msg_id) == OK()
    assert await r.ack(queue, reply.msg_id) == err(Simple.NO_MSG)


@pytest.mark.parametrize("recipient_edge", [0, 1])
async def test_round_trips(fleet: Fleet, recipient_edge: int) -> None:
    """In steady state SEND costs one call, and so does an ACK that empties its queue."""
    s, r = await fleet.client(0), await fleet.client(recipient_edge)
    queue = await r.new(secure=True)
    store = fleet[0].store

    async def calls(act: object) -> int:
        before = store.round_trips
        await act  # type: ignore[misc]
        return store.round_trips - before

    for edge in fleet.edges:
        edge.store.leases._refresh_timer.cancel()  # type: ignore[union-attr]
        edge.store.presence._poll_timer.cancel()  # type: ignore[union-attr]
        await edge.background.close()
    for _ in range(3):  # credentials and secrets are cached after the first
        assert await s.send(queue, b"1") == OK()
        assert await r.text(queue) == b"1"
    sends, acks = [], []
    for _ in range(20):
        sends.append(await calls(s.send(queue, b"1")))
        msg_id, _ = await r.msg(queue)
        if recipient_edge == 0:
            acks.append(await calls(r.ack(queue, msg_id)))
        else:
            assert await r.ack(queue, msg_id) == OK()
    assert sends == [1] * 20
    assert acks == ([1] * 20 if recipient_edge == 0 else [])


async def test_an_end_that_was_held_back_does_not_end_the_next_subscription(fleet: Fleet) -> None:
    """The answers of a block wait for one that is late. Meanwhile another client takes one of its queues, and the
    client takes the queue back with a SUB in a later block, whose answer does not wait."""
    r, other = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    outgoing = client_of(fleet, 0, queue).outgoing
    block = outgoing.barrier(queue.rcv_id)
    for _ in range(2):
        assert await other.sub(queue) == sok(other)
        await until(lambda: block.events)
        assert await r.sub(queue) == sok(r)
        assert (await other.event()).reply == END()
    outgoing.lift(block)
    await r.silence()
    assert await other.send(queue, b"1") == OK()
    assert await r.text(queue) == b"1"

    block = outgoing.barrier(queue.rcv_id)
    assert await other.sub(queue) == sok(other)
    await until(lambda: block.events)
    outgoing.lift(block)
    assert (await r.event()).reply == END()
    await r.silence()


async def test_an_ends_that_was_held_back_does_not_end_the_next_subscription(
    fleet: Fleet, service: ServiceCredentials
) -> None:
    one, other = await fleet.client(0, service=service), await fleet.client(1, service=service)
    assert isinstance(await subs(one, 0, ids_hash.EMPTY), SOKS)
    assert (await one.event()).reply == ALLS()
    (session,) = (s for s in fleet[0].router.clients.values() if s.subscriptions.service_subscribed)
    block = session.outgoing.barrier(await service_id(one))
    assert isinstance(await subs(other, 0, ids_hash.EMPTY), SOKS)
    await until(lambda: block.events)
    assert isinstance(await subs(one, 0, ids_hash.EMPTY), SOKS)
    assert (await one.event()).reply == ALLS()
    session.outgoing.lift(block)
    await one.silence()
