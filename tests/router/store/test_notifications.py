"""NSUB and waiting notifications."""

import os

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import NOW
from weir.router.store.records import (
    Assoc,
    DeldEvent,
    EndEvent,
    HeldNtf,
    MovedEvent,
    NsubResult,
    NtfEvent,
    NtfItem,
    Owner,
    SendResult,
    Status,
    TakenNtfs,
)
from weir.wire.smp.commands import ServiceRole


def item(ts: int = NOW) -> NtfItem:
    return NtfItem(ts, os.urandom(24), b"encrypted meta")


async def test_they_wait_for_a_notifier(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(ntf=True)
    assert await edge.nsub(rec, 1, 1) == NsubResult(Status.OK)
    await edge.release(1, [], [rec.rcv_id])
    items = [item() for _ in range(3)]
    for each in items:
        assert await edge.send_item(rec, None, each) == SendResult(Status.OK)
    assert await edge.nsub(rec, 2, 2) == NsubResult(Status.OK, pending=True)
    assert await edge.take(rec, 1, 1) == []  # another connection owns it
    assert await edge.take(rec, 2, 2) == items
    assert await edge.take(rec, 2, 2, items[1].nonce) == items[2:]
    assert await edge.take(rec, 2, 2, items[1].nonce) == items[2:]  # repeated: nothing is lost
    assert await edge.take(rec, 2, 2, items[2].nonce) == []


async def test_the_owner_is_told_once_until_it_took_them(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(ntf=True)
    await a.nsub(rec, 1, 1)
    first, second, third = item(), item(), item()
    assert await a.send_item(rec, None, first) == SendResult(Status.OK, ntf_deliver=Owner(1, 1))
    assert await a.send_item(rec, None, second) == SendResult(Status.OK)
    assert await a.take(rec, 1, 1) == [first, second]
    assert await a.take(rec, 1, 1, second.nonce) == []
    assert await b.send_item(rec, None, third) == SendResult(Status.OK)
    assert await a.settled() == [NtfEvent(rec.ntf_id, 1, 1)]


async def test_displacement(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(ntf=True)
    await a.nsub(rec, 1, 1)
    await b.nsub(rec, 2, 2)
    assert await a.settled() == [EndEvent(rec.ntf_id, 1, 1)]
    await b.nsub(rec, 2, 3)
    assert await b.settled() == []


async def test_expiry_and_the_limit(open_any: OpenEdge) -> None:
    edge = await open_any(ntf_limit=3)
    rec = await edge.new(ntf=True)
    await edge.nsub(rec, 1, 1)
    items = [item(NOW + n) for n in range(5)]
    lost = [(await edge.send_item(rec, None, each)).ntfs_lost for each in items]
    assert lost == [0, 0, 0, 1, 1]
    assert await edge.taken(rec, 1, 1, expire_before=NOW + 3) == TakenNtfs(items[3:], expired=1)
    assert await edge.take(rec, 1, 1) == items[3:]


async def test_stale_and_gone(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(ntf=True)
    stale = await edge.rcv(rec.rcv_id)
    assert stale is not None
    await edge.store.queues.suspend(rec)
    assert await edge.nsub(stale, 1, 1) == NsubResult(Status.STALE)
    await edge.store.queues.delete(rec, 1)
    assert await edge.nsub(rec, 1, 1) == NsubResult(Status.GONE)


async def test_service_association(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    service, other = os.urandom(24), os.urandom(24)
    rec = await a.new(ntf=True)
    assert await a.nsub(rec, 1, 1, service) == NsubResult(Status.FENCED)
    epoch = (await a.store.services.takeover(service, 1, 1)).epoch
    await b.nsub(rec, 3, 3)
    assert await a.nsub(rec, 1, epoch, service) == NsubResult(Status.OK, False, Assoc.NEW)
    assert await b.settled() == [EndEvent(rec.ntf_id, 3, 3)]
    assert await a.nsub(rec, 1, epoch, service) == NsubResult(Status.OK, False, Assoc.DUPLICATE)
    assert (await a.store.services.service_totals(service)).count == 1
    assert await b.send_item(rec, None, item()) == SendResult(Status.OK)
    assert await a.settled() == [NtfEvent(rec.ntf_id, 1, epoch)]
    assert (await a.store.services.service_totals(service)).ready == 1
    page = await a.store.services.ntf_page(service, 1, epoch, rec.partition, 0, 10)
    assert page.ntf_ids == [rec.ntf_id]
    assert (await a.store.services.ntf_page(service, 1, epoch + 1, rec.partition, 0, 10)).fenced
    got = await a.take(rec, 1, epoch, service=service)
    assert len(got) == 1
    assert await a.take(rec, 1, epoch, got[0].nonce, service=service) == []
    assert (await a.store.services.service_totals(service)).ready == 0

    for service_id in (service, other):
        await a.store.registry.ensure_service(os.urandom(32), ServiceRole.NOTIFIER, service_id)
    assert (await a.store.stats.counts())["ntf_service_queues"] == 1
    moved = (await b.store.services.takeover(other, 5, 1)).epoch
    a.events.clear()
    assert (await b.nsub(rec, 5, moved, other)).assoc is Assoc.UPDATED
    assert (await a.store.stats.counts())["ntf_service_queues"] == 1
    assert await a.settled() == [MovedEvent(rec.ntf_id, service, 1, epoch)]
    assert (await b.nsub(rec, 6, 1)).assoc is Assoc.REMOVED
    assert (await b.store.services.service_totals(other)).count == 0
    assert (await a.store.services.service_totals(service)).count == 0
    assert (await a.store.stats.counts())["ntf_service_queues"] == 0


async def test_deleting_the_queue_tells_the_notifiers_service(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = os.urandom(24)
    rec = await edge.new(ntf=True)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    await edge.nsub(rec, 1, epoch, service)
    await edge.store.queues.delete(rec, 2)
    assert await edge.settled() == [DeldEvent(rec.ntf_id, 1, epoch, service)]
    assert (await edge.store.services.service_totals(service)).count == 0


async def test_reassert(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    kept, waiting, displaced, deleted = [await a.new(ntf=True) for _ in range(4)]
    held = []
    for n, rec in enumerate((kept, waiting, displaced, deleted)):
        await a.nsub(rec, 1, n)
        assert rec.ntf_id is not None
        held.append(HeldNtf(rec.rcv_id, rec.ntf_id, 1, n))
    await a.send(waiting, ntf=True)
    await b.nsub(displaced, 2, 1)
    await b.store.notifications.delete_notifier(deleted, 2)
    await a.settled()
    a.events.clear()
    await a.store.notifications.reassert_ntfs(held)
    assert {type(e).__name__: e.gen for e in a.events} == {"NtfEvent": 1, "EndEvent": 2, "DeldEvent": 3}


async def test_reassert_and_another_nsub_of_the_same_connection(open_any: OpenEdge) -> None:
    """The later NSUB counts, whether it reached Redis before the assertion or never."""
    edge = await open_any()
    rec = await edge.new(ntf=True)
    assert rec.ntf_id is not None
    await edge.nsub(rec, 1, 2)
    await edge.send(rec, ntf=True)
    for gen, owner in ((1, 2), (3, 3), (2, 3)):
        await edge.store.notifications.reassert_ntfs([HeldNtf(rec.rcv_id, rec.ntf_id, 1, gen)])
        assert len(await edge.take(rec, 1, owner)) == 1
    assert [type(event).__name__ for event in await edge.settled()] == ["NtfEvent"], "one of the three was in force"
