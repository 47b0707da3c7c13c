"""A listening socket closes without resetting what is queued in its backlog."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from tests.transport.peer import Router, start_router
from weir.transport import backlog
from weir.transport.client import ConnectError
from weir.transport.server import bind
from weir.transport.smp import connect


def accept_all(sock: socket.socket) -> int:
    sock.setblocking(False)
    accepted = 0
    while True:
        try:
            sock.accept()[0].close()
        except BlockingIOError:
            return accepted
        accepted += 1


def test_queued_connections_stay_and_new_ones_wait() -> None:
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    queued = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    assert backlog.stop_filling(listening)
    late = socket.socket()
    late.settimeout(0.2)
    with pytest.raises(TimeoutError):
        late.connect(("127.0.0.1", port))
    assert accept_all(listening) == 3
    listening.close()
    for one in (*queued, late):
        one.close()


def test_data_still_flows_on_connections_that_were_accepted_behind_the_filter() -> None:
    listening = bind("127.0.0.1", 0)
    client = socket.create_connection(listening.getsockname()[:2])
    assert backlog.stop_filling(listening)
    server, _ = listening.accept()
    listening.close()
    client.sendall(b"x" * 100_000)
    assert len(server.recv(100_000, socket.MSG_WAITALL)) == 100_000
    client.close()
    assert server.recv(1) == b""
    server.close()


def test_without_the_filter_the_answer_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "_SO_ATTACH_FILTER", 0x7FFF)
    with bind("127.0.0.1", 0) as listening:
        assert not backlog.stop_filling(listening)


async def test_no_client_is_reset_while_one_of_two_listeners_stops(identity: Any) -> None:
    """Clients connect all the time to a port that two listeners share. One stops: nobody hears of it."""
    first = bind("127.0.0.1", 0, reuse_port=True)
    port = first.getsockname()[1]
    routers = [
        await start_router(identity, first),
        await start_router(identity, bind("127.0.0.1", port, reuse_port=True)),
    ]
    failures: list[str] = []
    connected = 0
    ended = threading.Event()

    def storm() -> None:
        nonlocal connected
        while not ended.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
                    sock.settimeout(0.001)
                    try:
                        sock.recv(1)  # nobody speaks first, so only a reset or an end could arrive
                        failures.append("ended")
                    except TimeoutError:
                        connected += 1
            except OSError as error:
                failures.append(str(error))

    threads = [threading.Thread(target=storm) for _ in range(4)]
    for thread in threads:
        thread.start()
    await asyncio.sleep(0.5)
    await routers[0].listener.stop_accepting()
    await asyncio.sleep(0.5)
    ended.set()
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])
    assert failures == [] and connected > 50
    assert routers[1].listener.stats.accepted > 0
    for router in routers:
        await router.listener.close()


async def half_open(router: Router) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    before = router.listener.stats.accepted
    streams = await asyncio.open_connection("127.0.0.1", router.port)
    while router.listener.stats.accepted == before:
        await asyncio.sleep(0.005)
    return streams


async def test_handshakes_under_way_end_cleanly_when_clients_are_refused(either: Router) -> None:
    """In each state of a handshake: before TLS, within it, before the hello, and in the accept queue."""
    silent, writer = await half_open(either)
    speaking, speaking_writer = await half_open(either)
    speaking_writer.write(bytes.fromhex("16030100c8") + b"\x01")
    peer = await either.peer()
    await peer.hear()
    queued = socket.create_connection(("127.0.0.1", either.port))
    queued.sendall(b"\x16\x03\x01\x02\x00\x01")
    either.listener.refuse_clients()
    await either.listener.stop_accepting()
    queued.settimeout(5)
    assert await asyncio.to_thread(queued.recv, 100) == b"", "an end, no reset"
    assert await silent.read() == b"" and await speaking.read() == b""
    peer.say(either.dialect.client_hello(either.dialect.versions.max, either.listener.identity.fingerprint))
    assert await peer.hear() is not None
    assert either.handlers == [] and either.listener.stats.refused == 4
    for one in (writer, speaking_writer, queued):
        one.close()
    async with asyncio.timeout(5):
        while either.listener.half_open:
            await asyncio.sleep(0.01)


async def test_clients_that_are_connected_stay_when_others_are_refused(either: Router) -> None:
    connection = await either.dialect.connect(either.address)
    await either.arrived.wait()
    either.listener.refuse_clients()
    connection.send_contents([either.dialect.ping(connection.session)])
    async with asyncio.timeout(5):
        while not either.handlers[0].contents:
            await asyncio.sleep(0.005)
    assert not connection.closing
    connection.close()


async def test_a_refused_client_hears_of_it_at_once(identity: Any) -> None:
    router = await start_router(identity)
    router.listener.refuse_clients()
    started = asyncio.get_running_loop().time()
    with pytest.raises(ConnectError):
        await connect(router.address)
    assert asyncio.get_running_loop().time() - started < 5
    await router.listener.close()
