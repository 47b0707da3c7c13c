"""Every number is right within a second of quiet, and never off by more than a second of traffic.

The load on two edges is known to the test, and the numbers are read through both of them.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import pytest

from tests.router.fleet import Fleet, Peer, Queue, router_config
from tests.router.surface.pages import start_http
from tests.support.redis import discard, start_server
from weir.router.config import Auth
from weir.router.surface.control import start_control
from weir.surface.control.port import ControlPort
from weir.wire.smp.replies import OK

PAIRS = 4
PAUSE = 0.02  # seconds between two messages of a pair


@pytest.fixture
async def fleet(identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """Two edges that share a Redis with nobody: all its numbers are this test's."""
    server = start_server()
    monkeypatch.setattr("weir.router.edge.SAMPLE_INTERVAL", 0.25)  # a rate covers three of them
    config = router_config(server.url, identity, tmp_path)
    auth, http = Auth(control_port_admin_password="boss"), replace(config.http, metrics_port=0)
    fleet = Fleet(replace(config, auth=auth, http=http))
    await fleet.add()
    await fleet.add()
    yield fleet
    await fleet.close()
    discard(server)


class Load:
    """Pairs of a sender on one edge and a recipient on the other, with one message under way each."""

    def __init__(self) -> None:
        self.sent: deque[float] = deque()  # when each SEND was answered OK
        self._stop = asyncio.Event()
        self._pairs: list[asyncio.Task[None]] = []

    async def start(self, fleet: Fleet) -> None:
        for n in range(PAIRS):
            recipient, sender = await fleet.client(n % 2), await fleet.client(1 - n % 2)
            queue = await recipient.new(secure=True)
            self._pairs.append(asyncio.create_task(self._run(recipient, sender, queue)))

    async def _run(self, recipient: Peer, sender: Peer, queue: Queue) -> None:
        while not self._stop.is_set():
            assert await sender.send(queue, b"message") == OK()
            self.sent.append(monotonic())
            await recipient.text(queue)
            await asyncio.sleep(PAUSE)

    async def stop(self) -> None:
        self._stop.set()
        await asyncio.gather(*self._pairs)

    def sent_before(self, when: float) -> int:
        return sum(at < when for at in self.sent)


@asynccontextmanager
async def page_of(fleet: Fleet, number: int) -> AsyncIterator[Any]:
    server = await start_http(fleet[number])
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as web:

        async def status() -> dict[str, Any]:
            async with web.get("/status.json") as response:
                found: dict[str, Any] = await response.json()
                return found

        yield status
    await server.close()


class ByText:
    """/metrics and the control port of one edge."""

    def __init__(self, web: aiohttp.ClientSession, control: ControlPort) -> None:
        self._web = web
        self._control = control

    @classmethod
    @asynccontextmanager
    async def of(cls, fleet: Fleet, number: int) -> AsyncIterator[ByText]:
        server, control = await start_http(fleet[number]), await start_control(fleet[number])
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as web:
            yield cls(web, control)
        await control.close()
        await server.close()

    async def metrics(self) -> dict[str, float]:
        async with self._web.get("/metrics") as response:
            text = await response.text()
        return {name: float(value) for name, value in re.findall(r"^(\w+) ([0-9.]+)$", text, re.MULTILINE)}

    async def said(self, command: str) -> dict[str, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._control.port)
        writer.write(f"auth boss\n{command}\nquit\n".encode())
        lines = (await reader.read()).decode().splitlines()
        writer.close()
        return dict(line.split(": ", 1) for line in lines if ": " in line)


async def test_metrics_and_control_port_under_a_known_load(fleet: Fleet) -> None:
    load = Load()
    await load.start(fleet)
    async with ByText.of(fleet, 0) as first, ByText.of(fleet, 1) as second:
        began = monotonic()
        while (now := monotonic()) < began + 2.0:
            for edge in (first, second):
                metrics, stats, info = await edge.metrics(), await edge.said("stats"), await edge.said("server-info")
                at_least, at_most = load.sent_before(now - 1.0), load.sent_before(monotonic()) + PAIRS
                assert at_least <= metrics["simplex_smp_messages_sent"] <= at_most
                assert at_least - PAIRS <= metrics["simplex_smp_messages_received"] <= at_most
                assert at_least <= int(stats["msgSent"]) <= at_most
                assert at_least - PAIRS <= int(stats["msgRecv"]) <= at_most
                for waiting in (metrics["simplex_smp_messages_total"], int(stats["msgCount"])):
                    assert 0 <= waiting <= at_most - at_least
                assert (info["Clients"], info["SMP subscriptions"]) == (str(2 * PAIRS), str(PAIRS))
            await asyncio.sleep(0.25)
        await load.stop()
        await asyncio.sleep(1.0)
        total = len(load.sent)
        for edge in (first, second):
            metrics, stats = await edge.metrics(), await edge.said("stats")
            assert (metrics["simplex_smp_messages_sent"], metrics["simplex_smp_messages_received"]) == (total, total)
            assert (int(stats["msgSent"]), int(stats["msgRecv"])) == (total, total)
            assert (metrics["simplex_smp_messages_total"], stats["msgCount"]) == (0, "0")


async def test_numbers_under_a_known_load(fleet: Fleet) -> None:
    load = Load()
    await load.start(fleet)
    async with page_of(fleet, 0) as first, page_of(fleet, 1) as second:
        began = monotonic()
        while (now := monotonic()) < began + 2.5:
            for status in (await first(), await second()):
                # A message counts when its edge has the answer of Redis, its sender knows a moment later.
                at_least, at_most = load.sent_before(now - 1.0), load.sent_before(monotonic()) + PAIRS
                assert at_least <= status["sent"] <= at_most
                assert at_least - PAIRS <= status["received"] <= at_most
                assert 0 <= status["messages"] <= load.sent_before(monotonic()) - at_least + PAIRS
                assert (status["connections"], status["edges"]) == (2 * PAIRS, 2)
            if now > began + 2.0:
                mean = (len(load.sent) - load.sent_before(began + 0.5)) / (monotonic() - began - 0.5)
                assert mean / 2 < status["rate"] < mean * 2
            await asyncio.sleep(0.25)
        await load.stop()
        await asyncio.sleep(1.0)
        total = len(load.sent)
        for status in (await first(), await second()):
            assert (status["sent"], status["received"], status["messages"]) == (total, total, 0)
            assert (status["queues"], status["subscriptions"]) == (PAIRS, PAIRS)


async def test_clients_that_left_are_not_counted_a_second_later(fleet: Fleet) -> None:
    clients = [await fleet.client(n % 2) for n in range(6)]
    for client in clients:
        await client.smp.ping()
    async with page_of(fleet, 0) as status:
        assert (await status())["connections"] == 6
        for client in clients:
            await client.close()
        await asyncio.sleep(1.0)
        assert (await status())["connections"] == 0


async def test_an_edge_that_has_stopped_is_not_counted(fleet: Fleet) -> None:
    async with page_of(fleet, 0) as status:
        assert (await status())["edges"] == 2
    await fleet.edges.pop().close()
    async with page_of(fleet, 0) as status:
        assert (await status())["edges"] == 1
