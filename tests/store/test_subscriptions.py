"""SUB: owners, displacement, redelivery, release, reassertion."""

import os

from tests.store.conftest import OpenEdge
from tests.store.harness import NOW, TODAY
from weir.store.records import (
    AckResult,
    Assoc,
    DeldEvent,
    EndEvent,
    Entry,
    Held,
    MsgEvent,
    Owner,
    SendResult,
    Status,
    SubResult,
)


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


async def test_a_dead_edge_is_vacant(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(7, 1))
    await a.store.leases.stop()
    assert await b.send(rec) == SendResult(Status.OK)
    assert await b.store.ask(rec.partition, b"EXISTS", b"{%d}:i:%b" % (rec.partition, a.store.edge)) == 0
    assert (await b.sub(rec, 9, 1)).head is not None
    assert await b.store.ask(rec.partition, b"EXISTS", b"{%d}:i:%b" % (rec.partition, a.store.edge)) == 0


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
    # What Redis may look like when it comes back: a message that nobody was told of, an owner lost.
    await a.release(7, [forgotten.rcv_id])
    msg, seen = os.urandom(24), os.urandom(24)
    await a.send(missed, msg)
    await a.send(known, seen)
    held[5] = held[5]._replace(msg_id=seen)
    await b.sub(displaced, 9, 1)
    await b.store.delete(deleted, 9)
    await a.settled()
    a.events.clear()
    await a.store.reassert(held, 0)
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
    await a.store.reassert([Held(rec.rcv_id, 7, 1, b"")], 0)
    assert (await a.send(rec)).deliver == Owner(7, 1)


async def test_no_service_no_association(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    rev = rec.rev
    assert (await edge.sub(rec, 7, 1, day=TODAY)).assoc is Assoc.NONE
    assert rec.rev == rev
