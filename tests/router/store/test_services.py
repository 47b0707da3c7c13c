"""Services: association, exact totals, takeover, the fold over ready queues, fencing."""

import os
from hashlib import md5

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import NOW
from weir.router.store.records import (
    AckResult,
    Assoc,
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    MovedEvent,
    MsgEvent,
    NewResult,
    Owner,
    SendResult,
    Status,
    SubResult,
)
from weir.wire.smp.commands import ServiceRole


def xor(ids: list[bytes]) -> bytes:
    total = 0
    for i in ids:
        total ^= int.from_bytes(md5(i).digest(), "big")
    return total.to_bytes(16, "big")


async def test_a_service_with_no_queues(open_any: OpenEdge) -> None:
    edge = await open_any()
    taken = await edge.store.services.takeover(os.urandom(24), 1, 1)
    assert (taken.count, taken.ids_hash, taken.ready) == (0, bytes(16), 0)


async def test_the_four_cases_of_sub(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    service, other = os.urandom(24), os.urandom(24)
    for service_id in (service, other):
        await a.store.registry.ensure_service(os.urandom(32), ServiceRole.MESSAGING, service_id)
    rec = await b.new(owner=Owner(9, 1))
    assert await a.sub(rec, 1, 1, service) == SubResult(Status.FENCED)
    epoch = (await a.store.services.takeover(service, 1, 1)).epoch
    assert await a.sub(rec, 1, epoch, service) == SubResult(Status.OK, None, Assoc.NEW)
    assert await b.settled() == [EndEvent(rec.rcv_id, 9, 1)]
    assert (rec.rcv_service, rec.rev) == (service, 2)
    assert await a.rcv(rec.rcv_id) == rec
    totals = await a.store.services.service_totals(service)
    assert (totals.count, totals.ids_hash) == (1, xor([rec.rcv_id]))
    assert totals.owner == f"{a.store.edge.decode()}:1"
    assert await a.sub(rec, 1, epoch, service) == SubResult(Status.OK, None, Assoc.DUPLICATE)
    assert (await a.store.services.service_totals(service)).count == 1

    moved = (await b.store.services.takeover(other, 5, 1)).epoch
    assert await b.sub(rec, 5, moved, other) == SubResult(Status.OK, None, Assoc.UPDATED)
    assert await a.settled() == [MovedEvent(rec.rcv_id, service, 1, epoch)]
    assert (await a.store.services.service_totals(service)).ids_hash == bytes(16)
    assert (await a.store.services.service_totals(other)).count == 1
    assert (await a.store.stats.counts())["rcv_service_queues"] == 1

    assert await a.sub(rec, 2, 7) == SubResult(Status.OK, None, Assoc.REMOVED)
    assert (await b.settled())[1:] == [MovedEvent(rec.rcv_id, other, 5, moved)]
    assert (await a.store.services.service_totals(other)).count == 0
    assert await a.send(rec) == SendResult(Status.OK, Owner(2, 7))
    assert (await a.store.stats.counts())["rcv_service_queues"] == 0


async def test_moving_a_queue_oneself_is_silent(open_any: OpenEdge) -> None:
    edge = await open_any()
    service, other = os.urandom(24), os.urandom(24)
    rec = await edge.new(owner=Owner(1, 1))
    for each in (service, other):
        epoch = (await edge.store.services.takeover(each, 1, 1)).epoch
        await edge.sub(rec, 1, epoch, each)
    await edge.sub(rec, 1, 9)
    assert await edge.settled() == []


async def test_new_with_a_service(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = os.urandom(24)
    assert await edge.store.queues.new(edge.new_queue(service=service, owner=Owner(1, 1))) == NewResult(Status.FENCED)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    rec = await edge.new(service=service, owner=Owner(1, epoch))
    assert await edge.rcv(rec.rcv_id) == rec
    assert (await edge.store.services.service_totals(service)).ids_hash == xor([rec.rcv_id])
    assert await edge.send(rec) == SendResult(Status.OK, Owner(1, epoch))
    assert (await edge.store.services.service_totals(service)).ready == 1
    assert (await edge.ack(rec, 1, epoch)).status is Status.OK
    assert (await edge.store.services.service_totals(service)).ready == 0


async def test_delivery_to_the_services_owner_wherever_it_is(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    service = os.urandom(24)
    epoch = (await a.store.services.takeover(service, 1, 1)).epoch
    rec = await a.new(service=service, owner=Owner(1, epoch))
    msg = os.urandom(24)
    assert await b.send(rec, msg) == SendResult(Status.OK)
    assert await a.settled() == [MsgEvent(rec.rcv_id, Entry(msg, NOW, 0), 1, epoch)]
    assert (await a.ack(rec, 1, epoch, msg)).status is Status.OK


async def test_fold(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = os.urandom(24)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    recs = [await edge.new(service=service, owner=Owner(1, epoch)) for _ in range(120)]
    await edge.store.services.release_service(service, 1, epoch)
    waiting = {}
    for rec in recs[::2]:
        waiting[rec.rcv_id] = os.urandom(24)
        assert await edge.send(rec, waiting[rec.rcv_id]) == SendResult(Status.OK)
    taken = await edge.store.services.takeover(service, 2, 1)
    assert (taken.count, taken.ready) == (120, 60)
    assert taken.ids_hash == xor([rec.rcv_id for rec in recs])
    early = recs[0]
    second = os.urandom(24)
    # A second message before the fold gets there brings the first one at once, and not again in the fold.
    await edge.send(early, second)
    assert await edge.settled() == [MsgEvent(early.rcv_id, Entry(waiting[early.rcv_id], NOW, 0), 2, taken.epoch)]
    # A message for a queue that was empty is delivered at once.
    fresh = recs[1]
    assert (await edge.send(fresh)).deliver == Owner(2, taken.epoch)
    folded = await edge.fold(service, 2, taken.epoch, page=7)
    assert {rcv_id: entry.msg_id for rcv_id, entry in folded} == {
        rcv_id: msg for rcv_id, msg in waiting.items() if rcv_id != early.rcv_id
    }
    assert len(folded) == 59
    assert await edge.fold(service, 2, taken.epoch) == []
    page = await edge.store.services.fold_page(service, 2, taken.epoch, early.partition, 0, 100, 0, again=True)
    assert (early.rcv_id, Entry(waiting[early.rcv_id], NOW, 0)) in page.entries
    for rec in recs[::2]:
        result = await edge.ack(rec, 2, taken.epoch, waiting[rec.rcv_id])
        assert result == AckResult(Status.OK, 0, Entry(second, NOW, 0) if rec is early else None)
    assert (await edge.store.services.service_totals(service)).ready == 2


async def test_a_fold_stops_when_the_service_is_taken_over(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    service = os.urandom(24)
    first = (await a.store.services.takeover(service, 1, 1)).epoch
    rec = await a.new(service=service, owner=Owner(1, first))
    msg = os.urandom(24)
    await a.send(rec, msg)
    second = await b.store.services.takeover(service, 2, 1)
    assert second.epoch == first + 1
    assert await a.settled() == [EndsEvent(service, 1, first)]
    assert (await a.store.services.fold_page(service, 1, first, rec.partition, 0, 10, 0)).fenced
    assert await a.ack(rec, 1, first, msg) == AckResult(Status.NO_MSG)
    assert (await a.sub(rec, 1, first, service)).status is Status.FENCED
    assert await b.fold(service, 2, second.epoch) == [(rec.rcv_id, Entry(msg, NOW, 0))]
    assert (await b.ack(rec, 2, second.epoch, msg)).status is Status.OK
    assert await a.settled() == [EndsEvent(service, 1, first)]
    assert not await a.store.services.reassert_service(service, 1, first, 1)
    assert await b.store.services.reassert_service(service, 2, second.epoch, 1)


async def test_an_edge_dies_in_the_middle_of_a_fold(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    service = os.urandom(24)
    epoch = (await a.store.services.takeover(service, 1, 1)).epoch
    recs = [await a.new(service=service, owner=Owner(1, epoch)) for _ in range(20)]
    await a.store.services.release_service(service, 1, epoch)
    for rec in recs:
        await b.send(rec)
    epoch = (await a.store.services.takeover(service, 1, 1)).epoch
    acked = set()
    for p in sorted({rec.partition for rec in recs})[:5]:
        for rcv_id, entry in (await a.store.services.fold_page(service, 1, epoch, p, 0, 10, 0)).entries:
            rec = next(rec for rec in recs if rec.rcv_id == rcv_id)
            if len(acked) < 3:
                await a.ack(rec, 1, epoch, entry.msg_id)
                acked.add(rcv_id)
    await a.store.leases.stop()
    taken = await b.store.services.takeover(service, 2, 1)
    folded = await b.fold(service, 2, taken.epoch)
    assert sorted(rcv_id for rcv_id, _ in folded) == sorted(rec.rcv_id for rec in recs if rec.rcv_id not in acked)


async def test_deleted_during_the_fold(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = os.urandom(24)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    recs = [await edge.new(service=service, owner=Owner(1, epoch)) for _ in range(10)]
    await edge.store.services.release_service(service, 1, epoch)
    for rec in recs:
        await edge.send(rec)
    taken = await edge.store.services.takeover(service, 1, 1)
    await edge.store.queues.delete(recs[3], 8)
    assert await edge.settled() == [DeldEvent(recs[3].rcv_id, 1, taken.epoch, service)]
    folded = await edge.fold(service, 1, taken.epoch)
    assert {rcv_id for rcv_id, _ in folded} == {rec.rcv_id for rec in recs} - {recs[3].rcv_id}
    totals = await edge.store.services.service_totals(service)
    assert (totals.count, totals.ready) == (9, 9)
    assert totals.ids_hash == xor([rec.rcv_id for rec in recs if rec is not recs[3]])


async def test_a_message_stays_in_the_queue_that_changes_hands(open_any: OpenEdge) -> None:
    """SUB with a service on a queue that has messages: it is ready, and comes with the SUB."""
    edge = await open_any()
    service = os.urandom(24)
    rec = await edge.new()
    msg = os.urandom(24)
    await edge.send(rec, msg)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    assert await edge.sub(rec, 1, epoch, service) == SubResult(Status.OK, Entry(msg, NOW, 0), Assoc.NEW)
    assert (await edge.store.services.service_totals(service)).ready == 1
    assert await edge.fold(service, 1, epoch) == []
    assert await edge.sub(rec, 2, 5) == SubResult(Status.OK, Entry(msg, NOW, 0), Assoc.REMOVED)
    assert (await edge.store.services.service_totals(service)).ready == 0


async def test_expiry_leaves_the_ready_set(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = os.urandom(24)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    recs = [await edge.new(service=service, owner=Owner(1, epoch)) for _ in range(4)]
    for rec in recs:
        await edge.send(rec)
    await edge.sub(recs[0], 1, epoch, service, expire_before=NOW + 1)
    await edge.ack(recs[1], 1, epoch, expire_before=NOW + 1)
    assert await edge.store.messages.peek(recs[2], NOW + 1) is None
    assert (await edge.store.services.service_totals(service)).ready == 1
    for p in range(64):
        await edge.store.services.fold_page(service, 1, epoch, p, 0, 10, NOW + 1)
    assert (await edge.store.services.service_totals(service)).ready == 0


async def test_release_leaves_another_owner_alone(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = os.urandom(24)
    first = (await edge.store.services.takeover(service, 1, 1)).epoch
    second = (await edge.store.services.takeover(service, 2, 1)).epoch
    await edge.store.services.release_service(service, 1, first)
    assert (await edge.store.services.service_totals(service)).owner == f"{edge.store.edge.decode()}:2"
    await edge.store.services.release_service(service, 2, second)
    assert (await edge.store.services.service_totals(service)).owner is None


async def test_the_home_partition_lost_its_epochs(open_any: OpenEdge) -> None:
    """A fail-over can lose writes of one partition: the next takeover still wins everywhere."""
    edge = await open_any()
    service = os.urandom(24)
    for conn in range(1, 5):
        await edge.store.services.takeover(service, conn, 1)
    home = edge.store.partition(service)
    await edge.store.core.ask(home, b"HSET", b"{%d}:v:%b" % (home, service), b"e", 1)
    taken = await edge.store.services.takeover(service, 9, 1)
    assert taken.epoch == 5
    rec = await edge.new(service=service, owner=Owner(9, 5))
    assert (await edge.send(rec)).deliver == Owner(9, 5)
