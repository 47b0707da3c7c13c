"""Queue records: creation, credentials, links, notifiers, status, deletion."""

import os

import pytest

from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import KEY, NOW, awaited
from weir.crypto.keys import generate
from weir.router.store.records import (
    BlockedEvent,
    DeldEvent,
    DeleteResult,
    EntityStatus,
    NewLink,
    NewNotifier,
    NewResult,
    Owner,
    Status,
)
from weir.wire.errors import BlockingInfo, BlockingReason
from weir.wire.smp.commands import LinkData, QueueMode, ServiceRole

LINK = LinkData(b"fixed", b"user")


async def test_new_and_every_way_to_find_it(open_any: OpenEdge) -> None:
    edge = await open_any()
    link_id = os.urandom(24)
    rec = await edge.new(ntf=True, link=NewLink(link_id, LINK), mode=QueueMode.CONTACT)
    assert await edge.rcv(rec.rcv_id) == rec
    assert await edge.snd(rec.snd_id) == rec
    assert await awaited(lambda done: edge.store.lookups.fetch_ntf(rec.ntf_id, done)) == rec
    assert await awaited(lambda done: edge.store.links.fetch_link(link_id, done)) == rec
    assert await edge.store.links.get_link_data(rec) == LINK
    assert await edge.rcv(b"x" * 24) is None
    assert await edge.store.lookups.get_snd(rec.snd_id) == rec


@pytest.mark.parametrize("key_type", ["ed25519", "ed448", "x25519"])
async def test_keys_of_each_type_come_back(open_one: OpenEdge, key_type: str) -> None:
    edge = await open_one()
    key = generate(key_type).spki  # type: ignore[arg-type]
    new = edge.new_queue()
    new.rcv_key = key
    assert (await edge.store.queues.new(new)).status is Status.OK
    found = await edge.rcv(new.rcv_id)
    assert found is not None
    assert found.rcv_keys == (key,)


async def test_a_miss_is_one_round_trip_like_a_hit(open_one: OpenEdge) -> None:
    edge = await open_one()
    rec = await edge.new(ntf=True)
    for fetch, known in (("fetch_rcv", rec.rcv_id), ("fetch_snd", rec.snd_id), ("fetch_ntf", rec.ntf_id)):
        for entity_id, found in ((known, rec), (os.urandom(24), None)):
            calls = edge.store.round_trips
            assert await awaited(lambda done, f=fetch, i=entity_id: getattr(edge.store.lookups, f)(i, done)) == found
            assert edge.store.round_trips == calls + 1


async def test_ids_of_a_queue_share_a_partition(open_one: OpenEdge) -> None:
    edge = await open_one()
    chosen = os.urandom(24)
    for given in (None, chosen):
        rcv_id, snd_id, ntf_id = edge.store.placement.new_ids(given, True)
        assert given is None or snd_id == given
        assert ntf_id is not None
        assert len({edge.store.partition(i) for i in (rcv_id, snd_id, ntf_id)}) == 1


async def test_a_sender_id_that_the_client_chose(open_any: OpenEdge) -> None:
    edge = await open_any()
    snd_id, request = os.urandom(24), os.urandom(32)
    first = edge.new_queue(snd_id=snd_id, request=request, answer=b"IDS", link=NewLink(os.urandom(24), LINK))
    assert (await edge.store.queues.new(first)).status is Status.OK
    # The client's retry: other ids and keys of the router, the same request.
    again = edge.new_queue(snd_id=snd_id, request=request, answer=b"other", link=first.link)
    assert await edge.store.queues.new(again) == NewResult(Status.EXISTS, answer=b"IDS")
    assert await edge.rcv(again.rcv_id) is None
    other = edge.new_queue(snd_id=snd_id, request=os.urandom(32))
    assert await edge.store.queues.new(other) == NewResult(Status.DUPLICATE)
    taken = edge.new_queue(link=first.link)
    assert await edge.store.queues.new(taken) == NewResult(Status.DUPLICATE)
    without = edge.new_queue(snd_id=snd_id)
    assert await edge.store.queues.new(without) == NewResult(Status.DUPLICATE)


async def test_a_late_new_does_not_bring_a_deleted_queue_back(open_any: OpenEdge) -> None:
    """The first NEW is under way for long. Its repetition makes the queue, and DEL comes before the first one."""
    edge = await open_any()
    snd_id, request = os.urandom(24), os.urandom(32)
    late = edge.new_queue(snd_id=snd_id, request=request, answer=b"late")
    rec = await edge.new(snd_id=snd_id, request=request, answer=b"IDS")
    await edge.store.queues.delete(rec, 7)
    assert await edge.store.queues.new(late) == NewResult(Status.DUPLICATE)
    assert await edge.rcv(late.rcv_id) is None


async def test_secure(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    stale = await edge.rcv(rec.rcv_id)
    assert stale is not None
    other = generate("x25519").spki
    assert await edge.store.queues.secure(rec, KEY) is Status.OK
    assert await edge.store.queues.secure(rec, KEY) is Status.OK
    assert await edge.store.queues.secure(rec, other) is Status.CONFLICT
    assert await edge.store.queues.secure(stale, KEY) is Status.STALE
    assert await edge.rcv(rec.rcv_id) == rec
    assert rec.snd_key == KEY


async def test_several_recipient_keys(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(mode=QueueMode.CONTACT)
    keys = tuple(generate("ed25519").spki for _ in range(5))
    for chosen in (keys, keys[:2], keys[1:4], keys[:1]):
        assert await edge.store.queues.set_rcv_keys(rec, chosen) is Status.OK
        found = await edge.rcv(rec.rcv_id)
        assert found == rec
        assert rec.rcv_keys == chosen


async def test_links(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec, other = await edge.new(), await edge.new()
    link_id = os.urandom(24)
    assert await edge.store.links.get_link_data(rec) is None
    assert await edge.store.links.set_link(rec, link_id, LINK) is Status.OK
    assert await edge.store.links.set_link(rec, link_id, LinkData(b"fixed", b"changed")) is Status.OK
    assert await edge.store.links.get_link_data(rec) == LinkData(b"fixed", b"changed")
    assert await edge.store.links.set_link(rec, link_id, LinkData(b"else", b"user")) is Status.CONFLICT
    assert await edge.store.links.set_link(rec, os.urandom(24), LINK) is Status.CONFLICT
    assert await edge.store.links.set_link(other, link_id, LINK) is Status.CONFLICT
    assert await awaited(lambda done: edge.store.links.fetch_link(link_id, done)) == rec
    assert await edge.store.links.delete_link(rec) is Status.OK
    assert await edge.store.links.delete_link(rec) is Status.OK
    assert await awaited(lambda done: edge.store.links.fetch_link(link_id, done)) is None
    assert await edge.store.links.set_link(other, link_id, LINK) is Status.OK
    await edge.store.queues.delete(other, 1)
    assert await awaited(lambda done: edge.store.links.fetch_link(link_id, done)) is None
    assert await edge.store.links.set_link(rec, link_id, LINK) is Status.OK


async def test_a_link_index_left_behind_is_taken_over(open_any: OpenEdge) -> None:
    edge = await open_any()
    link_id = os.urandom(24)
    gone = edge.new_queue()
    assert await edge.store.links.claim(link_id, gone.rcv_id)  # the edge died between the claim and NEW
    rec = await edge.new()
    assert await edge.store.links.set_link(rec, link_id, LINK) is Status.OK


async def test_the_link_of_a_queue_that_two_attempts_make_at_once(open_any: OpenEdge) -> None:
    """The slower one claimed it last, before the faster one's queue was there."""
    edge = await open_any()
    snd_id, link = os.urandom(24), NewLink(os.urandom(24), LINK)
    given = {"mode": QueueMode.CONTACT, "snd_id": snd_id, "link": link, "request": b"r", "answer": b"a"}
    fast, slow = edge.new_queue(**given), edge.new_queue(**given)
    assert (await edge.store.queues.new(fast)).status is Status.OK
    p = edge.store.partition(link.link_id)
    await edge.store.core.ask(p, b"SET", keys.link(p, link.link_id), slow.rcv_id)
    assert await edge.store.queues.new(slow) == NewResult(Status.EXISTS, answer=b"a")
    found = await awaited(lambda done: edge.store.links.fetch_link(link.link_id, done))
    assert found is not None and found.rcv_id == fast.rcv_id


async def test_a_link_index_that_was_lost(open_any: OpenEdge) -> None:
    edge = await open_any()
    link = NewLink(os.urandom(24), LINK)
    rec = await edge.new(mode=QueueMode.CONTACT, link=link)
    p = edge.store.partition(link.link_id)
    await edge.store.core.ask(p, b"UNLINK", keys.link(p, link.link_id))
    assert await edge.store.links.set_link(rec, *link) is Status.OK
    found = await awaited(lambda done: edge.store.links.fetch_link(link.link_id, done))
    assert found is not None and found.rcv_id == rec.rcv_id


async def test_notifiers(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new()
    first = NewNotifier(a.store.placement.draw(rec.partition), KEY, os.urandom(32))
    assert await a.store.notifications.set_notifier(rec, first, 1) == DeleteResult(Status.OK)
    assert await a.rcv(rec.rcv_id) == rec
    await b.nsub(rec, 5, 1)
    await a.send(rec, ntf=True)
    await b.settled()
    b.events.clear()
    second = NewNotifier(a.store.placement.draw(rec.partition), KEY, os.urandom(32))
    assert await a.store.notifications.set_notifier(rec, second, 1) == DeleteResult(Status.OK, 0, 1)
    assert await b.settled() == [DeldEvent(first.ntf_id, 5, 1)]
    assert await awaited(lambda done: a.store.lookups.fetch_ntf(first.ntf_id, done)) is None
    assert await a.nsub(rec, 1, 2)
    assert (await a.store.notifications.delete_notifier(rec, 1)).status is Status.OK
    assert await a.settled() == []  # the connection that caused the event gets none
    assert await awaited(lambda done: a.store.lookups.fetch_ntf(second.ntf_id, done)) is None
    assert await a.store.notifications.delete_notifier(rec, 1) == DeleteResult(Status.OK)
    assert await a.rcv(rec.rcv_id) == rec
    assert (await a.store.stats.counts())["notifiers"] == 0


async def test_a_notifier_id_that_is_taken(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec, other = await edge.new(), await edge.new(ntf=True)
    taken = NewNotifier(other.ntf_id or b"", KEY, os.urandom(32))
    if edge.store.partition(taken.ntf_id) != rec.partition:
        rec.partition = other.partition  # the key decides; ids of other partitions do not come here
        rec.rcv_id = other.rcv_id
        rec.rev = other.rev
    assert (await edge.store.notifications.set_notifier(rec, taken, 1)).status is Status.DUPLICATE


async def test_status(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1))
    assert await edge.store.queues.suspend(rec) is Status.OK
    assert rec.status is EntityStatus.OFF
    assert await edge.rcv(rec.rcv_id) == rec
    notice = b'{"ttl":' + b"9" * 80 + b"}"
    for info in (BlockingInfo(BlockingReason.SPAM), BlockingInfo(BlockingReason.CONTENT, notice)):
        before = await edge.store.queues.block(rec.snd_id, info)
        assert before is not None
        found = await edge.snd(rec.snd_id)
        assert found is not None
        assert found.status == info
        await edge.until(lambda: bool(edge.events))
        assert edge.events.pop() == BlockedEvent(rec.rcv_id, 7, 1, info)
        assert await edge.store.queues.block(rec.snd_id, info) is not None
        assert await edge.settled() == []
    assert await edge.store.queues.unblock(rec.snd_id) is not None
    found = await edge.snd(rec.snd_id)
    assert found is not None
    assert found.status is EntityStatus.ACTIVE
    assert await edge.store.queues.block(os.urandom(24), info) is None


async def test_unblock_leaves_a_suspended_queue(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new()
    await edge.store.queues.suspend(rec)
    assert await edge.store.queues.unblock(rec.snd_id) == rec
    assert await edge.rcv(rec.rcv_id) == rec


async def test_delete(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(ntf=True, owner=Owner(7, 1), link=NewLink(os.urandom(24), LINK))
    await b.nsub(rec, 3, 4)
    ids = [os.urandom(24) for _ in range(3)]
    for msg in ids:
        await a.send(rec, msg, ntf=True)
    await b.settled()
    b.events.clear()
    assert await b.store.queues.delete(rec, 9) == DeleteResult(Status.OK, 3, 3)
    assert await a.settled() == [DeldEvent(rec.rcv_id, 7, 1)]
    assert await b.settled() == [DeldEvent(rec.ntf_id, 3, 4)]
    for msg in ids:
        assert await a.body(rec.rcv_id, msg) is None
    assert await a.rcv(rec.rcv_id) is None
    assert await a.snd(rec.snd_id) is None
    assert await a.store.queues.delete(rec, 9) == DeleteResult(Status.GONE)
    counts = await a.store.stats.counts()
    assert (counts["queues"], counts["notifiers"], counts["messages"]) == (0, 0, 3)  # b's share is not added yet
    await a.store.stats.add_stats({})
    await b.store.stats.add_stats({})
    assert (await a.store.stats.counts())["messages"] == 0


async def test_delete_by_its_own_subscriber_is_silent(open_any: OpenEdge) -> None:
    edge = await open_any()
    rec = await edge.new(owner=Owner(7, 1), ntf=True)
    await edge.nsub(rec, 7, 2)
    await edge.store.queues.delete(rec, 7)
    assert await edge.settled() == []


async def test_nothing_is_left_of_a_deleted_queue(open_one: OpenEdge) -> None:
    edge = await open_one()
    before = await edge.store.core.ask(0, b"DBSIZE")
    service = await edge.store.registry.ensure_service(os.urandom(32), ServiceRole.MESSAGING, os.urandom(24))
    assert isinstance(service, bytes)
    epoch = (await edge.store.services.takeover(service, 7, 1)).epoch
    rec = await edge.new(ntf=True, link=NewLink(os.urandom(24), LINK), request=b"r" * 32, answer=b"a")
    await edge.sub(rec, 7, epoch, service)
    await edge.send(rec, ntf=True, ts=NOW)
    await edge.store.queues.delete(rec, 7)
    await edge.store.registry.forget(service)
    for _ in range(2):  # the second drain of the inbox removes the events that the first has handled
        await edge.settled()
    left = set(await edge.store.core.ask(0, b"KEYS", b"*"))
    made = edge.store.core.keys.creation(rec.partition, rec.snd_id)
    assert await edge.store.core.ask(0, b"GET", made) == b"", "a mark by which a late NEW is refused"
    assert 0 < await edge.store.core.ask(0, b"PTTL", made) <= 600_000
    left.remove(made)
    assert len(left) == before + 1, left  # the counters of its partition
