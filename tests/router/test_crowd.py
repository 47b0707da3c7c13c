"""Thousands of idle clients beside an attack of slow handshakes: those inside notice nothing, and others get in."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.router.fleet import Fleet
from weir.client.smp import SmpClient
from weir.router.config import RouterConfig
from weir.surface.fleet import Fleet as FleetView

IDLE = 5000
ATTACKERS = 1500
HALF_OPEN = 1000
AT_ONCE = 32
# A record of TLS that says it has 512 bytes. An attacker sends them one by one.
RECORD = bytes.fromhex("1603010200") + bytes(512)


@asynccontextmanager
async def slow_handshakes(port: int, count: int) -> AsyncIterator[None]:
    """Connections that send a byte of their hello now and then, and come back when they are thrown out."""
    opened = asyncio.Semaphore(0)

    async def trickle() -> None:
        first = True
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                if first:
                    opened.release()
                    first = False
                for byte in RECORD:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(1.0)
            except OSError:
                await asyncio.sleep(1.0)

    attackers = [asyncio.create_task(trickle()) for _ in range(count)]
    for _ in attackers:
        await opened.acquire()
    yield
    for attacker in attackers:
        attacker.cancel()
    await asyncio.gather(*attackers, return_exceptions=True)


@pytest.mark.all(reason="5,000 TLS connections")
@pytest.mark.timeout(300)
async def test_idle_clients_beside_slow_handshakes(config: RouterConfig) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * (IDLE + ATTACKERS) + 1000:
        pytest.skip("this user may not open so many files")
    fleet = Fleet(config)
    edge = await fleet.add(transport=replace(config.transport, half_open=HALF_OPEN, max_clients=20_000))
    gate = asyncio.Semaphore(AT_ONCE)

    async def join() -> SmpClient:
        async with gate:
            return await SmpClient.connect(edge.address, reply_timeout=60.0)

    idle = await asyncio.gather(*(join() for _ in range(IDLE)))
    fleet.clients += idle
    async with slow_handshakes(edge.ports[0], ATTACKERS):
        for client in idle[:: IDLE // 50]:
            await client.ping()
        for _ in range(20):  # newcomers finish their handshakes and are served
            async with await SmpClient.connect(edge.address, reply_timeout=60.0) as newcomer:
                await newcomer.ping()
        numbers = await FleetView(edge).numbers()
        assert numbers.total("clients") == IDLE
        assert HALF_OPEN // 2 < numbers.total("handshakes") <= HALF_OPEN
        assert numbers.stats["connections_crowded_out"] >= ATTACKERS - HALF_OPEN
    assert not any(client.closed.is_set() for client in idle)
    async with asyncio.timeout(30):
        while edge.gauges()["handshakes"]:
            await asyncio.sleep(0.05)
    await fleet.close()
