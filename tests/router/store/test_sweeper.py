"""The sweeper: expires what no command comes across, one edge at a time, without holding Redis up."""

import asyncio
import os
import time
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import NOW, TestEdge
from weir.redis.errors import UNAVAILABLE
from weir.router.store.bulk import bulk_queues
from weir.router.store.records import DeldEvent, Entry, NewLink, NtfItem, Owner, QueueInfo, QueueRecord, Swept
from weir.runtime.broadcast import Task
from weir.wire.smp.commands import LinkData, ServiceRole

TODAY = int(time.time() // 86400)


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the tests may go past midnight."""
    monkeypatch.setitem(globals(), "TODAY", int(time.time() // 86400))


async def sweep(edge: TestEdge) -> Swept:
    """A whole round; the numbers of all its slices."""
    total = Swept(0, 0, 0, 0)
    cursor = 0
    while True:
        swept = await edge.store.sweeper.sweep_slice(cursor)
        assert swept is not None
        total = Swept(0, *(a + b for a, b in zip(total[1:], swept[1:], strict=True)))
        cursor = swept.cursor
        if cursor == 0:
            return total


async def test_messages_and_notifications(open_any: OpenEdge) -> None:
    edge = await open_any(message_ttl=1000, ntf_ttl=100)
    now = int(time.time())
    service = os.urandom(24)
    epoch = (await edge.store.services.takeover(service, 1, TODAY)).epoch
    rec = await edge.new(ntf=True, service=service, owner=Owner(1, epoch))
    await edge.nsub(rec, 3, 3)
    for age in (2000, 1500, 500, 10):
        item = NtfItem(now - age, os.urandom(24), b"")
        await edge.send_item(rec, None, item, ts=now - age)
    old = await edge.new(service=service, owner=Owner(1, epoch))
    await edge.send(old, ts=now - 2000)
    assert (await edge.store.services.service_totals(service)).ready == 2
    assert await sweep(edge) == Swept(0, 3, 3, 0)
    info = await edge.store.messages.info(rec, 0)
    assert isinstance(info, QueueInfo)
    assert (info.size, info.head and info.head.ts) == (2, now - 500)
    assert len(await edge.take(rec, 3, 3)) == 1
    assert (await edge.store.services.service_totals(service)).ready == 1
    assert await sweep(edge) == Swept(0, 0, 0, 0)
    assert (await edge.store.stats.counts())["messages"] == 2


async def test_queues_that_nobody_uses(open_any: OpenEdge) -> None:
    edge = await open_any(queue_ttl_days=30)
    service = os.urandom(24)
    epoch = (await edge.store.services.takeover(service, 1, TODAY - 50)).epoch
    unused, used, subscribed, of_service = [
        await edge.new(ntf=True, link=NewLink(os.urandom(24), LinkData(b"f", b"u"))) for _ in range(4)
    ]
    for rec in (unused, subscribed):
        await edge.store.queues.update_day(rec, TODAY - 31)
    await edge.sub(used, 1, 1, day=TODAY - 30)
    await edge.sub(subscribed, 2, 1, day=TODAY - 31)
    await edge.sub(of_service, 1, epoch, service, day=TODAY - 31)
    await edge.nsub(unused, 9, 9)
    assert await sweep(edge) == Swept(0, 0, 0, 1)
    assert await edge.rcv(unused.rcv_id) is None
    assert await edge.settled() == [DeldEvent(unused.ntf_id, 9, 9)]
    await edge.release(2, [subscribed.rcv_id])
    await edge.store.services.release_service(service, 1, epoch)
    assert await sweep(edge) == Swept(0, 0, 0, 2)
    assert [await edge.rcv(rec.rcv_id) is None for rec in (used, subscribed, of_service)] == [False, True, True]
    assert (await edge.store.services.service_totals(service)).count == 0


async def test_one_edge_at_a_time(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    await sweep(a)
    assert await b.store.sweeper.sweep_slice(0) is None
    await b.store.sweeper.stop_sweeping()  # the other edge keeps the lock
    assert await b.store.sweeper.sweep_slice(0) is None
    await a.store.sweeper.stop_sweeping()
    assert await b.store.sweeper.sweep_slice(0) is not None
    assert await a.store.sweeper.sweep_slice(0) is None


async def test_inboxes_of_dead_edges_go(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    for p in range(64):
        await a.store.core.ask(p, b"RPUSH", keys.inbox(p, b"dead"), b"event")
    rec = await b.new(owner=Owner(1, 1))
    b.store._arrived = lambda event: None  # type: ignore[method-assign]
    await a.send(rec)
    await sweep(a)
    for p in range(64):
        assert await a.store.core.ask(p, b"EXISTS", keys.inbox(p, b"dead")) == 0


async def test_a_round_corrects_the_numbers_of_messages_and_notifications(open_any: OpenEdge) -> None:
    edge = await open_any(queue_ttl_days=30)

    async def stored() -> tuple[int, int]:
        counts = await edge.store.stats.counts()
        return counts["messages"], counts["notifications"]

    now = int(time.time())
    recs = [await edge.new(ntf=n < 2) for n in range(5)]
    for n, rec in enumerate(recs):
        item = NtfItem(now, os.urandom(24), b"") if n < 2 else None
        await edge.send_item(rec, None, item, ts=now, day=TODAY)
    edge.store.core.unsaved.messages = edge.store.core.unsaved.notifications = (
        0  # an edge died with what it had counted
    )
    assert await stored() == (0, 0)
    await sweep(edge)
    assert await stored() == (5, 2)
    await edge.store.queues.update_day(recs[0], TODAY - 31)
    assert (await sweep(edge)).queues == 1
    assert await stored() == (4, 1)  # messages of a deleted queue are not counted


async def test_a_round_corrects_nothing_while_messages_come_and_go(open_any: OpenEdge) -> None:
    """An edge has counters that it has not saved. A correction now would count these messages twice."""
    sweeping, sending = await open_any(), await open_any()
    await sending.store.stats.publish_edge({})

    async def save(task: Task) -> None:
        await sending.store.stats.add_stats({"msgSent": 5})

    for rec in [await sending.new() for _ in range(5)]:
        await sending.send(rec, ts=int(time.time()))
    sending.store.broadcast.work = save
    await sweep(sweeping)
    assert (await sweeping.store.stats.counts())["messages"] == 5


async def test_a_round_corrects_nothing_while_an_edge_does_not_answer(
    open_any: OpenEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.router.store.store.SAVE_LIMIT", 0.05)
    sweeping, silent = await open_any(), await open_any()
    await silent.store.stats.publish_edge({})
    silent.store.broadcast.work = AsyncMock(side_effect=UNAVAILABLE)
    await silent.send(await silent.new(), ts=int(time.time()))
    await sweep(sweeping)
    await silent.store.stats.add_stats({})
    assert (await sweeping.store.stats.counts())["messages"] == 1


async def test_no_call_does_much_at_once(open_one: OpenEdge) -> None:
    """Slices hold Redis for a moment: few queues in a call, few commands in it, however much has expired."""
    edge = await open_one(message_ttl=1000)
    recs = [rec async for rec in bulk_queues(edge.store.core, 3000, day=TODAY)]
    for rcv_id, *_ in recs[:20]:
        rec = await edge.rcv(rcv_id)
        assert rec is not None
        for _ in range(128):
            edge.store.messages.send(rec, os.urandom(24), NOW, False, b"", TODAY, 0, None, b"", lambda _: None)
    await edge.settled()
    batches: list[int] = []
    call = edge.store.core.call

    def counted(p: int, name: str, script_keys: list[bytes], args: list[bytes | int]) -> "asyncio.Future[Any]":
        if name == "expire":
            batches.append(len(script_keys))
        return call(p, name, script_keys, args)

    edge.store.core.call = counted  # type: ignore[method-assign,assignment]
    await edge.store.core.ask(0, b"CONFIG", b"RESETSTAT")
    assert (await sweep(edge)).messages == 20 * 128
    assert sum(batches) >= 3000
    assert max(batches) <= 20
    info = (await edge.store.core.ask(0, b"INFO", b"commandstats")).decode()
    calls = {
        line[8:].split(":")[0]: int(line.split("calls=")[1].split(",")[0]) for line in info.split() if "calls=" in line
    }
    assert calls["scan"] >= 3000 * 2 / 1000
    inner = sum(n for name, n in calls.items() if name not in ("evalsha", "scan", "info", "set", "get"))
    assert inner < 4 * 3000  # a record and its list each, and a few more where something has expired


async def test_a_damaged_queue_does_not_stop_the_others(open_any: OpenEdge) -> None:
    """Each round leaves it out and counts it. A round that removes nothing corrects the totals to those of all other
    queues."""
    edge = await open_any(message_ttl=1000, queue_ttl_days=30)
    now = int(time.time())
    recs = [await edge.new() for _ in range(60)]
    for rec in recs:
        await edge.send(rec, ts=now - 2000, day=TODAY)
        await edge.send(rec, ts=now - 10, day=TODAY)
    no_list, no_day, *good = recs
    core, p = edge.store.core, no_list.partition
    await core.ask(p, b"SET", keys.messages(p, no_list.rcv_id), b"not a list")
    await core.ask(no_day.partition, b"HSET", keys.queue(no_day.partition, no_day.rcv_id), b"u", b"no day")
    for _ in range(2):
        swept = await sweep(edge)
        assert swept.damaged == 2
    counts = await edge.store.stats.counts()
    assert (counts["messages"], counts["notifications"]) == (len(good), 0)
    for rec in good:
        info = await edge.store.messages.info(rec, 0)
        assert isinstance(info, QueueInfo) and info.size == 1


async def test_twenty_thousand_expired_messages(open_any: OpenEdge) -> None:
    edge = await open_any(message_ttl=1000, quota=100_000)
    rec = await edge.new()
    assert await _fill(edge, rec, 20_000, ts=int(time.time()) - 2000) == 20_000
    assert (await sweep(edge)).messages == 20_000
    assert await _bodies(edge, rec) == 0
    assert (await edge.send(rec)).status.name == "OK"


async def _fill(edge: TestEdge, rec: QueueRecord, count: int, ts: int) -> int:
    """Messages as SEND stores them, many at once."""
    p, ids = rec.partition, [n.to_bytes(24, "big") for n in range(count)]
    calls = [edge.store.core.ask(p, b"SET", keys.body(p, msg_id), b"body") for msg_id in ids]
    for at in range(0, count, 1000):
        entries = [Entry(msg_id, ts, 0).pack() for msg_id in ids[at : at + 1000]]
        calls.append(edge.store.core.ask(p, b"RPUSH", keys.messages(p, rec.rcv_id), *entries))
    await asyncio.gather(*calls)
    return await _bodies(edge, rec)


async def _bodies(edge: TestEdge, rec: QueueRecord) -> int:
    return len(await edge.store.core.ask(rec.partition, b"KEYS", b"{%d}:b:*" % rec.partition))


@pytest.mark.parametrize("command", ["SEND", "SUB", "ACK", "QUE"])
async def test_expired_messages_that_a_command_finds(open_one: OpenEdge, command: str) -> None:
    edge = await open_one(quota=100_000)
    rec = await edge.new(owner=Owner(1, 1))
    await edge.send(rec, ts=NOW - 2)
    await _fill(edge, rec, 20_000, ts=NOW - 2)
    if command == "SEND":
        sent = await edge.send(rec, expire_before=NOW - 1)
        assert sent.expired == 20_001
    elif command == "SUB":
        assert (await edge.sub(rec, 2, 2, expire_before=NOW - 1)).expired == 20_001
    elif command == "ACK":
        assert (await edge.ack(rec, 1, 1, expire_before=NOW - 1)).expired == 20_000
    else:
        assert await edge.store.messages.info(rec, NOW - 1) == QueueInfo(0, None)
    # A body that was acknowledged stays for a late retry, without its contents; SEND's own body stays.
    assert await _bodies(edge, rec) == (command in ("SEND", "ACK"))


async def test_a_page_of_nine_thousand_notifiers(open_one: OpenEdge) -> None:
    edge = await open_one()
    service = os.urandom(24)
    epoch = (await edge.store.services.takeover(service, 1, TODAY)).epoch
    ids = {n.to_bytes(24, "big") for n in range(9000)}
    await edge.store.core.ask(7, b"SADD", keys.service_ready(7, service), *ids)
    found: set[bytes] = set()
    cursor: int | None = 0
    while cursor is not None:
        page = await edge.store.services.ntf_page(service, 1, epoch, 7, cursor, 10_000)
        found |= set(page.ntf_ids)
        cursor = page.cursor
    assert found == ids


async def service_seen(edge: TestEdge, day: int | None) -> bytes:
    """A service that somebody connected as on that day and took over, and that has no owner now."""
    found = await edge.store.registry.ensure_service(os.urandom(32), ServiceRole.MESSAGING, os.urandom(24), day=day)
    assert isinstance(found, bytes)
    taken = await edge.store.services.takeover(found, 1, TODAY)
    await edge.store.services.release_service(found, 1, taken.epoch)
    return found


async def services(edge: TestEdge) -> set[bytes]:
    return {info.service_id for info in await edge.store.registry.list_services()}


async def test_services_without_queues_and_sessions_go(open_any: OpenEdge) -> None:
    """Anybody can make services, with a new certificate each. Those of the operator stay."""
    a, b = await open_any(), await open_any()
    fresh, yesterday, unused, registered = [await service_seen(a, day) for day in (TODAY, TODAY - 1, TODAY - 2, None)]
    with_queue, owned = await service_seen(a, TODAY - 9), await service_seen(a, TODAY - 9)
    epoch = (await a.store.services.takeover(with_queue, 2, TODAY)).epoch
    await a.new(service=with_queue, owner=Owner(2, epoch))
    await a.store.services.release_service(with_queue, 2, epoch)
    await b.store.services.takeover(owned, 3, TODAY)
    await sweep(a)
    assert await services(a) == {fresh, yesterday, registered, with_queue, owned}
    left = [await a.store.core.ask(p, b"EXISTS", keys.service(p, unused)) for p in range(64)]
    assert sum(left) == 0
    (fingerprint,) = (await a.store.registry.list_services())[0].fingerprints
    assert await a.store.registry.find_service(fingerprint) is not None
    await b.store.leases.stop()
    a.store.sweeper._services_day = 0
    await sweep(a)
    assert await services(a) == {fresh, yesterday, registered, with_queue}, "its session is gone"


async def test_a_service_that_somebody_uses_again_stays(open_any: OpenEdge) -> None:
    """The sweeper finds it unused; then a client connects as the service."""
    edge = await open_any()
    fingerprint, service = os.urandom(32), os.urandom(24)
    registry = edge.store.registry
    await registry.ensure_service(fingerprint, ServiceRole.MESSAGING, service, day=TODAY - 5)
    totals = edge.store.services.service_totals

    async def and_then_connect(service_id: bytes) -> Any:
        found = await totals(service_id)
        await registry.ensure_service(fingerprint, ServiceRole.MESSAGING, os.urandom(24), day=TODAY)
        return found

    edge.store.services.service_totals = and_then_connect  # type: ignore[method-assign]
    await sweep(edge)
    edge.store.services.service_totals = totals  # type: ignore[method-assign]
    assert await services(edge) == {service}
