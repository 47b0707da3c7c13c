"""Redis that is slow, restarts or goes away; edges that drain, die or start badly."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from hashlib import sha3_384
from pathlib import Path
from typing import Any

import pytest

from tests.router.fleet import Fleet, Peer, body_of, err, router_config, sok
from tests.router.notifier import nkey, nmsg
from tests.router.service import credentials, service_id, subs, until_alls
from tests.router.store.default_keys import keys
from tests.support.redis import discard, start_server
from weir.crypto.keys import generate
from weir.crypto.pem import UnusableFile
from weir.redis.embedded import Embedded, start_embedded
from weir.redis.errors import StoreError
from weir.router.config import RouterConfig
from weir.router.edge import Edge
from weir.router.session.outgoing import Outgoing
from weir.router.store.records import Swept
from weir.runtime.settings import Drain
from weir.transport.server import bind
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import LinkData, MessagingReq
from weir.wire.smp.replies import ALLS, DELD, END, IDS, INFO, MSG, OK, SOKS


@pytest.fixture
def own_redis() -> Iterator[list[Embedded]]:
    """A Redis that the test may kill; the list's last one runs."""
    servers = [start_server(appendfsync="always")]
    yield servers
    discard(servers[-1])


@pytest.fixture
async def frail(config: RouterConfig, own_redis: list[Embedded], tmp_path: Path) -> AsyncIterator[Fleet]:
    """Two edges on that Redis, with short limits."""
    base = router_config(own_redis[0].url, config.transport.identity, tmp_path)
    redis = replace(base.redis, command_timeout=0.5, lease=20.0)  # a busy machine restarts Redis slowly
    fleet = Fleet(replace(base, redis=redis))
    await fleet.add()
    await fleet.add()
    yield fleet
    await fleet.close()


def restart(servers: list[Embedded]) -> None:
    """kill -9, and another process on the same files."""
    old = servers[-1]
    os.kill(old.pid, signal.SIGKILL)
    old.kill()
    servers.append(start_embedded(old.directory, appendfsync="always"))


async def usable(peer: Peer) -> None:
    """Commands that need Redis are answered again."""
    async with asyncio.timeout(20):
        while (await peer.do(cmd.SEND(False, b"x"), os.urandom(24))) == err(Simple.INTERNAL):
            await asyncio.sleep(0.1)


@contextlib.contextmanager
def stopped_at(
    monkeypatch: pytest.MonkeyPatch, concern: object, method: str, servers: list[Embedded]
) -> Iterator[asyncio.Event]:
    """Redis stops right before the first call of this method of one of the store's concerns, and goes on at the end."""
    stopped = asyncio.Event()
    call = getattr(concern, method)

    def stop(*args: object) -> None:
        if not stopped.is_set():
            stopped.set()
            os.kill(servers[-1].pid, signal.SIGSTOP)
        call(*args)

    monkeypatch.setattr(concern, method, stop)
    try:
        yield stopped
    finally:
        os.kill(servers[-1].pid, signal.SIGCONT)


async def test_a_redis_that_does_not_answer(frail: Fleet, own_redis: list[Embedded]) -> None:
    r, s = await frail.client(0), await frail.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"1") == OK()
    assert await r.text(queue) == b"1"
    os.kill(own_redis[-1].pid, signal.SIGSTOP)
    try:
        answers = await asyncio.gather(
            s.send(queue, b"2"),
            s.do(cmd.SEND(False, b"2"), os.urandom(24)),
            r.sub(queue),
            r.do(cmd.QUE(), queue.rcv_id, queue.rcv_key),
        )
        assert set(answers) == {err(Simple.INTERNAL)}, "after the limit"
        await s.smp.ping()
    finally:
        os.kill(own_redis[-1].pid, signal.SIGCONT)
    await usable(s)
    assert await s.send(queue, b"3") == OK()
    while (event := await r.event()).entity_id == queue.rcv_id:
        assert isinstance(event.reply, MSG)
        body = queue.open(event.reply)
        reply = await r.ack(queue, event.reply.msg_id)
        while isinstance(reply, MSG):
            body = queue.open(reply)
            reply = await r.ack(queue, reply.msg_id)
        if getattr(body, "body", None) == b"3":
            break
    assert not r.smp.closed.is_set() and not s.smp.closed.is_set(), "connections survive"


async def test_a_redis_whose_memory_is_full(frail: Fleet) -> None:
    """Connections stay, and all that frees memory or changes a small field works. What needs memory is answered."""
    redis = replace(frail.config.redis, lease=2.0)
    for _ in range(2):
        await frail.add(redis=redis)
    r, s, other, n = [await frail.client(edge) for edge in (2, 3, 3, 2)]
    queue, read, gone = await r.new(secure=True), await r.new(subscribe=False, secure=True), await r.new()
    notifier = await nkey(r, queue)
    service, store = await frail.client(2, service=credentials()), frail[2].store
    served = await service.new(secure=True)
    for n_ in range(3):
        assert await s.send(queue, b"%d" % n_) == OK()
    assert await s.send(read, b"read") == OK()
    assert await s.send(served, b"served") == OK()
    first, _ = await r.msg(queue)
    for edge in frail.edges:
        await edge.save()
    before = await store.stats.read_stats()

    await store.core.ask(0, b"CONFIG", b"SET", b"maxmemory", b"1")
    key = generate("x25519")
    new = cmd.NEW(key.spki, generate("x25519").public, queue_req=MessagingReq())
    assert await s.send(queue, b"refused") == err(Simple.INTERNAL)
    assert await r.do(new, b"", key) == err(Simple.INTERNAL)
    reply = await r.ack(queue, first)
    assert body_of(queue, reply) == b"1"
    assert body_of(read, await other.do(cmd.GET(), read.rcv_id, read.rcv_key)) == b"read"
    assert isinstance(await r.do(cmd.QUE(), queue.rcv_id, queue.rcv_key), INFO)
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n)
    assert await other.sub(queue) == sok(other)
    assert body_of(queue, (await other.event()).reply) == b"1"
    assert (await r.event()).reply == END()
    assert await s.do(cmd.DEL(), gone.rcv_id, gone.rcv_key) == OK()
    assert (await r.event()).reply == DELD()
    assert await subs(service, 1, ids_hash.of_id(served.rcv_id)) == SOKS(1, ids_hash.of_id(served.rcv_id))
    assert len(await until_alls(service, [served])) == 1
    assert (await sweep(frail)).damaged == 0
    async with asyncio.timeout(20):
        began = asyncio.get_running_loop().time()
        while min(store.leases._renewed_at) < began + redis.lease:  # without renewals, the leases would be gone
            await asyncio.sleep(0.1)
    assert frail[2].ready and not any(peer.smp.closed.is_set() for peer in (r, s, other, n, service))
    await store.stats.publish_edge({})
    late = await frail.add()  # an edge can start
    assert late.ready

    await store.core.ask(0, b"CONFIG", b"SET", b"maxmemory", b"0")
    assert await s.send(queue, b"3") == OK()
    assert isinstance(await r.do(new, b"", key), IDS)
    for edge in frail.edges:
        await edge.save()
    after = await store.stats.read_stats()
    assert after["msgSent"] == before["msgSent"] + 1
    assert after["msgRecv"] == before.get("msgRecv", 0) + 1
    assert after["qDeletedAll"] == before.get("qDeletedAll", 0) + 1


async def sweep(fleet: Fleet) -> Swept:
    """One slice by the edge that has the lock."""
    while True:
        for edge in fleet.edges:
            if (swept := await edge.store.sweeper.sweep_slice(0)) is not None:
                return swept


async def test_a_repeated_new_that_redis_does_not_answer_in_time(
    frail: Fleet, own_redis: list[Embedded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late answer to the subscription comes after this NEW was refused, and must not disturb the next NEW."""
    r, again = await frail.client(0), await frail.client(1)
    corr_id, key = os.urandom(24), generate("ed25519")
    request = MessagingReq((sha3_384(corr_id).digest()[:24], LinkData(b"fixed", b"user")))
    command = cmd.NEW(key.spki, generate("x25519").public, queue_req=request)
    ids = await r.do(command, b"", key, corr_id=corr_id)
    assert isinstance(ids, IDS)
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    with stopped_at(monkeypatch, frail[1].store.subscriptions, "sub", own_redis):
        assert await again.do(command, b"", key, corr_id=corr_id) == err(Simple.INTERNAL)
    await usable(again)
    assert errors == []
    assert await again.do(command, b"", key, corr_id=corr_id) == ids


@pytest.mark.parametrize(("concern", "method"), [("lookups", "fetch_rcv"), ("messages", "ack")])
async def test_a_message_that_cannot_be_passed_over_in_time(
    frail: Fleet, own_redis: list[Embedded], monkeypatch: pytest.MonkeyPatch, concern: str, method: str
) -> None:
    """The message's body is gone, and Redis does not answer when the router asks for the next message."""
    r, s, other = await frail.client(0), await frail.client(1), await frail.client(0)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"gone") == OK()
    assert await s.send(queue, b"next") == OK()
    store, skip = frail[0].store, Outgoing.skip
    record = await store.lookups.get_rcv(queue.rcv_id)
    assert record is not None
    (first, _) = await store.core.ask(p := record.partition, b"LRANGE", keys.messages(p, queue.rcv_id), 0, -1)
    await store.core.ask(p, b"UNLINK", keys.body(p, first[:24]))
    skipped: asyncio.Future[asyncio.Event] = asyncio.get_running_loop().create_future()

    def stop_there(outgoing: Outgoing, *args: Any) -> None:
        skipped.set_result(going_on.enter_context(stopped_at(monkeypatch, getattr(store, concern), method, own_redis)))
        skip(outgoing, *args)

    with contextlib.ExitStack() as going_on:
        monkeypatch.setattr(Outgoing, "skip", stop_there)
        assert await r.sub(queue) == sok(r)
        async with asyncio.timeout(10):
            await (await skipped).wait()
        assert await other.do(cmd.SEND(False, b"x"), os.urandom(24)) == err(Simple.INTERNAL)
    assert await r.text(queue) == b"next"


async def test_notifications_that_redis_does_not_give_in_time(
    frail: Fleet, own_redis: list[Embedded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No connection breaks, so nothing is asserted again. A notification behind a waiting one raises no event."""
    r, s, n = await frail.client(0), await frail.client(0), await frail.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n)
    with stopped_at(monkeypatch, frail[1].store.notifications, "take_ntfs", own_redis) as stopped:
        assert await s.send(queue, b"1", notification=True) == OK()
        async with asyncio.timeout(10):
            await stopped.wait()
        assert await n.do(cmd.SEND(False, b"x"), os.urandom(24)) == err(Simple.INTERNAL)
    await usable(s)
    assert await s.send(queue, b"2", notification=True) == OK()
    metas = [await nmsg(n, notifier), await nmsg(n, notifier)]
    assert len({meta.msg_id for meta in metas}) == 2
    await n.silence()


async def test_a_redis_that_is_killed_and_comes_back(frail: Fleet, own_redis: list[Embedded]) -> None:
    r, s = await frail.client(0), await frail.client(1)
    queues = [await r.new(secure=True) for _ in range(20)]
    restart(own_redis)
    await usable(s)
    await usable(r)
    for n, queue in enumerate(queues):
        assert await s.send(queue, b"%d" % n) == OK()
    for _ in queues:
        event = await r.event()
        queue = next(queue for queue in queues if queue.rcv_id == event.entity_id)
        assert isinstance(event.reply, MSG)
        assert await r.ack(queue, event.reply.msg_id) == OK()
    assert not r.smp.closed.is_set()


async def test_a_message_in_flight_when_redis_is_killed(frail: Fleet, own_redis: list[Embedded]) -> None:
    r, s = await frail.client(0), await frail.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"1") == OK()
    assert await s.send(queue, b"2") == OK()
    msg_id, _ = await r.msg(queue)
    restart(own_redis)
    await usable(r)
    await r.silence()
    reply = await r.ack(queue, msg_id)
    assert isinstance(reply, MSG), "the same subscription goes on"
    assert await r.ack(queue, reply.msg_id) == OK()


async def test_a_lease_that_is_lost(frail: Fleet, own_redis: list[Embedded]) -> None:
    """An edge that cannot renew its lease closes its clients before others may take over, and comes back."""
    await frail.add(redis=replace(frail.config.redis, lease=2.0))
    r = await frail.client(2)
    queue = await r.new(secure=True)
    os.kill(own_redis[-1].pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(10):
            await r.smp.closed.wait()
        assert not frail[2].ready
    finally:
        os.kill(own_redis[-1].pid, signal.SIGCONT)
    async with asyncio.timeout(10):
        while not frail[2].ready:
            await asyncio.sleep(0.05)
    r, s = await frail.client(2), await frail.client(1)
    await usable(r)
    await usable(s)
    assert await r.sub(queue) == sok(r)
    assert await s.send(queue, b"1") == OK()
    assert await r.text(queue) == b"1"


async def _drop_leases(frail: Fleet, edge: int) -> None:
    """As Redis does when its clock is set forward."""
    store = frail[edge].store
    for p in range(64):
        await store.core.ask(p, b"UNLINK", keys.lease(p, store.edge))


async def test_a_subscriber_is_told_what_it_missed(frail: Fleet) -> None:
    """The lease was gone for a moment: messages and ends of that moment were left for nobody."""
    await frail.add(redis=replace(frail.config.redis, lease=2.0))
    r, s = await frail.client(2), await frail.client(1)
    queue, other, taken = await r.new(secure=True), await r.new(), await r.new()
    notifier = await nkey(r, other)
    assert await r.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(r)
    await _drop_leases(frail, 2)
    assert await s.send(queue, b"missed") == OK()
    assert await s.do(cmd.DEL(), other.rcv_id, other.rcv_key) == OK()
    assert await s.sub(taken) == sok(s)
    events = [await r.event() for _ in range(4)]
    assert {(event.entity_id, type(event.reply).__name__) for event in events} == {
        (queue.rcv_id, "MSG"),
        (other.rcv_id, "DELD"),
        (notifier.ntf_id, "DELD"),
        (taken.rcv_id, "END"),
    }
    assert await s.send(taken, b"1") == OK()
    assert await s.text(taken) == b"1", "the newer subscription stays"
    await r.silence()


async def test_two_edges_without_leases(frail: Fleet) -> None:
    """A queue changed hands while no edge had a lease: the newer subscription stays, and the older one ends."""
    for _ in range(2):
        await frail.add(redis=replace(frail.config.redis, lease=2.0))
    r, newer = await frail.client(2), await frail.client(3)
    queue = await r.new(secure=True)
    for edge in (2, 3):
        await _drop_leases(frail, edge)
    assert await newer.sub(queue) == sok(newer)
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, END())
    assert await r.send(queue, b"1") == OK()
    assert await newer.text(queue) == b"1"
    await newer.silence()


async def test_a_service_without_its_lease_has_to_subscribe_again(frail: Fleet) -> None:
    """A queue left the service while the lease was gone: SUBS says so, nothing else can."""
    await frail.add(redis=replace(frail.config.redis, lease=2.0))
    service = credentials()
    one, r = await frail.client(2, service=service), await frail.client(1)
    queues = [await one.new(secure=True) for _ in range(2)]
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await subs(one, 2, hash_) == SOKS(2, hash_)
    assert (await one.event()).reply == ALLS()
    plain = await frail.client(2)
    await _drop_leases(frail, 2)
    assert await r.sub(queues[0]) == sok(r)
    async with asyncio.timeout(10):
        await one.smp.closed.wait()
    again = await frail.client(0, service=service)
    assert await subs(again, 2, hash_) == SOKS(1, ids_hash.of_id(queues[1].rcv_id))
    await plain.smp.ping()


async def test_a_service_after_redis_was_away(frail: Fleet, own_redis: list[Embedded]) -> None:
    service = credentials()
    one, s = await frail.client(0, service=service), await frail.client(1)
    queues = [await one.new(secure=True) for _ in range(5)]
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await subs(one, 5, hash_) == SOKS(5, hash_)
    assert (await one.event()).reply == ALLS()
    assert await s.send(queues[0], b"0") == OK()
    msg_id, _ = await one.msg(queues[0])
    restart(own_redis)
    await usable(s)
    await usable(one)
    assert await s.send(queues[1], b"1") == OK()
    assert await one.text(queues[1]) == b"1"
    assert await one.ack(queues[0], msg_id) == OK(), "what was in flight still is"
    await one.silence()
    sid = await service_id(one)
    assert await one.sub(queues[2]) == type(await one.sub(queues[2]))(sid)  # type: ignore[call-arg, arg-type]


async def test_draining(frail: Fleet) -> None:
    """Clients are moved on at a rate, their queues are free at once, nobody new is let in."""
    await frail.add(drain=Drain(grace=10.0, rate=20))
    service = credentials()
    clients = [await frail.client(2) for _ in range(10)]
    queues = [await client.new() for client in clients]
    svc = await frail.client(2, service=service)
    svc_queue = await svc.new()
    address = frail.address(2)
    start = asyncio.get_running_loop().time()
    draining = asyncio.create_task(frail[2].drain())
    await asyncio.sleep(0.05)
    assert frail[2].draining and not frail[2].ready
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    await draining
    took = asyncio.get_running_loop().time() - start
    assert 0.3 < took < 5, "eleven clients at twenty a second"
    assert all(client.smp.closed.is_set() for client in clients)
    s, r = await frail.client(0), await frail.client(1)
    for queue in queues:
        assert await s.send(queue, b"1") == OK()
        assert await r.sub(queue) == sok(r)
        assert await r.text(queue) == b"1"
    again = await frail.client(0, service=service)
    assert await s.send(svc_queue, b"2") == OK()
    hash_ = ids_hash.of_id(svc_queue.rcv_id)
    assert await subs(again, 1, hash_) == SOKS(1, hash_)
    assert len(await until_alls(again, [svc_queue])) == 1


async def test_draining_answers_what_was_asked(frail: Fleet, own_redis: list[Embedded]) -> None:
    r, s = await frail.client(0), await frail.client(1)
    queue = await r.new(secure=True)
    assert await s.send(queue, b"0") == OK()
    os.kill(own_redis[-1].pid, signal.SIGSTOP)
    sends = [asyncio.create_task(s.send(queue, b"%d" % n)) for n in range(5)]
    await asyncio.sleep(0.1)
    draining = asyncio.create_task(frail[1].drain())
    await asyncio.sleep(0.1)
    os.kill(own_redis[-1].pid, signal.SIGCONT)
    assert await asyncio.gather(*sends) == [OK()] * 5
    await draining
    async with asyncio.timeout(5):
        await s.smp.closed.wait()


async def test_an_edge_that_is_gone_is_vacant(frail: Fleet) -> None:
    """Killed, not closed: whoever subscribes elsewhere need not wait for its lease."""
    dead = await frail.add()
    r1 = await frail.client(2)
    queue = await r1.new(secure=True)
    dead.store.leases._refresh_timer.cancel()  # type: ignore[union-attr]
    dead.store.leases._check_timer.cancel()  # type: ignore[union-attr]
    await dead.store.presence.listener.close()
    await dead.store.topology.close()
    s, r2 = await frail.client(0), await frail.client(1)
    assert await s.send(queue, b"1") == OK()
    assert await r2.sub(queue) == sok(r2)
    assert await r2.text(queue) == b"1"
    frail.edges.remove(dead)
    r1.smp.connection.abort()
    assert dead._listener is not None
    await dead._listener.close()


async def test_starting_badly(config: RouterConfig, tmp_path: Path) -> None:
    """Each mistake in a configuration gives one clear line."""
    sock = bind("127.0.0.1", 0)
    no_identity = replace(config, transport=replace(config.transport, identity=tmp_path / "none"))
    with pytest.raises((UnusableFile, OSError)):
        await Edge.start(no_identity, socks=[sock])
    no_redis = replace(config, redis=replace(config.redis, url="redis://127.0.0.1:1", connect_timeout=0.5))
    with pytest.raises(StoreError, match="cannot be reached"):
        await Edge.start(no_redis, socks=[sock])
    await (await Edge.start(config, socks=[bind("127.0.0.1", 0)])).close()
    key = tmp_path / "other.key"
    key.write_bytes(os.urandom(32))
    with pytest.raises(StoreError, match="placement key"):
        await Edge.start(replace(config, redis=replace(config.redis, placement_key=key)), socks=[sock])
    port = sock.getsockname()[1]
    taken = replace(config, transport=replace(config.transport, ports=(port,)))
    with pytest.raises(OSError):
        await Edge.start(taken)
    sock.close()


async def test_two_deployments_on_one_redis(config: RouterConfig, tmp_path: Path) -> None:
    """With different placement keys, one of two that start at the same time on an empty Redis is refused."""
    server = start_server()
    configs = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        configs.append(router_config(server.url, config.transport.identity, tmp_path / name))
    fleets = [Fleet(each) for each in configs]
    started = await asyncio.gather(*(fleet.add() for fleet in fleets), return_exceptions=True)
    assert sorted(type(result).__name__ for result in started) == ["Edge", "StoreError"]
    [works] = [fleet for fleet in fleets if fleet.edges]
    [refused] = [fleet for fleet in fleets if not fleet.edges]
    with pytest.raises(StoreError, match="placement key"):
        await refused.add()
    client = await works.client(0)
    queue = await client.new(secure=True)
    assert await client.send(queue, b"1") == OK()
    assert await client.text(queue) == b"1"
    await works.close()
    discard(server)
