"""Quota, expiry, blocking, idle clients."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, err, router_config, sok
from tests.support.redis import discard, start_server
from weir.crypto.keys import generate
from weir.router.config import RouterConfig
from weir.runtime.settings import InactiveClients
from weir.wire.errors import Blocked, BlockingInfo, BlockingReason, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.message import RcvMsgBody, RcvMsgQuota
from weir.wire.smp.replies import ERR, MSG, OK, PONG
from weir.wire.versions import VersionRange

EDGES = [pytest.param(0, id="same edge"), pytest.param(1, id="across edges")]


@pytest.mark.parametrize("sender_edge", EDGES)
async def test_quota(fleet: Fleet, config: RouterConfig, sender_edge: int) -> None:
    small = Fleet(replace(config, queues=replace(config.queues, quota=2)))
    fleet.edges += [await small.add(), await small.add()]
    r, s = await fleet.client(2), await fleet.client(2 + sender_edge)
    queue = await r.new(secure=True)
    quota = err(Simple.QUOTA)
    assert await s.send(queue, b"hello 1") == OK()
    assert await s.send(queue, b"hello 2") == OK()
    assert await s.send(queue, b"hello 3") == quota
    msg_id, body = await r.msg(queue)
    assert isinstance(body, RcvMsgBody) and body.body == b"hello 1"
    reply = await r.ack(queue, msg_id)
    assert isinstance(reply, MSG)
    assert await s.send(queue, b"hello 3") == quota, "one message fewer is not enough"
    reply = await r.ack(queue, reply.msg_id)
    assert isinstance(reply, MSG) and isinstance(queue.open(reply), RcvMsgQuota)
    assert await s.send(queue, b"hello 3") == quota, "the marker is not acknowledged"
    assert await r.ack(queue, reply.msg_id) == OK()
    assert await s.send(queue, b"hello 3") == OK(), "empty: open again"
    assert await r.text(queue) == b"hello 3"
    stats = fleet[2 + sender_edge].router.stats
    assert stats.msgSentQuota == 3 and stats.msgSent == 3
    assert fleet[2].router.stats.msgRecv == 3, "the quota message is not counted"


async def test_the_quota_message_to_a_new_subscriber(fleet: Fleet, config: RouterConfig) -> None:
    small = Fleet(replace(config, queues=replace(config.queues, quota=1)))
    fleet.edges.append(await small.add())
    r, s, g = await fleet.client(2), await fleet.client(2), await fleet.client(2)
    queue = await r.new(subscribe=False, secure=True)
    assert await s.send(queue, b"1") == OK()
    assert await s.send(queue, b"2") == err(Simple.QUOTA)
    got = await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert isinstance(got, MSG)
    assert await g.ack(queue, got.msg_id) == OK()
    got = await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert isinstance(got, MSG) and isinstance(queue.open(got), RcvMsgQuota)
    assert await r.sub(queue) == sok(r)
    msg_id, body = await r.msg(queue)
    assert isinstance(body, RcvMsgQuota)
    assert await r.ack(queue, msg_id) == OK()


async def short_lived(fleet: Fleet, config: RouterConfig) -> int:
    """An edge on which messages live for a second."""
    queues = replace(config.queues, message_ttl=1.0, notification_ttl=1.0, sweep_interval=0.05)
    fleet.edges.append(await Fleet(replace(config, queues=queues)).add())
    return len(fleet.edges) - 1


async def test_expired_messages_are_dropped_by_send(fleet: Fleet, config: RouterConfig) -> None:
    edge = await short_lived(fleet, config)
    await fleet[edge].background.close()
    s, r = await fleet.client(edge), await fleet.client(edge)
    queue = await r.new(subscribe=False, secure=True)
    assert await s.send(queue, b"expires") == OK()
    await asyncio.sleep(2.1)
    assert await s.send(queue, b"stays") == OK()
    assert fleet[edge].router.stats.msgExpired == 1
    assert await r.sub(queue) == sok(r)
    assert await r.text(queue) == b"stays"
    await r.silence()


async def test_expired_messages_are_dropped_by_ack(fleet: Fleet, config: RouterConfig) -> None:
    edge = await short_lived(fleet, config)
    await fleet[edge].background.close()
    s, r = await fleet.client(edge), await fleet.client(edge)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"1") == OK()
    assert await s.send(queue, b"2") == OK()
    msg_id, _ = await r.msg(queue)
    await asyncio.sleep(2.1)
    assert await r.ack(queue, msg_id) == OK(), "the second one has expired"


async def test_the_sweeper_finds_what_nobody_touches(config: RouterConfig, tmp_path: Path) -> None:
    server = start_server()  # a Redis of its own: no other edge sweeps there
    fleet = Fleet(router_config(server.url, config.transport.identity, tmp_path))
    edge = await short_lived(fleet, fleet.config)
    s, r = await fleet.client(edge), await fleet.client(edge)
    queue = await r.new(subscribe=False, secure=True)
    key = generate("ed25519")
    await r.do(cmd.NKEY(key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
    assert await s.send(queue, b"expires", notification=True) == OK()
    stats = fleet[edge].router.stats
    async with asyncio.timeout(30):
        while not (stats.msgExpired and stats.msgNtfExpired):
            await asyncio.sleep(0.05)
    assert await r.sub(queue) == sok(r)
    await r.silence()
    await fleet.close()
    discard(server)


@pytest.mark.parametrize("edge", EDGES)
async def test_blocking(fleet: Fleet, edge: int) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"1") == OK()
    msg_id, _ = await r.msg(queue)
    info = BlockingInfo(BlockingReason.SPAM, b'{"ttl":86400}')
    assert await fleet[edge].store.queues.block(queue.snd_id, info) is not None
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, ERR(Blocked(info))), "the subscriber is told"
    blocked = err(Blocked(info))
    assert await s.send(queue, b"2") == blocked
    key = generate("x25519")
    assert queue.snd_key is not None
    assert await s.do(cmd.SKEY(queue.snd_key.spki), queue.snd_id, queue.snd_key) == blocked
    for command in (cmd.SUB(), cmd.ACK(msg_id), cmd.QUE(), cmd.KEY(key.spki), cmd.NDEL(), cmd.LDEL(), cmd.GET()):
        assert await r.do(command, queue.rcv_id, queue.rcv_key) == blocked, command
    old = await fleet.client(0, versions=VersionRange(6, 11))
    assert await old.send(queue, b"2") == err(Simple.AUTH), "before version 12"
    assert fleet[1].router.stats.msgSentBlock == 1
    assert await fleet[edge].store.queues.unblock(queue.snd_id) is not None
    assert await r.ack(queue, msg_id) == OK()
    assert await s.send(queue, b"2") == OK()
    assert await r.text(queue) == b"2"
    assert await fleet[edge].store.queues.block(queue.snd_id, info) is not None
    assert await r.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK(), "a blocked queue can be deleted"


async def test_the_day_of_last_use(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    store = fleet[0].store
    today = fleet[0].router.today()

    async def day() -> int:
        record = await store.lookups.get_rcv(queue.rcv_id)
        assert record is not None
        return record.day

    async def long_ago() -> None:
        record = await store.lookups.get_rcv(queue.rcv_id)
        assert record is not None
        await store.queues.update_day(record, 17)
        fleet[0].router.forget(record)
        fleet[1].router.forget(record)

    async def becomes_today() -> None:
        async with asyncio.timeout(5):
            while await day() != today:
                await asyncio.sleep(0.01)

    for act in (lambda: s.send(queue, b"1"), lambda: r.ack(queue, b""), lambda: r.sub(queue)):
        await long_ago()
        assert await day() == 17
        await act()
        await becomes_today()
    await long_ago()
    assert await r.do(cmd.KEY(generate("x25519").spki), queue.rcv_id, queue.rcv_key) == err(Simple.AUTH)
    await becomes_today()
    await store.queues.block(queue.snd_id, BlockingInfo(BlockingReason.CONTENT))
    await long_ago()
    for command in (cmd.GET(), cmd.QUE()):
        assert await r.do(command, queue.rcv_id, queue.rcv_key) == err(Blocked(BlockingInfo(BlockingReason.CONTENT)))
    assert await r.do(cmd.PING()) == PONG(), "which waited for both to be done"
    assert await day() == 17, "a refused command is no use of a queue"
    assert await s.send(queue, b"2") == err(Blocked(BlockingInfo(BlockingReason.CONTENT)))
    await becomes_today()


async def test_idle_clients(fleet: Fleet, config: RouterConfig) -> None:
    """Without subscriptions they are disconnected; a subscriber, a notifier and a service are not."""
    await fleet.add(inactive_clients=InactiveClients(True, 0.3, 0.1))
    idle, subscribed, getter = [await fleet.client(2) for _ in range(3)]
    queue = await subscribed.new()
    other = await idle.new(subscribe=False)
    assert await getter.do(cmd.GET(), other.rcv_id, other.rcv_key) == OK()
    async with asyncio.timeout(10):
        await idle.smp.closed.wait()
        await getter.smp.closed.wait()
    assert not subscribed.smp.closed.is_set()
    assert await (await fleet.client(1)).send(queue, b"1") == OK()
    assert await subscribed.text(queue) == b"1"
