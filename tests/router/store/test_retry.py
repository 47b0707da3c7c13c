"""An answer that is lost between Redis and the edge costs nothing: for every script, the second attempt answers as
the first would have, and leaves Redis as the first would have."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.redis.proxy import Proxy
from tests.router.store.default_keys import keys
from tests.router.store.harness import KEY, NOW, TODAY, TestEdge, awaited, open_edge
from tests.support.store_retry import Retries, Step
from weir.crypto.keys import generate
from weir.redis import scripts
from weir.router.store.core import LUA
from weir.router.store.records import (
    EndEvent,
    Held,
    HeldNtf,
    NewLink,
    NewNotifier,
    NewQueue,
    NtfItem,
    Owner,
    QueueRecord,
    Status,
)
from weir.wire.smp.commands import LinkData, QueueMode, ServiceRole

SERVICE, SERVICE2 = b"v" * 24, b"w" * 24
KEY2 = generate("ed448").spki
ITEM = NtfItem(NOW, b"n" * 24, b"meta")
FP, FP2 = b"f" * 32, b"g" * 32

Scenario = Callable[[TestEdge, TestEdge, "Ids"], Awaitable[Step]]
SCENARIOS: dict[str, tuple[str, Scenario]] = {}


def scenario(script: str) -> Callable[[Scenario], Scenario]:
    """Prepares something and returns the call whose answer is lost."""

    def register(prepare: Scenario) -> Scenario:
        SCENARIOS[prepare.__name__] = (script, prepare)
        return prepare

    return register


class Ids:
    """The same ids in every run."""

    def __init__(self, edge: TestEdge) -> None:
        self._random = random.Random(1)
        self._store = edge.store

    def any(self) -> bytes:
        return self._random.randbytes(24)

    def near(self, p: int) -> bytes:
        while self._store.partition(found := self.any()) != p:
            pass
        return found

    def queue(self, **given: Any) -> NewQueue:
        partition = given.pop("partition", None)
        snd_id = self.any() if partition is None else self.near(partition)
        p = self._store.partition(snd_id)
        notifier = NewNotifier(self.near(p), KEY, b"d" * 32) if given.pop("ntf", False) else None
        return NewQueue(self.near(p), snd_id, KEY, b"s" * 32, TODAY, QueueMode.CONTACT, notifier, **given)

    async def made(self, **given: Any) -> QueueRecord:
        result = await self._store.queues.new(self.queue(**given))
        assert result.record is not None, result
        return result.record


@scenario("new")
async def new(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    queue = ids.queue(
        ntf=True, owner=Owner(1, 1), link=NewLink(ids.any(), LinkData(b"f", b"u")), request=b"r", answer=b"a"
    )
    return lambda: edge.store.queues.new(queue)


@scenario("new")
async def new_with_a_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    queue = ids.queue(owner=Owner(1, epoch), service=SERVICE)
    return lambda: edge.store.queues.new(queue)


@scenario("send")
async def send(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(), ids.any()
    return lambda: edge.send(rec, msg)


@scenario("send")
async def send_delivered_here(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(owner=Owner(1, 1)), ids.any()
    return lambda: edge.send(rec, msg)


@scenario("send")
async def send_delivered_there(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(), ids.any()
    await other.sub(rec, 2, 2)
    return lambda: edge.send(rec, msg)


@scenario("send")
async def send_with_a_notification(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(ntf=True), ids.any()
    await edge.nsub(rec, 1, 1)
    return lambda: edge.send_item(rec, msg, ITEM)


@scenario("send")
async def send_at_quota(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(), ids.any()
    for _ in range(edge.store.core.config.quota):
        await edge.send(rec, ids.any())
    return lambda: edge.send(rec, msg)


@scenario("send")
async def send_stale(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(), ids.any()
    rec.rev = 7
    return lambda: edge.send(rec, msg)


@scenario("send")
async def send_to_a_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    rec, msg = await ids.made(owner=Owner(1, epoch), service=SERVICE), ids.any()
    return lambda: edge.send(rec, msg)


@scenario("ack")
async def ack(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(owner=Owner(1, 1)), ids.any()
    await edge.send(rec, msg)
    return lambda: edge.ack(rec, 1, 1, msg)


@scenario("ack")
async def ack_with_a_next_message(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(owner=Owner(1, 1))
    for _ in range(3):
        await edge.send(rec, ids.any())
    return lambda: edge.ack(rec, 1, 1)


@scenario("ack")
async def ack_of_nothing(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(owner=Owner(1, 1))
    return lambda: edge.ack(rec, 1, 1)


@scenario("ack_get")
async def ack_get(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, msg = await ids.made(), ids.any()
    await edge.send(rec, msg)
    return lambda: edge.store.messages.ack_get(rec, msg, TODAY)


@scenario("peek")
async def peek(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    await edge.send(rec, ids.any())
    return lambda: edge.store.messages.info(rec, 0)


@scenario("touch")
async def touch(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    return lambda: edge.store.queues.update_day(rec, TODAY + 1)


@scenario("fetch")
async def fetch(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    return lambda: edge.snd(rec.snd_id)


@scenario("sub")
async def sub(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    await other.sub(rec, 2, 2)
    await edge.send(rec, ids.any())
    return lambda: edge.sub(rec, 1, 1)


@scenario("sub")
async def sub_of_several(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    """In one partition: free, owned by another edge, with a message."""
    recs = [await ids.made(partition=9) for _ in range(3)]
    await other.sub(recs[1], 2, 2)
    await edge.send(recs[2], ids.any())
    return lambda: edge.sub_many(recs, 1, 1)


@scenario("nsub")
async def nsub(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    await other.nsub(rec, 2, 2)
    await edge.send_item(rec, ids.any(), ITEM)
    return lambda: edge.nsub(rec, 1, 1)


@scenario("take_ntfs")
async def take_ntfs(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    await edge.nsub(rec, 1, 1)
    for n in range(3):
        await edge.send_item(rec, ids.any(), ITEM._replace(nonce=bytes([n]) * 24))
    return lambda: edge.take(rec, 1, 1, b"\0" * 24)


@scenario("release")
async def release(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    recs = [await ids.made(owner=Owner(1, n)) for n in range(3)]
    return lambda: edge.release(1, [rec.rcv_id for rec in recs])


@scenario("reassert")
async def reassert(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(owner=Owner(1, 1))
    await edge.send(rec, ids.any())
    return lambda: edge.store.subscriptions.reassert([Held(rec.rcv_id, 1, 1, b"")], 0)


@scenario("reassert_ntfs")
async def reassert_ntfs(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    assert rec.ntf_id is not None
    await edge.nsub(rec, 1, 1)
    held = HeldNtf(rec.rcv_id, rec.ntf_id, 1, 1)
    return lambda: edge.store.notifications.reassert_ntfs([held])


@scenario("secure")
async def secure(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    return lambda: edge.store.queues.secure(rec, KEY)


@scenario("set_rcv_keys")
async def set_rcv_keys(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    return lambda: edge.store.queues.set_rcv_keys(rec, (KEY, KEY2))


@scenario("set_link")
async def set_link(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec, link = await ids.made(), ids.any()
    return lambda: edge.store.links.set_link(rec, link, LinkData(b"f", b"u"))


@scenario("delete_link")
async def delete_link(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(link=NewLink(ids.any(), LinkData(b"f", b"u")))
    return lambda: edge.store.links.delete_link(rec)


@scenario("move_link")
async def move_link(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(link=NewLink(ids.any(), LinkData(b"f", b"u")))
    return lambda: edge.store.links.delete_link(rec)


@scenario("set_notifier")
async def set_notifier(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    notifier = NewNotifier(ids.near(rec.partition), KEY, b"e" * 32)
    await other.nsub(rec, 2, 2)
    return lambda: edge.store.notifications.set_notifier(rec, notifier, 1)


@scenario("delete_notifier")
async def delete_notifier(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    await other.nsub(rec, 2, 2)
    return lambda: edge.store.notifications.delete_notifier(rec, 1)


@scenario("set_status")
async def set_status(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made()
    return lambda: edge.store.queues.suspend(rec)


@scenario("delete")
async def delete(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    await other.sub(rec, 2, 2)

    async def deleted() -> Any:
        return (await edge.store.queues.delete(rec, 1)).status

    return deleted


@scenario("claim")
async def claim(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await other.store.services.takeover(SERVICE, 2, 1)

    async def take() -> Any:
        taken = await edge.store.services.takeover(SERVICE, 1, 1)
        return taken.count

    return take


@scenario("takeover")
async def takeover(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await other.store.services.takeover(SERVICE, 2, 1)
    return lambda: edge.store.services.takeover(SERVICE, 1, 1)


@scenario("release_service")
async def release_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    return lambda: edge.store.services.release_service(SERVICE, 1, epoch)


@scenario("fold_page")
async def fold_page(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    recs = [await ids.made(owner=Owner(1, epoch), service=SERVICE) for _ in range(3)]
    await edge.store.services.release_service(SERVICE, 1, epoch)
    for rec in recs:
        await edge.send(rec, ids.any())
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch

    async def folded() -> Any:
        """Fold as an edge does: drop an entry that the edge has already."""
        return dict(await edge.fold(SERVICE, 1, epoch))

    return folded


@scenario("ntf_page")
async def ntf_page(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    await edge.nsub(rec, 1, epoch, SERVICE)
    await edge.send_item(rec, ids.any(), ITEM)

    async def page() -> Any:
        return (await edge.store.services.ntf_page(SERVICE, 1, epoch, rec.partition, 0, 10)).ntf_ids

    return page


@scenario("ensure_service")
async def ensure_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    return lambda: edge.store.registry.ensure_service(FP, ServiceRole.MESSAGING, SERVICE)


@scenario("label_service")
async def label_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.registry.ensure_service(FP, ServiceRole.MESSAGING, SERVICE)
    return lambda: edge.store.registry.set_label(SERVICE, "directory")


@scenario("count_queues")
async def count_queues(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await _forgettable(edge, ids)

    async def counts() -> int:
        return (await edge.store.stats.counts())["rcv_service_queues"]

    return counts


@scenario("rotate")
async def rotate(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.registry.ensure_service(FP, ServiceRole.MESSAGING, SERVICE)
    await edge.store.registry.ensure_service(FP2, ServiceRole.MESSAGING, SERVICE2)
    return lambda: edge.store.registry.rotate(FP, FP2)


async def _forgettable(edge: TestEdge, ids: Ids) -> None:
    await edge.store.registry.ensure_service(FP, ServiceRole.MESSAGING, SERVICE)
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    for _ in range(3):
        await ids.made(owner=Owner(1, epoch), service=SERVICE)


@scenario("forget_service")
async def forget_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await _forgettable(edge, ids)
    return lambda: edge.store.registry.forget(SERVICE)


@scenario("expire_share")
async def expire_share(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.registry.ensure_service(FP, ServiceRole.MESSAGING, SERVICE, day=TODAY - 2)
    epoch = (await edge.store.services.takeover(SERVICE, 1, 1)).epoch
    await edge.store.services.release_service(SERVICE, 1, epoch)
    return lambda: edge.store.registry.expire(SERVICE, TODAY)


@scenario("forget_service")
async def expire_service(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.registry.ensure_service(FP, ServiceRole.MESSAGING, SERVICE, day=TODAY - 2)
    return lambda: edge.store.registry.expire(SERVICE, TODAY)


@scenario("forget_page")
async def forget_page(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await _forgettable(edge, ids)

    async def forget() -> None:
        await edge.store.registry.forget(SERVICE)  # how many it let go may be counted short

    return forget


@scenario("add_stats")
async def add_stats(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.stats.add_stats({"msgSent": 5})
    return lambda: edge.store.stats.add_stats({"msgSent": 3, "qCreated": -1})


async def _sweep(edge: TestEdge) -> None:
    cursor = 0
    while True:
        swept = await edge.store.sweeper.sweep_slice(cursor)
        assert swept is not None
        cursor = swept.cursor
        if cursor == 0:
            return


@scenario("sweep_lock")
async def sweep_lock(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await ids.made()
    return lambda: _sweep(edge)


@scenario("sweep_unlock")
async def sweep_unlock(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.sweeper.sweep_slice(0)
    return lambda: edge.store.sweeper.stop_sweeping()


@scenario("expire")
async def expire(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    rec = await ids.made(ntf=True)
    for ts in (1000, 2000, 4_000_000_000):
        await edge.send_item(rec, ids.any(), ITEM._replace(ts=ts, nonce=ids.any()), ts=ts)
    return lambda: _sweep(edge)


@scenario("correct_totals")
async def correct_totals(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.send(await ids.made(ntf=True), ids.any())
    await edge.store.stats.add_stats({"messages": 5})  # as after a crash: five more than there are
    return lambda: _sweep(edge)


@scenario("publish_edge")
async def publish_edge(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    return lambda: edge.store.stats.publish_edge({"clients": 1})


@scenario("add_active")
async def add_active(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    edge.store.stats.sketches.draw = lambda: b"k" * 32  # a random one would leave another Redis each time
    return lambda: edge.store.stats.add_active([ids.any() for _ in range(3)], [ids.any()])


@scenario("sketch_key")
async def sketch_key(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    edge.store.stats.sketches.draw = lambda: b"k" * 32
    return lambda: edge.store.stats.add_active([b"q" * 24], [])


@scenario("sweep_inbox")
async def sweep_inbox(edge: TestEdge, other: TestEdge, ids: Ids) -> Step:
    await edge.store.core.ask(0, b"RPUSH", keys.inbox(0, b"dead"), b"event")
    return lambda: _sweep(edge)


# Fields that hold the time, or what is drawn.
_RANDOM = frozenset((b"w", b"created", b"a", b"until", b"fromTime", b"f" + FP, b"f" + FP2))


def passing(key: bytes) -> bool:
    """Leases, and what is there for a moment."""
    return b":e:" in key[:6] or key.startswith((keys.sweeper, keys.stats + b":"))


RETRIES = Retries(open_edge, {"quota": 3, "poll": 1000.0, "lease": 100.0}, passing, _RANDOM)


def comparable(name: str, contents: dict[bytes, Any]) -> dict[bytes, Any]:
    if name == "claim":  # the second attempt draws again: the epoch is one more
        for value in contents.values():
            if isinstance(value, dict):
                value.pop(b"e", None)
                value.pop(b"o", None)
    return contents


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_lost_answer(proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, prepare = SCENARIOS[name]

    async def prepared(edge: TestEdge, other: TestEdge) -> Step:
        return await prepare(edge, other, Ids(edge))

    whole, broken = await RETRIES.lose_an_answer(proxy, script, prepared, monkeypatch)
    assert broken.result == whole.result
    assert comparable(name, broken.contents) == comparable(name, whole.contents)
    assert broken.events == whole.events


def test_every_script_has_a_scenario() -> None:
    assert {script for script, _ in SCENARIOS.values()} == set(scripts.names(LUA))


async def test_a_message_that_was_acknowledged_before_the_retry(proxy: Proxy) -> None:
    """Stored, delivered on another edge and acknowledged there, all before the answer got lost: not stored again."""
    direct = await open_edge(f"redis://{proxy._target[0]}:{proxy._target[1]}")
    await direct.store.core.ask(0, b"FLUSHALL")
    edge = await open_edge(proxy.url)
    direct.store.leases.renew()
    rec = await direct.new(owner=Owner(1, 1))
    msg = os.urandom(24)
    proxy.refusing = True  # after the loss the edge stays away until the message is acknowledged
    proxy.lose_answer_to(edge.store.topology.scripts.shas["send"])
    sending = awaited(lambda done: edge.store.messages.send(rec, msg, NOW, False, b"body", TODAY, 0, None, b"", done))
    await direct.until(lambda: bool(direct.events))
    assert (await direct.ack(rec, 1, 1, msg)).acked == 0
    proxy.refusing = False
    assert (await sending).status.name == "OK"
    assert (await direct.store.messages.info(rec, 0)).size == 0  # type: ignore[union-attr]
    await edge.close()
    await direct.close()


@pytest.mark.parametrize("kind", ["sub", "nsub"])
async def test_a_subscription_that_another_took_before_the_retry(proxy: Proxy, kind: str) -> None:
    """The first attempt came before the other's: the other keeps the queue, and this one hears END after its answer."""
    direct = await open_edge(f"redis://{proxy._target[0]}:{proxy._target[1]}")
    await direct.store.core.ask(0, b"FLUSHALL")
    edge = await open_edge(proxy.url)
    direct.store.leases.renew()
    rec = await direct.new(ntf=True)
    await direct.send(rec)
    await direct.nsub(rec, 3, 3)
    await direct.sub(rec, 3, 3)
    proxy.refusing = True
    proxy.lose_answer_to(edge.store.topology.scripts.shas[kind])
    subscribing = asyncio.ensure_future(edge.sub(rec, 1, 1) if kind == "sub" else edge.nsub(rec, 1, 1))
    await direct.until(lambda: bool(direct.events))  # END: the first attempt has displaced it
    direct.events.clear()
    await (direct.sub(rec, 2, 2) if kind == "sub" else direct.nsub(rec, 2, 2))
    proxy.refusing = False
    result = await subscribing
    assert result.status is Status.OK
    assert (result.head if kind == "sub" else result.pending) in (None, False), "what waits is the other's"
    await edge.until(lambda: bool(edge.events))
    assert edge.events == [EndEvent(rec.rcv_id if kind == "sub" else rec.ntf_id, 1, 1)]
    assert await direct.settled() == [], "the other has it still"
    owner = await direct.store.core.ask(
        rec.partition, b"HGET", keys.queue(rec.partition, rec.rcv_id), b"o" if kind == "sub" else b"no"
    )
    assert owner == direct.store.core.token(2, 2)
    await edge.close()
    await direct.close()
