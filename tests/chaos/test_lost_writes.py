"""A master that dies takes writes with it that no replica had: an edge has then seen more than there is."""

import time

from tests.router.fleet import Fleet, Queue, err
from tests.router.store.default_keys import keys
from tests.services.conftest import config, fleet, identity, placement, redis
from tests.services.service import Service
from weir.redis.errors import Unavailable
from weir.router.edge import Edge
from weir.router.store.records import MsgEvent, QueueRecord, SendResult, Status
from weir.wire.errors import Simple
from weir.wire.smp.message import encrypt_message
from weir.wire.smp.replies import MSG, OK

__all__ = ["config", "fleet", "identity", "placement", "redis"]


async def record_of(edge: Edge, queue: Queue) -> QueueRecord:
    record = await edge.store.lookups.get_rcv(queue.rcv_id)
    assert record is not None
    return record


async def lose_message(edge: Edge, record: QueueRecord) -> None:
    """As if the message had never been written."""
    p = record.partition
    await edge.store.core.ask(p, b"LPOP", keys.messages(p, record.rcv_id))
    await edge.store.core.ask(p, b"HSET", keys.queue(p, record.rcv_id), b"i", b"", b"io", b"")


async def test_a_message_that_was_lost_and_is_sent_again(fleet: Fleet) -> None:
    """Delivered before it was replicated, lost with its master, stored again by the sender's edge under its id."""
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"m") == OK()
    msg_id, _ = await r.msg(queue)
    record = await record_of(fleet[1], queue)
    await lose_message(fleet[1], record)
    assert await r.ack(queue, msg_id) == err(Simple.NO_MSG)

    now = int(time.time())
    body = encrypt_message(record.dh_secret, msg_id, now, False, b"m")
    results: list[SendResult | Unavailable] = []
    fleet[1].store.messages.send(record, msg_id, now, False, body, now // 86400, 0, None, b"", results.append)
    again, _ = await r.msg(queue)
    assert again == msg_id
    assert isinstance(results[0], SendResult) and results[0].status is Status.OK
    assert await r.ack(queue, msg_id) == OK()
    assert await s.send(queue, b"next") == OK()
    assert await r.text(queue) == b"next"


async def test_the_next_message_comes_before_the_answer_to_the_ack(fleet: Fleet) -> None:
    """After an outage the reassertion may find it first; then the answer is OK, and the message is not sent twice."""
    service = Service()
    session, s = await service.connect(fleet), await fleet.client(1)
    queue = await session.create()
    assert await session.resume() == []
    for body in (b"1", b"2"):
        assert await s.send(queue, body) == OK()
    msg_id, _ = await session.msg(queue)
    store, router = fleet[0].store, fleet[0].router
    client = next(client for client in router.clients.values() if client.service is not None)
    real = store.messages.ack

    def ack(*args: object) -> None:
        *rest, done = args

        def answered(result: object) -> None:
            entry = getattr(result, "next", None)
            if entry is not None and entry.msg_id != msg_id:
                router.delivery.on_event(MsgEvent(queue.rcv_id, entry, client.id, client.subscriptions.epoch or 0))
            done(result)  # type: ignore[operator]

        real(*rest, answered)  # type: ignore[arg-type]

    store.messages.ack = ack  # type: ignore[method-assign,assignment]
    reply = await session.ack(queue, msg_id)
    assert reply == OK()
    event = await session.event()
    assert isinstance(event.reply, MSG)
    store.messages.ack = real  # type: ignore[method-assign]
    sub = client.subscriptions.queues[queue.rcv_id]
    assert sub.msg_id == event.reply.msg_id, "the edge knows what the client has"
    assert await session.ack(queue, event.reply.msg_id) == OK()
    await session.silence()
