"""DEL: the subscriber of a deleted queue gets DELD, whether or not DEL was answered."""

import os
import signal

import pytest

from tests.redis.proxy import Proxy
from tests.router.fleet import Fleet, Peer, err, sok
from tests.router.notifier import nkey
from tests.router.service import credentials, service_id, subs
from weir.crypto.keys import KeyPair
from weir.redis.embedded import Embedded
from weir.router.store.records import DeleteResult, QueueRecord
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, DELD, ENDS, OK, SOKS
from weir.wire.versions import VersionRange


async def test_deletion_by_another_connection(fleet: Fleet) -> None:
    r = await fleet.client(0)
    old = await fleet.client(0, versions=VersionRange(6, 9))
    other = await fleet.client(1)
    queue, old_queue = await r.new(), await old.new()
    assert await other.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    assert await other.do(cmd.DEL(), old_queue.rcv_id, old_queue.rcv_key) == OK()
    event = await old.event()
    assert event.entity_id == old_queue.rcv_id and type(event.reply).__name__ == "END", "before version 10"
    await other.silence()


def stopped_at_deletion(fleet: Fleet, server: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis stops right before the next deletion of the first edge."""
    queues = fleet[0].store.queues
    delete = queues.delete

    async def stopped(record: QueueRecord, conn: int | None) -> DeleteResult:
        os.kill(server.pid, signal.SIGSTOP)
        return await delete(record, conn)

    monkeypatch.setattr(queues, "delete", stopped)


async def unanswered(peer: Peer, server: Embedded, command: cmd.Command, entity_id: bytes, key: KeyPair) -> None:
    """The command gets INTERNAL, because Redis answers too late."""
    try:
        assert await peer.do(command, entity_id, key) == err(Simple.INTERNAL)
    finally:
        os.kill(server.pid, signal.SIGCONT)


async def test_an_unanswered_del_of_the_subscriber_itself(
    hasty: Fleet, server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis deletes the queue a moment after the client has got INTERNAL."""
    r = await hasty.client(0)
    queue = await r.new()
    stopped_at_deletion(hasty, server, monkeypatch)
    await unanswered(r, server, cmd.DEL(), queue.rcv_id, queue.rcv_key)
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    await r.silence()


async def test_an_unanswered_del_of_another_connection(
    hasty: Fleet, server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, deleter = await hasty.client(0), await hasty.client(1), await hasty.client(0)
    for r in (here, there):
        queue = await r.new()
        with monkeypatch.context() as patch:
            stopped_at_deletion(hasty, server, patch)
            await unanswered(deleter, server, cmd.DEL(), queue.rcv_id, queue.rcv_key)
        event = await r.event()
        assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
        await r.silence()
    await deleter.silence()


async def test_an_unanswered_del_that_was_not_done(hasty: Fleet, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edge gives the deletion up before Redis is back: the subscription stands, and nobody hears DELD."""
    r, s = await hasty.client(0), await hasty.client(1)
    queue = await r.new(secure=True)
    queues = hasty[0].store.queues
    delete = queues.delete

    async def cut_off(record: QueueRecord, conn: int | None) -> DeleteResult:
        proxy.refusing = True
        proxy.cut()
        return await delete(record, conn)

    monkeypatch.setattr(queues, "delete", cut_off)
    assert await r.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == err(Simple.INTERNAL)
    proxy.refusing = False
    assert await s.send(queue, b"still there") == OK()
    assert await r.text(queue) == b"still there"
    await r.silence()


async def test_an_answer_that_is_lost_is_asked_for_again(hasty: Fleet, proxy: Proxy) -> None:
    r = await hasty.client(0)
    queue = await r.new()
    proxy.lose_answer_to(hasty[0].store.topology.scripts.shas["delete"])
    assert await r.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    assert proxy.lost == 1
    await r.silence()


async def test_an_unanswered_del_in_a_service(hasty: Fleet, server: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service's totals follow, as ENDS shows."""
    service = credentials()
    one = await hasty.client(0, service=service)
    queues = [await one.new() for _ in range(2)]
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await subs(one, 2, hash_) == SOKS(2, hash_)
    assert (await one.event()).reply == ALLS()
    stopped_at_deletion(hasty, server, monkeypatch)
    await unanswered(one, server, cmd.DEL(), queues[0].rcv_id, queues[0].rcv_key)
    event = await one.event()
    assert (event.entity_id, event.reply) == (queues[0].rcv_id, DELD())
    two = await hasty.client(1, service=service)
    left = ids_hash.of_id(queues[1].rcv_id)
    assert await subs(two, 1, left) == SOKS(1, left)
    event = await one.event()
    assert (event.entity_id, event.reply) == (await service_id(one), ENDS(1, left))


async def test_an_unanswered_del_of_the_subscriber_to_the_notifier(
    hasty: Fleet, server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One connection may have the queue and its notifier."""
    r = await hasty.client(0)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    assert await r.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(r)
    stopped_at_deletion(hasty, server, monkeypatch)
    await unanswered(r, server, cmd.DEL(), queue.rcv_id, queue.rcv_key)
    events = [await r.event(), await r.event()]
    assert {event.entity_id for event in events} == {queue.rcv_id, notifier.ntf_id}
    assert [event.reply for event in events] == [DELD()] * 2
    await r.silence()
