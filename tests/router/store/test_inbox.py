"""Inboxes: nothing is lost with a poke or a connection, nothing comes twice."""

import asyncio
import os

import pytest

from tests.redis.proxy import Proxy
from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import NOW, open_edge
from weir.redis.embedded import Embedded
from weir.router.store.events import parse_event
from weir.router.store.records import (
    BlockedEvent,
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    MovedEvent,
    MsgEvent,
    NtfEvent,
    Owner,
)
from weir.wire.errors import BlockingInfo, BlockingReason

ID, SVC = b"i" * 24, b"s" * 24
ENTRY = Entry(b"m" * 24, NOW, 1, b"t" * 25)


@pytest.mark.parametrize(
    ("raw", "event"),
    [
        (b"M7:9:\x18" + ID + ENTRY.pack(), MsgEvent(ID, ENTRY, 7, 9)),
        (b"E7:9:\x18" + ID, EndEvent(ID, 7, 9)),
        (b"N7:9:\x18" + ID + b"n" * 24, NtfEvent(ID, 7, 9)),
        (b"D7:9:\x18" + ID, DeldEvent(ID, 7, 9)),
        (b"D7:9:\x18" + ID + SVC, DeldEvent(ID, 7, 9, SVC)),
        (b"V7:9:\x18" + ID + SVC + b"12", MovedEvent(ID, SVC, 7, 9)),
        (b"S7:9:\x18" + SVC, EndsEvent(SVC, 7, 9)),
        (b"B7:9:\x18" + ID + b"spam", BlockedEvent(ID, 7, 9, BlockingInfo(BlockingReason.SPAM))),
        (
            b"B7:9:\x18" + ID + b'content,{"ttl":5}',
            BlockedEvent(ID, 7, 9, BlockingInfo(BlockingReason.CONTENT, b'{"ttl":5}')),
        ),
    ],
)
def test_events(raw: bytes, event: object) -> None:
    assert parse_event(raw) == event


async def test_a_poke_brings_it_at_once_and_empties_the_inbox(open_any: OpenEdge) -> None:
    a, b = await open_any(poll=1000.0), await open_any(poll=1000.0)
    recs = [await a.new(owner=Owner(1, n)) for n in range(100)]
    for rec in recs:
        await b.send(rec)
    await a.until(lambda: len(a.events) == 100)
    assert {event.gen for event in a.events} == set(range(100))
    await a.settled()
    left = await asyncio.gather(*(a.store.core.ask(p, b"LLEN", keys.inbox(p, a.store.edge)) for p in range(64)))
    assert sum(left) == 0
    assert len(a.events) == 100


async def test_one_after_the_other_in_one_inbox(open_any: OpenEdge) -> None:
    """A handled event stays in the inbox until the next drain; the event behind it must poke even so."""
    a, b = await open_any(poll=1000.0), await open_any(poll=1000.0)
    rec = await a.new(owner=Owner(1, 1))
    for n in range(1, 20):
        await b.send(rec)
        await a.until(lambda n=n: len(a.events) == n)  # type: ignore[misc]
        event = a.events[-1]
        assert isinstance(event, MsgEvent)
        await a.ack(rec, 1, 1, event.entry.msg_id)
        assert await a.store.core.ask(rec.partition, b"LLEN", keys.inbox(rec.partition, a.store.edge)) <= 1


async def test_order_within_a_queue(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(1, 1))
    sent = [os.urandom(24) for _ in range(30)]

    async def receive() -> list[bytes]:
        got = []
        while len(got) < 30:
            await a.until(lambda: bool(a.events))
            event = a.events.pop(0)
            assert isinstance(event, MsgEvent)
            entry: Entry | None = event.entry
            while entry is not None:
                got.append(entry.msg_id)
                entry = (await a.ack(rec, 1, 1, entry.msg_id)).next
        return got

    receiving = asyncio.create_task(receive())
    for msg in sent:
        await b.send(rec, msg)
    assert await receiving == sent


async def test_more_than_a_batch(open_one: OpenEdge) -> None:
    a, b = await open_one(poll=1000.0), await open_one()
    recs = [await a.new(owner=Owner(1, n)) for n in range(40)]
    many = [rec for rec in recs if rec.partition == recs[0].partition]
    for n in range(600):
        await b.sub(many[0], 2, 1000 + n)
        await a.sub(many[0], 1, 2000 + n)
    await a.until(lambda: len(a.events) == 600)
    assert [event.gen for event in a.events][1:] == [2000 + n for n in range(599)]


async def test_a_lost_poke_costs_a_moment(proxy: Proxy, server: Embedded) -> None:
    a, b = await open_edge(server.url, poll=0.3), await open_edge(server.url)
    await a.store.presence.listener.close()
    rec = await a.new(owner=Owner(1, 1))
    await b.send(rec)
    await a.until(lambda: bool(a.events))
    await a.close()
    await b.close()


async def test_connections_that_break_all_the_time(proxy: Proxy, server: Embedded) -> None:
    a, b = await open_edge(proxy.url, poll=0.2, lease=100.0), await open_edge(server.url)
    recs = [await a.new(owner=Owner(1, n)) for n in range(300)]
    breaking = True

    async def break_it() -> None:
        n = 0
        while breaking:
            while not a.store.connected:  # a busy machine takes its time to connect
                await asyncio.sleep(0.005)
            n += 1
            if n % 3 == 0:
                proxy.lose_answer_to(b"LTRIM")
            elif n % 3 == 1:
                proxy.lose_answer_to(b"LRANGE")
            else:
                proxy.cut()
            await asyncio.sleep(0.03)

    trouble = asyncio.create_task(break_it())
    for rec in recs:
        await b.send(rec)
        await asyncio.sleep(0.002)
    await a.until(lambda: len(a.events) >= 300)
    breaking = False
    await trouble
    await a.settled()
    assert sorted(event.gen for event in a.events) == list(range(300))
    await a.close()
    await b.close()


async def test_an_inbox_that_redis_restored_from_the_past(open_one: OpenEdge) -> None:
    """Redis lost its last second: events that were handled are in the inbox again and do not come again."""
    a, b = await open_one(), await open_one()
    rec = await a.new(owner=Owner(1, 1))
    await b.send(rec)
    await a.until(lambda: bool(a.events))
    await a.settled()
    (event,) = a.events
    assert isinstance(event, MsgEvent)
    raw = b"M1:1:\x18" + rec.rcv_id + event.entry.pack()
    await b.store.core.ask(0, b"RPUSH", keys.inbox(rec.partition, a.store.edge), raw)
    a.store.core.muxes[0].drop()
    await a.until(lambda: a.restored > 0)
    assert await a.settled() == [event]
