"""Clocks that are set while the router runs: Redis', and an edge's own. Nobody misses a message or an end."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, Peer, router_config, sok
from tests.router.service import credentials, subs
from tests.router.store.default_keys import keys
from tests.support.clock import Clock
from tests.support.ports import free_port
from tests.support.redis import discard, start_server
from weir.client.smp import SmpClient
from weir.redis.embedded import binary
from weir.router.config import RouterConfig
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, DELD, END, MSG, OK, SOKS

pytestmark = [pytest.mark.all("waits for leases"), pytest.mark.needs("faketime")]

LEASE = 4.0


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


@pytest.fixture
async def fleet(config: RouterConfig, clock: Clock, tmp_path: Path) -> AsyncIterator[Fleet]:
    """Two edges on a Redis with that clock: the bundled one, because jemalloc in Debian's does not bear libfaketime."""
    server = start_server(clock.wrap(binary()))
    base = router_config(server.url, config.transport.identity, tmp_path)
    fleet = Fleet(replace(base, redis=replace(base.redis, lease=LEASE)))
    await fleet.add()
    await fleet.add()
    yield fleet
    await fleet.close()
    discard(server)


async def leases(fleet: Fleet) -> int:
    """How many leases of the first edge Redis has."""
    store = fleet[0].store
    asked = [store.core.read(p, b"EXISTS", keys.lease(p, store.edge)) for p in range(64)]
    return sum(await asyncio.gather(*asked))


@contextmanager
def between_renewals(fleet: Fleet) -> Iterator[None]:
    """No edge renews its leases meanwhile, however long that takes."""
    for edge in fleet.edges:
        edge.store.leases._refresh_timer.cancel()  # type: ignore[union-attr]
    yield
    for edge in fleet.edges:
        edge.store.leases._refresh()


async def test_redis_clock_is_set_forward(fleet: Fleet, clock: Clock) -> None:
    r, s, newer = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    sent, gone, taken = [await r.new(secure=True) for _ in range(3)]
    service = credentials()
    one = await fleet.client(0, service=service)
    served = await one.new(secure=True)
    hash_ = ids_hash.of_id(served.rcv_id)
    assert await subs(one, 1, hash_) == SOKS(1, hash_)
    assert (await one.event()).reply == ALLS()
    with between_renewals(fleet):
        assert await leases(fleet) == 64
        clock.set(30)
        async with asyncio.timeout(20):  # Redis looks at the clock ten times a second and counts on from there
            while await leases(fleet):
                pass
        assert await s.send(sent, b"missed") == OK()
        assert await s.do(cmd.DEL(), gone.rcv_id, gone.rcv_key) == OK()
        assert await newer.sub(taken) == sok(newer)
        assert await leases(fleet) == 0, "all of it fell into the gap"
    found = {event.entity_id: event.reply for event in [await r.event() for _ in range(3)]}
    assert isinstance(found[sent.rcv_id], MSG) and found[gone.rcv_id] == DELD() and found[taken.rcv_id] == END()
    assert await s.send(taken, b"1") == OK()
    assert await newer.text(taken) == b"1"
    async with asyncio.timeout(20):
        await one.smp.closed.wait()  # the service subscribes again
    again = await fleet.client(1, service=service)
    assert await s.send(served, b"served") == OK()
    assert await subs(again, 1, hash_) == SOKS(1, hash_)
    assert (await again.event()).entity_id == served.rcv_id
    assert not r.smp.closed.is_set() and not newer.smp.closed.is_set()


async def test_redis_clock_is_set_back(fleet: Fleet, clock: Clock) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    for seconds in (-30, -3600):
        clock.set(seconds)
        assert await s.send(queue, b"1") == OK()
        assert await r.text(queue) == b"1"
        await later(fleet, LEASE)
        assert await leases(fleet) == 64
        assert await s.sub(queue) == sok(s)
        assert (await r.event()).reply == END()
        assert await r.sub(queue) == sok(r)
        assert (await s.event()).reply == END()
    assert not r.smp.closed.is_set()


async def later(fleet: Fleet, seconds: float) -> None:
    """Leases have been renewed for so long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    async with asyncio.timeout(seconds + 20):
        while min(min(edge.store.leases._renewed_at) for edge in fleet.edges) < end:
            await asyncio.sleep(0.1)


@pytest.fixture
def shifted(fleet: Fleet, tmp_path: Path) -> Iterator[tuple[str, Clock]]:
    """An edge of its own process on the same Redis, with a clock of its own."""
    (tmp_path / "edge").mkdir()
    clock = Clock(tmp_path / "edge")
    config, port = fleet.config, free_port()
    file = tmp_path / "weir.toml"
    file.write_text(
        f"""
        [transport]
        hosts = ["127.0.0.1"]
        listen = "127.0.0.1"
        ports = [{port}]
        identity = "{config.transport.identity}"
        [redis]
        url = "{config.redis.url}"
        placement_key = "{config.redis.placement_key}"
        lease = "{LEASE:g}s"
        [http]
        port = 0
        """
    )
    read, write = os.pipe()
    command = [sys.executable, "-m", "weir.cli.main", "smp", "edge", "--config", file, "--ready-fd", str(write)]
    process = subprocess.Popen(command, pass_fds=(write,), env={**os.environ, **clock.environment})
    os.close(write)
    with os.fdopen(read) as pipe:
        assert json.loads(pipe.readline())
    yield f"{fleet.address().rpartition(':')[0]}:{port}", clock
    process.terminate()
    process.wait(20)


async def test_an_edges_own_clock_is_set(fleet: Fleet, shifted: tuple[str, Clock]) -> None:
    address, clock = shifted
    r, s = Peer(await SmpClient.connect(address)), await fleet.client(0)
    queue = await r.new(secure=True)
    for seconds in (30, 3600, -3600):
        clock.set(seconds)
        for sender in (s, r):
            assert await sender.send(queue, b"1") == OK()
            assert await r.text(queue) == b"1"
        await later(fleet, LEASE)
        assert await s.sub(queue) == sok(s)
        assert (await r.event()).reply == END()
        assert await r.sub(queue) == sok(r)
        assert (await s.event()).reply == END()
    assert not r.smp.closed.is_set()
    await r.close()
