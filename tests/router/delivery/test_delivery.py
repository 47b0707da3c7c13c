"""Events for subscriptions that are over, or come twice."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tests.router.fleet import Fleet, err, sok
from tests.router.notifier import nkey
from tests.router.session.test_outgoing import client_of
from weir.redis.connection import ReplyError
from weir.redis.errors import UNAVAILABLE
from weir.router.delivery import delivery
from weir.router.store.records import (
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    Held,
    MsgEvent,
    NtfEvent,
    Owner,
    QueueRecord,
)
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import END, MSG, OK


async def test_events_of_an_earlier_subscription_are_dropped(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    client = client_of(fleet, 0, queue)
    gen = client.subscriptions.queues[queue.rcv_id].gen
    on_event = fleet[0].router.delivery.on_event
    entry = Entry(bytes(24), 0, 0)
    for old in (
        EndEvent(queue.rcv_id, client.id, gen - 1),
        DeldEvent(queue.rcv_id, client.id, gen - 1),
        MsgEvent(queue.rcv_id, entry, client.id, gen - 1),
        MsgEvent(queue.rcv_id, entry, client.id + 100, gen),
        EndsEvent(bytes(24), client.id, gen),
        NtfEvent(bytes(24), client.id, gen),
    ):
        on_event(old)
    await r.silence()
    assert await s.send(queue, b"1") == OK()
    assert await r.text(queue) == b"1"


async def test_the_same_event_twice_is_one_message(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    client = client_of(fleet, 0, queue)
    sub = client.subscriptions.queues[queue.rcv_id]
    assert await s.send(queue, b"1") == OK()
    event = await r.event()
    assert isinstance(event.reply, MSG)
    entry = Entry(event.reply.msg_id, 0, 0)
    again = MsgEvent(queue.rcv_id, entry, client.id, sub.gen)
    fleet[0].router.delivery.on_event(again)
    await r.silence()
    assert await r.ack(queue, event.reply.msg_id) == OK()
    fleet[0].router.delivery.on_event(again)
    fleet[0].router.delivery.deliver(Owner(client.id, sub.gen), queue.rcv_id, entry, b"body")
    await r.silence()


async def test_a_message_given_up_to_a_new_subscriber_is_not_sent_to_the_old(fleet: Fleet) -> None:
    """The message was on its way from Redis when the other client subscribed."""
    r1, r2, s = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    for _ in range(20):
        queue = await r1.new(subscribe=False)
        assert await s.send(queue, b"1") == OK()
        first, second = await asyncio.gather(r1.sub(queue), r2.sub(queue))
        assert first == second == sok(r1)
        events = [await r1.event(), await r2.event()]
        names = [type(event.reply).__name__ for event in events]
        assert "MSG" in names
        if names == ["MSG", "MSG"]:  # the first had it before it was displaced
            names.append(type((await r1.event() if r2.smp.events.empty() else await r2.event()).reply).__name__)
        assert "END" in names


async def test_release_of_many_subscriptions(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queues = await asyncio.gather(*(r.new() for _ in range(600)))
    await r.close()
    async with asyncio.timeout(20):
        while fleet[0].router._tasks:
            await asyncio.sleep(0.01)
    for queue in queues[::100]:
        assert await s.sub(queue) == sok(s)
    await s.silence()


async def test_subscriptions_are_asserted_until_redis_takes_them(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    r = await fleet.client(0)
    queue = await r.new()
    router = fleet[0].router
    asserted: list[bytes] = []
    refusals = [ReplyError("OOM command not allowed"), ReplyError("OOM command not allowed")]

    async def reassert(subs: Iterable[Held], expire_before: int) -> None:
        if refusals:
            raise refusals.pop()
        asserted.extend(sub.rcv_id for sub in subs)

    monkeypatch.setattr(router.store.subscriptions, "reassert", reassert)
    monkeypatch.setattr(delivery, "_RETRY", 0.01)
    router.reassert()
    async with asyncio.timeout(5):
        while not asserted:
            await asyncio.sleep(0.01)
    assert asserted == [queue.rcv_id]


async def test_a_sub_that_got_no_answer_ends_with_no_end(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis was away, and the SUB did not reach it. When Redis is back, the queue still has its former subscriber.

    END would say that another client took the queue; a client that hears END does not subscribe again.
    """
    r, late = await fleet.client(0), await fleet.client(0)
    queue = await r.new()

    def not_reached(recs: Sequence[QueueRecord], *rest: Any) -> None:
        for place in range(len(recs)):
            rest[-1](place, UNAVAILABLE)

    with monkeypatch.context() as patch:
        patch.setattr(fleet[0].store.subscriptions, "sub_many", not_reached)
        assert await late.sub(queue) == err(Simple.INTERNAL)
    await fleet[0].router.delivery.reassert()
    await late.silence()
    assert await late.send(queue, b"1") == OK()
    assert await r.text(queue) == b"1"
    assert await late.sub(queue) == sok(late)
    await fleet[0].router.delivery.reassert()
    assert (await r.event()).reply == END()
    await late.silence()


async def test_an_nsub_that_got_no_answer_ends_with_no_end(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    n, late = await fleet.client(0), await fleet.client(0)
    notifier = await nkey(n, await n.new())
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n)
    with monkeypatch.context() as patch:
        patch.setattr(fleet[0].store.notifications, "nsub", lambda *args: args[-1](UNAVAILABLE))
        assert await late.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == err(Simple.INTERNAL)
    await fleet[0].router.delivery.reassert()
    await late.silence()
    assert await late.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(late)
    await fleet[0].router.delivery.reassert()
    assert (await n.event()).reply == END()
    await late.silence()
