"""Edges that lose Redis, each on its own: what their clients see, and that nobody is told two truths."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.redis.proxy import Proxy
from tests.router.fleet import Fleet, Peer, Queue, err, router_config, sok
from tests.services.service import Service, messages, owners, until
from tests.support.ports import free_port
from tests.support.redis import discard, start_server
from weir.crypto.identity import init_identity
from weir.redis.embedded import Embedded
from weir.redis.settings import Redis
from weir.transport.client import ConnectError
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import END, ENDS, MSG, OK, SOKS

LEASE = 3.0
PATIENCE = 1.0  # of a command


@pytest.fixture
def own_redis() -> Iterator[Embedded]:
    server = start_server(port=free_port(), appendfsync="always")
    yield server
    discard(server)


@dataclass
class Network:
    """Two edges, each with a line of its own to Redis."""

    fleet: Fleet
    lines: list[Proxy]

    def cut(self, edge: int) -> None:
        self.lines[edge].refusing = True
        self.lines[edge].cut()

    def heal(self, edge: int) -> None:
        self.lines[edge].refusing = False


@pytest.fixture
async def network(own_redis: Embedded, tmp_path: Path) -> AsyncIterator[Network]:
    init_identity(tmp_path / "identity", "localhost", "ed25519")
    lines = [await Proxy.start(own_redis.url) for _ in range(2)]
    base = router_config(own_redis.url, tmp_path / "identity", tmp_path)
    fleet = Fleet(base)
    for line in lines:
        redis: Redis = replace(base.redis, url=line.url, lease=LEASE, command_timeout=PATIENCE)
        await fleet.add(redis=redis)
    yield Network(fleet, lines)
    for line in lines:
        line.refusing = False
        line.release()
    await fleet.close()
    for line in lines:
        await line.close()


async def restored(network: Network, edge: int) -> None:
    store = network.fleet[edge].store
    await until(lambda: store.connected and store.leases.held, 15)


async def test_an_edge_that_is_cut_off(network: Network) -> None:
    """The edge closes its clients when it must assume its lease lost. They continue at the other edge."""
    fleet = network.fleet
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    network.cut(0)
    assert await s.send(queue, b"while it was cut off") == OK()
    async with asyncio.timeout(LEASE + 2):
        await r.smp.closed.wait()
    assert not fleet[0].ready
    r2 = await fleet.client(1)
    assert await r2.sub(queue) == sok(r2)
    assert await r2.text(queue) == b"while it was cut off"
    await s.smp.ping()

    network.heal(0)
    await restored(network, 0)
    assert fleet[0].ready
    r3 = await fleet.client(0)
    assert await r3.sub(queue) == sok(r3)
    assert (await r2.event()).reply == END()
    assert await s.send(queue, b"it is back") == OK()
    assert await r3.text(queue) == b"it is back"
    await r2.silence()


async def test_a_short_cut(network: Network) -> None:
    """Shorter than the lease: clients stay, and what was sent meanwhile comes without another SUB, once."""
    fleet = network.fleet
    r, s = await fleet.client(0), await fleet.client(1)
    queues = [await r.new(secure=True) for _ in range(20)]
    assert await s.send(queues[0], b"in flight") == OK()
    msg_id, _ = await r.msg(queues[0])
    network.cut(0)
    for queue in queues:
        assert await s.send(queue, b"meanwhile") == OK()
    network.heal(0)
    await restored(network, 0)
    got = messages([await r.event() for _ in queues[1:]])
    assert set(got) == {queue.rcv_id for queue in queues[1:]}
    reply = await r.ack(queues[0], msg_id)
    assert isinstance(reply, MSG)
    got[queues[0].rcv_id] = reply
    for queue in queues:
        assert await r.ack(queue, got[queue.rcv_id].msg_id) == OK()
    await r.silence()
    assert not r.smp.closed.is_set()


async def test_displaced_while_cut_off(network: Network) -> None:
    """The queue has a new subscriber at the other edge: the old one hears END when its edge is back, and no message."""
    fleet = network.fleet
    r, other, s = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(secure=True)
    network.cut(0)
    assert await other.sub(queue) == sok(other)
    assert await s.send(queue, b"to the new one") == OK()
    network.heal(0)
    await restored(network, 0)
    assert await other.text(queue) == b"to the new one"
    assert (await r.event()).reply == END()
    assert await s.send(queue, b"again") == OK()
    assert await other.text(queue) == b"again"
    await r.silence()


async def test_deleted_while_cut_off(network: Network) -> None:
    fleet = network.fleet
    r, other = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    network.cut(0)
    assert await other.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    network.heal(0)
    await restored(network, 0)
    event = await r.event()
    assert event.entity_id == queue.rcv_id and type(event.reply).__name__ == "DELD"
    await r.silence()


async def test_a_service_taken_over_while_its_edge_is_cut_off(network: Network) -> None:
    """When the edge is back, the old owner gets one ENDS and no message, and its ACKs have no effect."""
    fleet = network.fleet
    service = Service()
    first = await service.connect(fleet, 0)
    queue = await first.create()
    s = await fleet.client(1)
    assert await first.resume() == []
    assert await s.send(queue, b"m") == OK()
    msg_id, _ = await first.msg(queue)
    network.cut(0)
    second = await service.connect(fleet, 1)
    given = messages(await second.resume())
    assert set(given) == {queue.rcv_id}
    network.heal(0)
    await restored(network, 0)
    event = await first.event()
    assert event.reply == ENDS(*service.totals)
    assert await first.ack(queue, msg_id) == err(Simple.NO_MSG)
    assert await second.ack(queue, given[queue.rcv_id].msg_id) == OK()
    assert await s.send(queue, b"n") == OK()
    assert await second.text(queue) == b"n"
    await first.silence()
    (owner,) = await owners(fleet[1], first.service_id)
    assert owner is not None and owner.startswith(fleet[1].store.edge + b":")


async def test_a_service_whose_edge_was_cut_off_for_a_moment(network: Network) -> None:
    """The session keeps the service. Messages of the meantime are delivered without another SUBS or ALLS."""
    fleet = network.fleet
    service = Service()
    session = await service.connect(fleet, 0)
    queues = [await session.create() for _ in range(10)]
    s = await fleet.client(1)
    assert await session.resume() == []
    network.cut(0)
    for queue in queues:
        assert await s.send(queue, b"meanwhile") == OK()
    network.heal(0)
    await restored(network, 0)
    got = messages([await session.event() for _ in queues])
    assert set(got) == service.ids
    for queue in queues:
        assert await session.ack(queue, got[queue.rcv_id].msg_id) == OK()
    await session.silence()
    assert await session.subs() == SOKS(*service.totals)
    await session.silence()


async def test_a_slow_redis(network: Network) -> None:
    """Within the limit commands just take longer; beyond it they fail, and the connection stays."""
    fleet = network.fleet
    r, s, idle = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(secure=True)
    for line in network.lines:
        line.hold()
    sends = asyncio.gather(*(s.send(queue, b"%d" % n) for n in range(5)))
    await asyncio.sleep(PATIENCE / 3)
    assert not sends.done()
    await idle.smp.ping()
    for line in network.lines:
        line.release()
    assert await sends == [OK()] * 5
    msg_id, _ = await r.msg(queue)
    count = 1
    reply = await r.ack(queue, msg_id)
    while isinstance(reply, MSG):
        count += 1
        reply = await r.ack(queue, reply.msg_id)
    assert count == 5

    network.lines[1].hold()
    assert await s.send(queue, b"too late") == err(Simple.INTERNAL)
    await s.smp.ping()
    network.lines[1].release()
    await usable(s, queue)
    bodies = await drained(r, queue)
    assert bodies[-1] == b"usable" and bodies.count(b"too late") <= 1


async def usable(peer: Peer, queue: Queue) -> None:
    async with asyncio.timeout(15):
        while await peer.send(queue, b"usable") != OK():
            await asyncio.sleep(0.05)


async def drained(peer: Peer, queue: Queue) -> list[bytes]:
    """All messages of a queue up to the first that says `usable`."""
    bodies: list[bytes] = []
    while not bodies or bodies[-1] != b"usable":
        event = await peer.event()
        reply = event.reply
        while isinstance(reply, MSG):
            bodies.append(getattr(queue.open(reply), "body", b""))
            reply = await peer.ack(queue, reply.msg_id)
        assert reply == OK(), reply
    return bodies


async def test_no_service_while_redis_is_away(network: Network) -> None:
    """A handshake that needs Redis fails within the limit; one that does not, does not."""
    network.cut(0)
    with pytest.raises(ConnectError):
        await Service().connect(network.fleet, 0)
    plain = await network.fleet.client(0)
    await plain.smp.ping()
    network.heal(0)
    await restored(network, 0)
    assert await (await Service().connect(network.fleet, 0)).resume() == []


@pytest.mark.parametrize("cached", [False, True], ids=["queue unknown to the edge", "queue known to the edge"])
async def test_a_sub_of_a_client_that_has_left(network: Network, cached: bool) -> None:
    """The SUB waits at an edge without Redis. Its client connects elsewhere, where the SUB must not displace it."""
    fleet = network.fleet
    maker, s = await fleet.client(1), await fleet.client(1)
    queue = await maker.new(secure=True)
    await maker.close()
    left = await fleet.client(0)
    if cached:
        assert await left.do(cmd.QUE(), queue.rcv_id, queue.rcv_key)
    network.cut(0)
    await until(lambda: not fleet[0].store.connected)
    waiting = asyncio.create_task(left.sub(queue))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    left.smp.connection.abort()
    await until(lambda: not fleet[0].router.clients)
    r = await fleet.client(1)
    assert await r.sub(queue) == sok(r)
    network.heal(0)
    await restored(network, 0)
    assert await s.send(queue, b"m") == OK()
    assert await r.text(queue) == b"m"
    await r.silence()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_subs_of_a_client_that_has_left(network: Network) -> None:
    fleet = network.fleet
    service = Service()
    maker, s = await service.connect(fleet, 1), await fleet.client(1)
    queue = await maker.create()
    await maker.close()
    left = await service.connect(fleet, 0)
    network.cut(0)
    await until(lambda: not fleet[0].store.connected)
    waiting = asyncio.create_task(left.subs())
    await asyncio.sleep(0.1)
    assert not waiting.done()
    left.smp.connection.abort()
    await until(lambda: not fleet[0].router.clients)
    session = await service.connect(fleet, 1)
    assert await session.resume() == []
    network.heal(0)
    await restored(network, 0)
    assert await s.send(queue, b"m") == OK()
    assert await session.text(queue) == b"m"
    await session.silence()
    await asyncio.gather(waiting, return_exceptions=True)
