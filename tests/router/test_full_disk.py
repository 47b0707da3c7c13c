"""Redis whose disk is full: it writes no append-only file, and refuses all writes until there is room."""

import asyncio
import resource
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, Peer, Queue, body_of, err, router_config, sok
from tests.router.service import credentials, subs
from tests.support.redis import discard, start_server
from weir.redis.embedded import Embedded, binary
from weir.router.config import RouterConfig
from weir.wire.errors import Simple
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, END, MSG, OK, SOKS

LEASE = 1.0
INTERNAL = err(Simple.INTERNAL)


@pytest.fixture
async def own(config: RouterConfig, tmp_path: Path) -> AsyncIterator[tuple[Fleet, Embedded]]:
    """Two edges on a Redis whose files cannot grow beyond a limit that the test sets. A full disk fails a write in the
    same way: for Redis, only the error's number differs."""
    wrapper = tmp_path / "server"
    wrapper.write_text(f"#!/bin/sh\ntrap '' XFSZ\nexec {binary()} \"$@\"\n")  # the write fails, and ends no process
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    server = start_server(wrapper)
    base = router_config(server.url, config.transport.identity, tmp_path)
    fleet = Fleet(replace(base, redis=replace(base.redis, lease=LEASE)))
    await fleet.add()
    await fleet.add()
    yield fleet, server
    await fleet.close()
    discard(server)


def limit(server: Embedded, size: int) -> None:
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def test_a_full_disk(own: tuple[Fleet, Embedded]) -> None:
    """Connections stay for as long as it takes. Afterwards everything is as if nothing had been."""
    fleet, server = own
    r, s = await fleet.client(0), await fleet.client(1)
    service = await fleet.client(0, service=credentials())
    served, queue, taken = await service.new(secure=True), await r.new(secure=True), await r.new(secure=True)
    hash_ = ids_hash.of_id(served.rcv_id)
    assert await subs(service, 1, hash_) == SOKS(1, hash_)
    assert (await service.event()).reply == ALLS()
    assert await s.send(queue, b"before") == OK()
    assert await r.text(queue) == b"before"

    size = max(file.stat().st_size for file in server.directory.rglob("*.aof"))
    limit(server, size)
    stored = 0
    async with asyncio.timeout(20):
        while await s.send(queue, b"stored") == OK():
            stored += 1
            await asyncio.sleep(0.05)
    stuck = asyncio.get_running_loop().time()
    async with asyncio.timeout(20):
        while asyncio.get_running_loop().time() < stuck + 2 * LEASE:
            assert await s.send(queue, b"refused") == INTERNAL
            await s.smp.ping()
            await asyncio.sleep(0.2)
    assert all(edge.ready for edge in fleet.edges)
    assert fleet[1].store.failures.recent() == ["Redis cannot write to its disk (MISCONF)."]
    assert not any(peer.smp.closed.is_set() for peer in (r, s, service))

    limit(server, resource.RLIM_INFINITY)
    async with asyncio.timeout(20):
        while await s.send(taken, b"after") == INTERNAL:
            await asyncio.sleep(0.05)
        await service.smp.closed.wait()  # the leases were gone for a while: the service has to ask what it missed
    bodies = await received(r, [queue, taken], stored + 1)
    assert sorted(bodies) == [b"after", *[b"stored"] * stored]
    assert await s.sub(queue) == sok(s)
    assert (await r.event()).reply == END()
    assert await subs(await fleet.client(1, service=credentials()), 0, ids_hash.EMPTY) == SOKS(0, ids_hash.EMPTY)


async def received(peer: Peer, queues: list[Queue], count: int) -> list[bytes]:
    """The bodies of the next messages, each acknowledged."""
    bodies: list[bytes] = []
    while len(bodies) < count:
        event = await peer.event()
        [queue] = [queue for queue in queues if queue.rcv_id == event.entity_id]
        message: object = event.reply
        while isinstance(message, MSG):
            bodies.append(body_of(queue, message))
            message = await peer.ack(queue, message.msg_id)
    return bodies
