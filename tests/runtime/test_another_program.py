"""A second, tiny program on the shared rooms: it answers what it is told, over NTF's transport.

It has no Redis and no router. Transport, runtime and surface give it TLS, a handshake, a life as a process with drain
and reload, health, a page, metrics and a control port.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.ports import free_port
from tests.transport.peer import Heard, raw_peer
from weir.crypto.identity import init_identity, renew_online
from weir.runtime.edge import Edge, EdgeConfig
from weir.runtime.process import run_until_stopped
from weir.surface.control.commands import life_commands
from weir.surface.control.port import ControlPort, open_port
from weir.surface.control.session import Passwords, Session
from weir.surface.http import HttpServer, Site, serve_site
from weir.surface.outage import Outage
from weir.surface.page.html import Page, Tile, render_page
from weir.surface.settings import Information
from weir.telemetry.metrics import render_edge
from weir.transport.client import ConnectError
from weir.transport.ntf import NTF, NtfClientConnection, NtfConnection, connect
from weir.transport.server import bind
from weir.wire.address import SmpAddress
from weir.wire.ntf.handshake import NtfClientHello, encode_client_hello

OUTAGE = Outage((), "")


class EchoSession:
    """Sends every block back. `slow` answers wait until they are released."""

    def __init__(self, edge: EchoEdge, connection: NtfConnection) -> None:
        self.edge = edge
        self.conn = connection
        self.draining = False
        self.is_subscribed = False
        self.unanswered: list[bytes] = []

    def on_blocks(self, blocks: list[bytes]) -> None:
        for block in blocks:
            content = self.conn.open(block)
            if content.startswith(b"subscribe"):
                self.is_subscribed = True
            if content.startswith(b"slow"):
                self.unanswered.append(content)
            else:
                self.edge.echoed += 1
                self.conn.send_contents([content])

    def answer(self) -> None:
        contents, self.unanswered = self.unanswered, []
        self.conn.send_contents(contents)

    def drain(self) -> None:
        self.draining = True
        if not self.unanswered:
            self.conn.close()

    def on_writable(self) -> None: ...

    def on_closed(self) -> None:
        self.edge.connected.discard(self)


class EchoEdge(Edge[NtfConnection, EchoSession]):
    def __init__(self, config: EdgeConfig, identity: Path, *, http_port: int = 0) -> None:
        super().__init__(config, "echo", NTF, NTF.identity(identity))
        self.connected: set[EchoSession] = set()
        self.echoed = 0
        self.saved = 0
        self.finished = False
        self.http: HttpServer
        self.control: ControlPort
        self._http_port = http_port

    def on_session(self, connection: NtfConnection) -> EchoSession:
        session = EchoSession(self, connection)
        self.connected.add(session)
        return session

    def sessions(self) -> Collection[EchoSession]:
        return self.connected

    def program_gauges(self) -> dict[str, int]:
        return {"clients": len(self.connected), "echoed": self.echoed}

    async def save_counters(self) -> None:
        self.saved += 1

    async def start_program(self) -> None:
        self.http = await serve_site(self._site(), bind("127.0.0.1", self._http_port))

        def new_session() -> Session:
            return Session(Passwords("boss"), life_commands(self), "suspend, resume, save", OUTAGE)

        self.control = await open_port("127.0.0.1", 0, "echo", new_session)

    def _site(self) -> Site:
        tiles = (Tile("clients", "clients", "connected"),)
        page = Page("echo server", None, self.address, "Say something.", tiles, (), Information())
        return Site(
            is_ready=lambda: self.ready,
            is_draining=lambda: self.draining,
            status=self._status,
            outage=OUTAGE,
            page=render_page(page, "1"),
            edge_metrics=lambda: render_edge(self.gauges(), {}, ready=self.ready, uptime=0, version="1"),
        )

    async def _status(self) -> Mapping[str, Any]:
        return self.gauges()

    async def finish_work(self) -> None:
        self.finished = True

    async def close_program(self) -> None:
        await self.http.close()
        await self.control.close()

    @property
    def address(self) -> str:
        return str(SmpAddress(self.identity.fingerprint, ("127.0.0.1",), self.ports[0], scheme="ntf"))


class Talker:
    """A client that hears what comes back."""

    def __init__(self, connection: NtfClientConnection) -> None:
        self.connection = connection
        self.heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        connection.attach(self)

    def on_block(self, content: bytes) -> None:
        self.heard.put_nowait(content)

    def on_writable(self) -> None: ...

    def on_closed(self) -> None:
        self.heard.put_nowait(None)

    async def say(self, content: bytes) -> bytes | None:
        self.connection.send_contents([content])
        return await asyncio.wait_for(self.heard.get(), 10)


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("echo") / "identity"
    init_identity(directory, "localhost", "ed25519")
    return directory


@pytest.fixture
async def start(identity: Path) -> Any:
    edges: list[EchoEdge] = []

    async def start_one(**changes: Any) -> EchoEdge:
        config = EdgeConfig(**{"listen": "127.0.0.1", **changes})
        edge = EchoEdge(config, identity)
        edges.append(edge)
        await edge.open()
        return edge

    yield start_one
    for edge in edges:
        await edge.close()


async def talker(edge: EchoEdge) -> Talker:
    client = Talker(await connect(edge.address))
    assert await client.say(b"hello") == b"hello"
    return client


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_it_serves_and_shows_itself(start: Any) -> None:
    edge = await start()
    client = await talker(edge)
    assert await client.say(b"x" * 510) == b"x" * 510, "a block holds 510 bytes"
    async with aiohttp.ClientSession(f"http://127.0.0.1:{edge.http.port}") as web:

        async def get(path: str) -> tuple[int, str]:
            async with web.get(path) as response:
                return response.status, await response.text()

        assert await get("/readyz") == (200, "ready\n")
        assert '"echoed": 2' in (await get("/status.json"))[1]
        assert "\nweir_edge_clients 1\n" in (await get("/metrics/edge"))[1]
        code, page = await get("/")
        assert code == 200 and "echo server" in page and edge.address in page and "SimpleX" not in page
        assert (await get("/metrics"))[0] == 404
        await edge.suspend()
        assert await get("/readyz") == (503, "not ready\n")
        await edge.resume()
        assert await get("/readyz") == (200, "ready\n")
    client.connection.close()


async def test_its_control_port(start: Any) -> None:
    edge = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.control.port)
    saved = edge.saved
    writer.write(b"auth boss\nsave\nfly\nquit\n")
    lines = (await asyncio.wait_for(reader.read(), 10)).decode().splitlines()
    assert lines[0] == "echo" and lines[2:] == [
        "Current role is CPRAdmin",
        "saving server state...",
        "server state saved!",
        "error: unknown command, try help",
    ]
    assert edge.saved > saved
    writer.close()


async def test_suspended_it_keeps_its_clients_and_takes_no_others(start: Any) -> None:
    edge = await start()
    client = await talker(edge)
    address = edge.address
    await edge.suspend()
    await edge.suspend()
    with pytest.raises(ConnectError):
        await connect(address)
    assert await client.say(b"still here") == b"still here"
    await edge.resume()
    assert (await talker(edge)).connection.session is not None
    assert edge.address == address


async def test_draining_waits_for_answers_and_accepts_nobody(start: Any) -> None:
    edge = await start()
    quick, slow = await talker(edge), await talker(edge)
    slow.connection.send_contents([b"slow"])
    await until(lambda: any(session.unanswered for session in edge.sessions()))
    address = edge.address
    draining = asyncio.ensure_future(edge.drain())
    assert await asyncio.wait_for(quick.heard.get(), 10) is None, "a client without open commands leaves"
    with pytest.raises(ConnectError):
        await connect(address)
    await edge.resume()
    assert not edge.ready, "a draining edge does not listen again"
    (session,) = edge.sessions()
    assert not draining.done()
    session.answer()
    assert await asyncio.wait_for(slow.heard.get(), 10) == b"slow", "an accepted command is answered"
    assert await asyncio.wait_for(slow.heard.get(), 10) is None
    await asyncio.wait_for(draining, 10)


async def test_a_handshake_under_way_ends_without_a_session(start: Any) -> None:
    """The client's hello arrives when the edge is already draining. A session would be cut off a moment later."""
    edge = await start()
    peer = await raw_peer(edge.ports[0], alpn="ntf/1", block_size=512)
    await peer.hear()
    draining = asyncio.ensure_future(edge.drain())
    await until(lambda: edge.draining)
    peer.say(encode_client_hello(NtfClientHello(3, edge.identity.fingerprint)))
    peer.say(b"first command")
    assert await asyncio.wait_for(peer.hear(), 10) is Heard.CLOSED
    await asyncio.wait_for(draining, 10)
    assert edge._listener is not None and edge._listener.stats.sessions == 0
    assert edge._listener.stats.refused == 1


async def test_suspending_ends_a_handshake_under_way(start: Any) -> None:
    """`weir up` suspends every edge before it stops any: a session of this client would be cut off a moment later."""
    edge = await start()
    peer = await raw_peer(edge.ports[0], alpn="ntf/1", block_size=512)
    await peer.hear()
    suspending = asyncio.ensure_future(edge.suspend())
    await until(lambda: not edge.ready)
    peer.say(encode_client_hello(NtfClientHello(3, edge.identity.fingerprint)))
    assert await asyncio.wait_for(peer.hear(), 10) is Heard.CLOSED
    await asyncio.wait_for(suspending, 10)
    assert edge._listener is not None and edge._listener.stats.sessions == 0
    await edge.resume()
    assert (await talker(edge)).connection.session is not None


async def test_a_handshake_that_makes_no_progress_ends_cleanly(start: Any) -> None:
    edge = await start()
    silent, writer = await asyncio.open_connection("127.0.0.1", edge.ports[0])
    await until(lambda: edge.gauges()["handshakes"] == 1)
    await asyncio.wait_for(edge.drain(), 10)
    assert await asyncio.wait_for(silent.read(), 10) == b"", "an end, no reset"
    writer.close()


async def test_a_client_that_is_speaking_loses_no_command(start: Any) -> None:
    edge = await start()
    client = await talker(edge)
    draining = asyncio.ensure_future(edge.drain())
    for number in range(10):
        assert await client.say(b"%d" % number) == b"%d" % number
        await asyncio.sleep(0.1)
    assert await asyncio.wait_for(client.heard.get(), 10) is None, "it leaves when it is quiet"
    await asyncio.wait_for(draining, 10)


async def test_draining_ends_with_the_grace_period(start: Any) -> None:
    edge = await start(drain_grace=0.3)
    client = await talker(edge)
    client.connection.send_contents([b"slow"])
    await until(lambda: any(session.unanswered for session in edge.sessions()))
    await asyncio.wait_for(edge.drain(), 10)
    assert len(edge.sessions()) == 1
    await edge.close()
    assert await asyncio.wait_for(client.heard.get(), 10) is None and edge.finished


async def test_silent_clients_without_subscriptions_are_disconnected(start: Any) -> None:
    edge = await start(idle_ttl=0.3, idle_check=0.05)
    silent, subscribed = await talker(edge), await talker(edge)
    await subscribed.say(b"subscribe")
    assert await asyncio.wait_for(silent.heard.get(), 10) is None
    assert await subscribed.say(b"still here") == b"still here"


async def test_it_reports_at_once_and_at_the_end(start: Any) -> None:
    edge = await start()
    await until(lambda: edge.saved == 1)
    await edge.close()
    assert edge.saved == 2


async def test_a_start_that_fails_leaves_nothing_open(identity: Path) -> None:
    edge = EchoEdge(EdgeConfig(listen="127.0.0.1"), identity, http_port=-1)
    with pytest.raises((OSError, OverflowError)):
        await edge.open()
    (port,) = edge.ports
    await edge.background.close()
    await edge._listener.close()  # type: ignore[union-attr]
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)


# The program as a process


def serve(identity: Path, port: int, started: float) -> None:
    """The child process."""

    async def main() -> int:
        async def start() -> EchoEdge:
            await asyncio.sleep(started)
            edge = EchoEdge(EdgeConfig(listen="127.0.0.1", ports=(port,)), identity)
            await edge.open()
            return edge

        return await run_until_stopped(start(), lambda edge: print(edge.address, flush=True))

    sys.exit(asyncio.run(main()))


def process(identity: Path, port: int, started: float = 0.0) -> subprocess.Popen[str]:
    arguments = f"Path({str(identity)!r}), {port}, {started}"
    code = f"from tests.runtime.test_another_program import serve, Path; serve({arguments})"
    root = Path(__file__).parents[2]
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_ends_it(identity: Path, number: signal.Signals) -> None:
    child = process(identity, free_port())
    assert child.stdout is not None
    address = (await asyncio.to_thread(child.stdout.readline)).strip()
    client = Talker(await connect(address))
    assert await client.say(b"hello") == b"hello"
    child.send_signal(number)
    assert await asyncio.wait_for(client.heard.get(), 10) is None
    assert await asyncio.to_thread(child.wait, 20) == 0


async def test_a_signal_while_it_starts_ends_it(identity: Path) -> None:
    child = process(identity, free_port(), started=3600)
    await asyncio.sleep(0.2)
    with suppress(ProcessLookupError):
        while not handles_sigterm(child.pid):
            await asyncio.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(child.wait, 20) == 0
    child.stdout.close()  # type: ignore[union-attr]


def handles_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))


async def test_sighup_takes_up_a_new_certificate(tmp_path: Path) -> None:
    directory = tmp_path / "identity"
    init_identity(directory, "localhost", "ed25519")
    child = process(directory, free_port())
    assert child.stdout is not None
    address = (await asyncio.to_thread(child.stdout.readline)).strip()
    old = Talker(await connect(address))
    renew_online(directory, "localhost", "ed25519")
    os.kill(child.pid, signal.SIGHUP)
    async with asyncio.timeout(10):
        while (await connect(address))._peer_chain[0] == old.connection._peer_chain[0]:
            await asyncio.sleep(0.05)
    assert await old.say(b"still here") == b"still here"
    child.terminate()
    assert await asyncio.to_thread(child.wait, 20) == 0
