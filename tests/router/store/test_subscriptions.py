"""SUB: owners, displacement, redelivery, release, reassertion."""

import os

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import NOW, TODAY, TestEdge
from weir.router.store.records import (
    AckResult,
    Assoc,
    DeldEvent,
    EndEvent,
    Entry,
    Held,
    MsgEvent,
    Owner,
    QueueRecord,
    SendResult,
    Status,
    SubResult,
)
from weir.wire.smp import ids_hash


async def test_sub_brings_the_first_message(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    assert await edge.sub(rec, 7, 1) == SubResult(Status.OK)
    msg = os.urandom(24)
    assert (await edge.send(rec, msg)).deliver == Owner(7, 1)
    head = Entry(msg, NOW, 0)
    # Again on the same connection: the message comes again, for the new generation alone.
    assert await edge.sub(rec, 7, 2) == SubResult(Status.OK, head)
    assert await edge.ack(rec, 7, 1, msg) == AckResult(Status.NO_MSG)
    assert (await edge.ack(rec, 7, 2, msg)).status is Status.OK
    assert await edge.settled() == []


async def test_displacement(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(7, 1))
    msg = os.urandom(24)
    await a.send(rec, msg)
    head = Entry(msg, NOW, 0)
    assert await b.sub(rec, 9, 2) == SubResult(Status.OK, head)  # from another edge
    assert await a.settled() == [EndEvent(rec.rcv_id, 7, 1)]
    assert await a.ack(rec, 7, 1, msg) == AckResult(Status.NO_MSG)
    assert await b.sub(rec, 10, 3) == SubResult(Status.OK, head)  # from another connection of the same edge
    assert await b.settled() == [EndEvent(rec.rcv_id, 9, 2)]
    assert (await b.ack(rec, 10, 3, msg)).status is Status.OK
    assert a.events == [EndEvent(rec.rcv_id, 7, 1)]


async def test_a_message_that_expired_in_flight_is_in_flight_no_longer(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    await edge.send(rec, os.urandom(24))
    assert await edge.sub(rec, 9, 2, expire_before=NOW + 1) == SubResult(Status.OK, expired=1)
    queue = edge.store.core.keys.queue(rec.partition, rec.rcv_id)
    assert await edge.store.core.ask(rec.partition, b"HGET", queue, b"i") == b""
    msg = os.urandom(24)
    assert (await edge.send(rec, msg)).deliver == Owner(9, 2)
    assert (await edge.ack(rec, 9, 2, msg)).status is Status.OK


async def test_a_dead_edge_is_vacant(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(7, 1))
    await a.store.leases.stop()
    assert await b.send(rec) == SendResult(Status.OK)
    assert await b.store.core.ask(rec.partition, b"EXISTS", b"{%d}:i:%b" % (rec.partition, a.store.edge)) == 0
    assert (await b.sub(rec, 9, 1)).head is not None
    assert await b.store.core.ask(rec.partition, b"EXISTS", b"{%d}:i:%b" % (rec.partition, a.store.edge)) == 0


async def test_release(open_any: OpenEdge) -> None:
    edge = await open_any()
    mine = [await edge.new(owner=Owner(7, n), ntf=True) for n in range(150)]
    taken = await edge.new(owner=Owner(7, 1))
    await edge.sub(taken, 8, 1)
    for rec in mine[:20]:
        await edge.nsub(rec, 7, 5)
    await edge.release(7, [rec.rcv_id for rec in [*mine, taken]], [rec.rcv_id for rec in mine[:20]])
    for rec in mine[:30]:
        assert await edge.send(rec, ntf=True) == SendResult(Status.OK)
    assert (await edge.send(taken)).deliver == Owner(8, 1)
    await edge.release(7, [])


async def test_what_was_in_flight_to_a_closed_connection_comes_again(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    msg = os.urandom(24)
    await edge.send(rec, msg)
    await edge.release(7, [rec.rcv_id])
    assert (await edge.sub(rec, 8, 1)).head == Entry(msg, NOW, 0)


async def test_reassert(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    kept, missed, forgotten, displaced, deleted, known = [await a.new(owner=Owner(7, n)) for n in range(6)]
    held = [Held(rec.rcv_id, 7, n, b"") for n, rec in enumerate((kept, missed, forgotten, displaced, deleted, known))]
    # A possible state of Redis when it comes back: a message that nobody was told of, an owner lost.
    await a.release(7, [forgotten.rcv_id])
    msg, seen = os.urandom(24), os.urandom(24)
    await a.send(missed, msg)
    await a.send(known, seen)
    held[5] = held[5]._replace(msg_id=seen)
    await b.sub(displaced, 9, 1)
    await b.store.queues.delete(deleted, 9)
    await a.settled()
    a.events.clear()
    await a.store.subscriptions.reassert(held, 0)
    assert sorted(a.events, key=repr) == sorted(
        [
            MsgEvent(missed.rcv_id, Entry(msg, NOW, 0), 7, 1),
            EndEvent(displaced.rcv_id, 7, 3),
            DeldEvent(deleted.rcv_id, 7, 4),
        ],
        key=repr,
    )
    assert (await a.send(forgotten)).deliver == Owner(7, 2)
    assert (await a.ack(missed, 7, 1, msg)).status is Status.OK
    assert (await a.send(kept)).deliver == Owner(7, 0)


async def test_reassert_takes_from_the_dead(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(7, 1))
    await b.sub(rec, 9, 1)
    await b.store.leases.stop()
    await a.store.subscriptions.reassert([Held(rec.rcv_id, 7, 1, b"")], 0)
    assert (await a.send(rec)).deliver == Owner(7, 1)


async def test_reassert_leaves_a_later_sub_of_the_same_connection_alone(open_any: OpenEdge) -> None:
    """The client subscribed again while the edge asserted its subscriptions."""
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 2))
    for gen, owner in ((1, 2), (3, 3), (2, 3)):
        await edge.store.subscriptions.reassert([Held(rec.rcv_id, 7, gen, b"")], 0)
        result = await edge.send(rec)
        assert result.deliver == Owner(7, owner)
        assert (await edge.ack(rec, 7, owner)).status is Status.OK
    assert await edge.settled() == []


async def test_no_service_no_association(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    rev = rec.rev
    assert (await edge.sub(rec, 7, 1, day=TODAY)).assoc is Assoc.NONE
    assert rec.rev == rev


async def test_many_queues_in_one_call_per_partition(open_any: OpenEdge) -> None:
    edge = await open_any()
    recs = [await edge.new() for _ in range(100)]
    with_message = {5, 50, 99}
    messages = {n: os.urandom(24) for n in with_message}
    for n in with_message:
        await edge.send(recs[n], messages[n])
    calls = edge.store.round_trips
    results = await edge.sub_many(recs, 7, 1)
    assert edge.store.round_trips - calls == len({rec.partition for rec in recs})
    heads = {n: Entry(messages[n], NOW, 0) for n in with_message}
    assert results == [SubResult(Status.OK, heads.get(n)) for n in range(100)]
    assert (await edge.send(recs[0])).deliver == Owner(7, 1)
    assert (await edge.ack(recs[5], 7, 1, messages[5])).status is Status.OK


async def test_many_queues_with_different_results(open_any: OpenEdge) -> None:
    """If one queue is refused, the others of its partition get their own results."""
    a, b = await open_any(), await open_any()
    recs = [
        await a.new(snd_id=a.store.placement.draw(9), owner=Owner(3, 4) if place == 4 else None) for place in range(6)
    ]
    free, gone, stale, waiting, owned, expired = recs
    await a.store.queues.delete(gone, 1)
    stale.rev += 1
    msg = os.urandom(24)
    await a.send(waiting, msg)
    await a.send(expired, ts=NOW - 100)
    results = await b.sub_many(recs, 7, 1, expire_before=NOW - 50)
    assert results == [
        SubResult(Status.OK),
        SubResult(Status.GONE),
        SubResult(Status.STALE),
        SubResult(Status.OK, Entry(msg, NOW, 0)),
        SubResult(Status.OK),
        SubResult(Status.OK, None, Assoc.NONE, 1),
    ]
    assert await a.settled() == [EndEvent(owned.rcv_id, 3, 4)]
    assert (await b.send(free)).deliver == Owner(7, 1)
    assert (await b.send(stale)).status is Status.STALE


async def test_many_queues_join_and_leave_a_service(open_any: OpenEdge) -> None:
    """The service's count and hash are exact, also when several queues of one partition change in one call."""
    edge = await open_any()
    service, other = os.urandom(24), os.urandom(24)
    recs = [await edge.new() for _ in range(40)]
    taken = await edge.store.services.takeover(service, 1, TODAY)
    results = await edge.sub_many(recs[:30], 1, taken.epoch, service)
    assert {result.assoc for result in results} == {Assoc.NEW}
    assert [result.assoc for result in await edge.sub_many(recs[:30], 1, taken.epoch, service)] == [
        Assoc.DUPLICATE
    ] * 30
    assert await totals(edge, service) == (30, hash_of(recs[:30]))
    second = await edge.store.services.takeover(other, 2, TODAY)
    results = await edge.sub_many(recs[20:], 2, second.epoch, other)
    assert [result.assoc for result in results] == [Assoc.UPDATED] * 10 + [Assoc.NEW] * 10
    assert await totals(edge, service) == (20, hash_of(recs[:20]))
    assert await totals(edge, other) == (20, hash_of(recs[20:]))
    results = await edge.sub_many(recs[10:30], 3, 1)
    assert {result.assoc for result in results} == {Assoc.REMOVED}
    assert await totals(edge, service) == (10, hash_of(recs[:10]))
    assert await totals(edge, other) == (10, hash_of(recs[30:]))
    assert {r.status for r in await edge.sub_many(recs[:5], 1, taken.epoch + 1, service)} == {Status.FENCED}


async def totals(edge: TestEdge, service: bytes) -> tuple[int, bytes]:
    found = await edge.store.services.service_totals(service)
    return found.count, found.ids_hash


def hash_of(recs: list[QueueRecord]) -> bytes:
    return ids_hash.of_ids(rec.rcv_id for rec in recs)


async def test_a_cached_service_that_is_wrong_is_stale(open_any: OpenEdge) -> None:
    """The revision is right and the service is not, as after writes that Redis has lost."""
    edge = await open_any()
    rec = await edge.new()
    service = os.urandom(24)
    taken = await edge.store.services.takeover(service, 1, TODAY)
    rec.rcv_service = service
    assert (await edge.sub(rec, 1, taken.epoch, service)).status is Status.STALE
