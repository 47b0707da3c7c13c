"""SEND, ACK, GET, quota and expiry, on every kind of Redis."""

import os

import pytest

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import BODY, NOW, TODAY
from weir.router.store.records import AckResult, Entry, MsgEvent, Owner, QueueInfo, SendResult, Status

OK = SendResult(Status.OK)


async def test_send_to_nobody_is_stored(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    msg = os.urandom(24)
    assert await edge.send(rec, msg) == OK
    assert await edge.store.messages.info(rec, 0) == QueueInfo(1, Entry(msg, NOW, 0))
    assert await edge.body(rec.rcv_id, msg) == BODY


async def test_send_to_an_owner_on_this_edge_and_ack(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    first, second = os.urandom(24), os.urandom(24)
    assert await edge.send(rec, first) == SendResult(Status.OK, Owner(7, 1))
    assert await edge.send(rec, second) == OK  # one message in flight at a time
    assert await edge.ack(rec, 7, 1, first) == AckResult(Status.OK, 0, Entry(second, NOW, 0))
    assert await edge.body(rec.rcv_id, first) is None
    assert await edge.body(rec.rcv_id, second) == BODY
    assert await edge.ack(rec, 7, 1, first) == AckResult(Status.NO_MSG)
    assert await edge.ack(rec, 7, 1) == AckResult(Status.OK, 0)
    assert await edge.ack(rec, 7, 1, second) == AckResult(Status.NO_MSG)
    assert await edge.store.messages.info(rec, 0) == QueueInfo(0, None)


async def test_send_to_an_owner_on_another_edge(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(7, 1))
    msg, trace = os.urandom(24), os.urandom(25)
    assert await b.send(rec, msg, trace=trace) == OK
    await a.until(lambda: bool(a.events))
    assert a.events == [MsgEvent(rec.rcv_id, Entry(msg, NOW, 0, trace), 7, 1)]
    assert await a.body(rec.rcv_id, msg) == BODY
    assert (await a.ack(rec, 7, 1, msg)).status is Status.OK


async def test_the_event_of_a_message_that_is_delivered_at_once_says_when_it_came(open_any: OpenEdge) -> None:
    """For the time from SEND to MSG. The list of messages keeps whole seconds."""
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(7, 1))
    at = NOW + 0.123456
    first, second = os.urandom(24), os.urandom(24)
    for msg in (first, second):
        assert await b.send(rec, msg, expire_before=at - 1000) == OK
    await a.until(lambda: bool(a.events))
    [event] = a.events
    assert event == MsgEvent(rec.rcv_id, Entry(first, NOW, 0, b"", event.entry.sent), 7, 1)
    assert event.entry.sent == pytest.approx(at, abs=2e-6)
    key = a.store.core.keys.messages(rec.partition, rec.rcv_id)
    stored = await a.store.core.read(rec.partition, b"LRANGE", key, 0, -1)
    assert stored == [Entry(msg, NOW, 0).pack() for msg in (first, second)]
    assert (await a.ack(rec, 7, 1, first)).next == Entry(second, NOW, 0)


async def test_ack_only_by_whom_it_was_given_to(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    msg = os.urandom(24)
    await edge.send(rec, msg)
    for conn, gen, which in ((8, 1, msg), (7, 2, msg), (7, 1, os.urandom(24))):
        assert await edge.ack(rec, conn, gen, which) == AckResult(Status.NO_MSG)
    assert (await edge.ack(rec, 7, 1, msg)).acked == 0


async def test_flags_come_back(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1), ntf=True)
    await edge.send(rec, ntf=True)
    assert (await edge.ack(rec, 7, 1)).acked == 1


async def test_a_stale_record_changes_nothing(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    old = await edge.rcv(rec.rcv_id)
    assert old is not None
    await edge.store.queues.suspend(rec)
    msg = os.urandom(24)
    assert await edge.send(old, msg) == SendResult(Status.STALE)
    assert await edge.body(rec.rcv_id, msg) is None
    assert await edge.ack(old, 7, 1) == AckResult(Status.STALE)
    assert (await edge.sub(old, 7, 1)).status is Status.STALE
    assert await edge.store.messages.info(old, 0) is Status.STALE
    assert (await edge.store.queues.delete(rec, 7)).status is Status.OK
    assert await edge.send(rec, msg) == SendResult(Status.GONE)
    assert await edge.ack(rec, 7, 1) == AckResult(Status.GONE)
    assert await edge.store.messages.info(rec, 0) is Status.GONE


async def test_quota(open_any: OpenEdge) -> None:
    edge = await open_any(quota=3)
    rec = await edge.new()
    sent = [os.urandom(24) for _ in range(3)]
    for msg in sent:
        assert await edge.send(rec, msg) == OK
    marker = os.urandom(24)
    assert await edge.send(rec, marker, trace=os.urandom(25)) == SendResult(Status.QUOTA)
    assert await edge.send(rec) == SendResult(Status.QUOTA)
    assert (await edge.store.messages.info(rec, 0)).size == 4  # type: ignore[union-attr]
    assert await edge.body(rec.rcv_id, marker) is None
    head = (await edge.sub(rec, 7, 1)).head
    got = []
    while head is not None:
        got.append((head.msg_id, head.quota))
        assert await edge.send(rec) == SendResult(Status.QUOTA)  # until it is empty
        result = await edge.ack(rec, 7, 1, head.msg_id)
        assert result.acked == (2 if head.quota else 0)
        head = result.next
    assert got == [*((msg, False) for msg in sent), (marker, True)]
    assert await edge.send(rec) == SendResult(Status.OK, Owner(7, 1))


async def test_expiry_on_the_way(open_any: OpenEdge) -> None:
    edge = await open_any(quota=3)
    rec = await edge.new()
    for ts in (NOW, NOW + 1, NOW + 2):
        await edge.send(rec, ts=ts)
    assert await edge.send(rec, ts=NOW + 9, expire_before=NOW + 2) == SendResult(Status.OK, expired=2)
    result = await edge.sub(rec, 7, 1, expire_before=NOW + 3)
    assert result.expired == 1
    assert result.head is not None
    assert result.head.ts == NOW + 9
    await edge.send(rec, ts=NOW + 10)
    await edge.send(rec, ts=NOW + 11)
    acked = await edge.ack(rec, 7, 1, expire_before=NOW + 11)
    assert (acked.acked, acked.expired) == (0, 1)
    assert acked.next is not None
    assert acked.next.ts == NOW + 11


async def test_expiry_ends_the_quota(open_any: OpenEdge) -> None:
    edge = await open_any(quota=1)
    rec = await edge.new()
    await edge.send(rec)
    assert (await edge.send(rec)).status is Status.QUOTA
    assert await edge.send(rec, ts=NOW + 9, expire_before=NOW + 1) == SendResult(Status.OK, expired=2)


async def test_an_expired_message_in_flight_is_acknowledged(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    first, second = os.urandom(24), os.urandom(24)
    await edge.send(rec, first, ts=NOW)
    assert await edge.send(rec, second, ts=NOW + 9, expire_before=NOW + 1) == SendResult(Status.OK, expired=1)
    assert await edge.ack(rec, 7, 1, first) == AckResult(Status.OK, None, Entry(second, NOW + 9, 0))


async def test_get_and_its_ack(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    assert await edge.store.messages.peek(rec, 0) is None
    msg = os.urandom(24)
    await edge.send(rec, msg)
    assert await edge.store.messages.peek(rec, 0) == Entry(msg, NOW, 0)
    assert await edge.store.messages.ack_get(rec, os.urandom(24), TODAY) == AckResult(Status.OK)
    assert await edge.store.messages.ack_get(rec, msg, TODAY) == AckResult(Status.OK, 0)
    assert await edge.store.messages.ack_get(rec, msg, TODAY) == AckResult(Status.OK)
    assert await edge.store.messages.peek(rec, 0) is None


async def test_get_takes_what_is_in_flight_elsewhere(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    first, second = os.urandom(24), os.urandom(24)
    await edge.send(rec, first)
    await edge.send(rec, second)
    assert (await edge.store.messages.ack_get(rec, first, TODAY)).acked == 0
    assert await edge.ack(rec, 7, 1, first) == AckResult(Status.OK, None, Entry(second, NOW, 0))


async def test_bodies(open_any: OpenEdge) -> None:
    edge = await open_any()
    recs = [await edge.new() for _ in range(4)]
    ids = [os.urandom(24) for _ in recs]
    for rec, msg in zip(recs, ids, strict=True):
        await edge.send(rec, msg, body=msg * 5)
    assert [await edge.body(rec.rcv_id, msg) for rec, msg in zip(recs, ids, strict=True)] == [msg * 5 for msg in ids]
    assert await edge.body(recs[0].rcv_id, os.urandom(24)) is None


async def test_the_day_of_last_use(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()

    async def day() -> int:
        found = await edge.rcv(rec.rcv_id)
        assert found is not None
        return found.day

    await edge.send(rec, day=TODAY + 1)
    assert await day() == TODAY + 1
    await edge.sub(rec, 7, 1, day=TODAY + 2)
    assert await day() == TODAY + 2
    await edge.ack(rec, 7, 1, day=TODAY + 3)
    assert await day() == TODAY + 3
    assert await edge.store.queues.update_day(rec, TODAY + 4) is Status.OK
    assert await day() == TODAY + 4
    await edge.store.queues.delete(rec, 7)
    assert await edge.store.queues.update_day(rec, TODAY + 4) is Status.GONE
