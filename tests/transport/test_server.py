"""Limits of the listener: time, numbers, memory, clients that never read; and what stays when certificates change."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.transport.peer import Heard, Router, raw_peer
from weir.client.errors import ConnectionClosed
from weir.client.smp import SmpClient
from weir.crypto.certificates import fingerprint, make_self_signed
from weir.crypto.identity import init_identity, renew_online
from weir.crypto.keys import generate
from weir.transport.client import ConnectError
from weir.transport.connection import Connection
from weir.transport.handshakes import Handshakes
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import BrokerErrorTag
from weir.wire.smp.commands import PING, ServiceRole
from weir.wire.smp.handshake import ClientHello, encode_client_hello
from weir.wire.smp.replies import PONG

Start = Callable[..., Awaitable[Router]]


class Tcp(asyncio.Protocol):
    """A connection that says nothing of itself."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


async def tcp(router: Router) -> Tcp:
    _, protocol = await asyncio.get_running_loop().create_connection(Tcp, "127.0.0.1", router.port)
    return protocol


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


# Handshakes


async def test_silent_client_is_timed_out(start: Start) -> None:
    router = await start(handshake_timeout=0.1)
    silent = await tcp(router)
    await silent.closed.wait()
    assert silent.received == b""
    assert router.listener.stats.timed_out == 1 and router.listener.half_open == 0


async def test_slow_tls_handshake_is_timed_out(start: Start) -> None:
    router = await start(handshake_timeout=0.1)
    slow = await tcp(router)
    slow.transport.write(bytes.fromhex("16030100c8"))  # type: ignore[attr-defined]
    await slow.closed.wait()
    assert router.listener.stats.timed_out == 1


async def test_client_that_says_no_hello_is_timed_out(start: Start) -> None:
    router = await start(handshake_timeout=1.0)
    peer = await raw_peer(router.port)
    await peer.hear()
    assert await peer.hear() is Heard.CLOSED
    assert router.listener.stats.timed_out == 1 and router.handlers == []


async def test_short_block_is_timed_out(start: Start) -> None:
    """A hello that never becomes a whole block."""
    router = await start(handshake_timeout=1.0)
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say_raw(b"\x00\x10" + bytes(16381))
    assert await peer.hear() is Heard.CLOSED
    assert router.listener.stats.timed_out == 1 and router.handlers == []


async def test_short_block_and_goodbye(router: Router) -> None:
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say_raw(bytes(100))
    peer.close()
    await until(lambda: router.listener.half_open == 0)
    assert router.handlers == []


async def test_service_lookup_counts_as_handshake(start: Start) -> None:
    router = await start(handshake_timeout=1.0)
    asked = asyncio.Event()

    async def never(*_: object) -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return b""

    router.listener._answer = never
    with pytest.raises(ConnectError) as failure:
        credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
        await SmpClient.connect(router.address, service=credentials)
    assert asked.is_set()
    assert failure.value.error is BrokerErrorTag.NETWORK
    assert router.listener.stats.timed_out == 1


async def test_a_service_lookup_that_fails_ends_one_client_and_is_logged(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    router = await start()

    async def fails(*_: object) -> bytes:
        raise KeyError("an id of a client")

    router.listener._answer = fails
    with pytest.raises(ConnectError) as failure:
        credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
        await SmpClient.connect(router.address, service=credentials)
    assert failure.value.error is BrokerErrorTag.NETWORK
    assert router.listener.stats.failed == 1
    assert "a handshake's question was not answered (KeyError in " in caplog.text and "an id" not in caplog.text


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\xff" * 64, bytes.fromhex("1603010005") + bytes(5), b"SSH-2.0-x\r\n"],
    ids=["http", "zeros", "ones", "empty-hello", "ssh"],
)
async def test_not_tls_is_disconnected(router: Router, data: bytes) -> None:
    """At once, not after the handshake's time."""
    client = await tcp(router)
    client.transport.write(data)  # type: ignore[attr-defined]
    await client.closed.wait()
    assert router.handlers == [] and router.listener.half_open == 0
    async with await SmpClient.connect(router.address) as honest:
        await honest.ping()


async def test_half_open_flood_is_bounded_and_honest_clients_pass(start: Start) -> None:
    """The handshake that has waited longest makes room."""
    router = await start(half_open=8)
    flood = [await tcp(router) for _ in range(30)]
    await until(lambda: router.listener.stats.accepted == 30)
    assert router.listener.half_open == 8
    assert router.listener.stats.crowded_out == 22
    async with await SmpClient.connect(router.address) as client:
        await client.ping()
    await flood[0].closed.wait()
    assert not flood[-1].closed.is_set()


async def test_half_open_clients_that_wait_for_their_turn_are_not_crowded_out(start: Start) -> None:
    """A storm of honest clients: who has spoken stays, who comes when there is no room is turned away."""
    router = await start(half_open=8)
    silent = await tcp(router)
    held: list[Callable[[], None]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handshakes, "add", lambda _, step: held.append(step))
        clients = [asyncio.create_task(SmpClient.connect(router.address)) for _ in range(8)]
        await until(lambda: len(held) == 8)
        await silent.closed.wait()
        late = await tcp(router)
        await late.closed.wait()
    assert router.listener.half_open == 8 and router.listener.stats.crowded_out == 2
    for step in held:
        router.listener.handshakes.add(step)
    for client in await asyncio.gather(*clients):
        await client.ping()
        await client.close()


async def test_a_mistake_in_a_handshake_ends_one_client(start: Start) -> None:
    router = await start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_on_established", lambda *_: 1 / 0)
        with pytest.raises(ConnectError):
            await SmpClient.connect(router.address)
    async with await SmpClient.connect(router.address) as client:
        await client.ping()
    assert router.listener.half_open == 0


async def test_half_open_clients_have_no_tls_session_before_they_speak(start: Start) -> None:
    router = await start()
    for _ in range(3):
        await tcp(router)
    await until(lambda: router.listener.half_open == 3)
    assert all(connection._tls is None for connection in router.listener._half_open)


async def test_max_clients(start: Start) -> None:
    router = await start(max_clients=2)
    clients = [await SmpClient.connect(router.address) for _ in range(2)]
    with pytest.raises(ConnectError) as failure:
        await SmpClient.connect(router.address)
    assert failure.value.error is BrokerErrorTag.NETWORK
    assert router.listener.stats.refused == 1
    await clients[0].close()
    await until(lambda: len(router.listener.connections) == 1)
    async with await SmpClient.connect(router.address) as client:
        await client.ping()


# Sessions


async def test_client_that_never_reads_is_cut_off(start: Start) -> None:
    router = await start(send_timeout=0.2, outgoing_bytes=64 << 10, outgoing_low_bytes=16 << 10)
    client = await SmpClient.connect(router.address)
    await client.ping()
    client.connection.pause_reading()
    handler = router.handlers[0]
    content = b"\x01\x00\x01x" + bytes(1000)
    while not handler.connection.buffered:
        handler.connection.send_contents([content] * 16)
        await asyncio.sleep(0)
    await handler.closed.wait()
    assert router.listener.stats.stalled == 1
    assert router.listener.connections == {}


async def test_slow_reader_stays_and_the_handler_hears_when_there_is_room(start: Start) -> None:
    router = await start(send_timeout=20, outgoing_bytes=64 << 10, outgoing_low_bytes=16 << 10)
    client = await SmpClient.connect(router.address)
    await client.ping()
    client.connection.pause_reading()
    handler = router.handlers[0]
    content = b"\x01\x00\x01x" + bytes(1000)
    while handler.connection.buffered < 128 << 10:
        handler.connection.send_contents([content] * 16)
        await asyncio.sleep(0)
    assert handler.writable == 0
    client.connection.resume_reading()
    await until(lambda: handler.writable == 1)
    assert handler.connection.buffered <= 16 << 10
    assert await client.send(PING()) == PONG()
    await client.close()


async def test_blocks_of_one_turn_leave_in_order(router: Router) -> None:
    async with await SmpClient.connect(router.address) as client:
        futures = [asyncio.ensure_future(client.send(PING())) for _ in range(600)]
        assert await asyncio.gather(*futures) == [PONG()] * 600
    assert len(router.handlers[0].contents) == 3  # 255 + 255 + 90


async def test_handler_hears_the_end_once(router: Router) -> None:
    client = await SmpClient.connect(router.address)
    await client.close()
    await router.handlers[0].closed.wait()
    await until(lambda: not router.listener.connections)
    assert not client.connection.buffered
    with pytest.raises(ConnectionClosed):
        await client.send(PING())


async def test_commands_without_answer_end_with_the_connection(router: Router) -> None:
    client = await SmpClient.connect(router.address)
    await router.arrived.wait()
    router.handlers[0].connection.pause_reading()
    waiting = asyncio.ensure_future(client.send(PING()))
    await asyncio.sleep(0)
    router.handlers[0].connection.abort()
    with pytest.raises(ConnectionClosed):
        await waiting


async def test_tampered_record_ends_the_connection(router: Router) -> None:
    peer = await raw_peer(router.port)
    await peer.hear()
    hello = ClientHello(19, router.listener.identity.fingerprint, generate("x25519").public)
    peer.say(encode_client_hello(hello))
    await router.arrived.wait()
    assert peer._transport is not None
    peer._transport.write(bytes.fromhex("1703030020") + bytes(32))
    assert await peer.hear() is Heard.ALERT
    assert peer.last != b""
    await router.handlers[0].closed.wait()
    async with await SmpClient.connect(router.address) as client:
        await client.ping()


async def test_record_longer_than_tls_allows(router: Router) -> None:
    client = await tcp(router)
    client.transport.write(bytes.fromhex("160301ffff"))  # type: ignore[attr-defined]
    await client.closed.wait()


async def test_close_ends_every_client(start: Start) -> None:
    router = await start()
    address = router.address
    clients = [await SmpClient.connect(address) for _ in range(3)]
    await tcp(router)
    await router.listener.close()
    for client in clients:
        await client.closed.wait()
    with pytest.raises(ConnectError):
        await SmpClient.connect(address)


async def test_nothing_of_a_closed_connection_is_kept(router: Router) -> None:
    def connections() -> list[object]:
        gc.collect()
        return [one for one in gc.get_objects() if type(one).__name__ in ("SmpConnection", "SmpClientConnection")]

    before = connections()  # of other tests
    for _ in range(20):
        async with await SmpClient.connect(router.address) as client:
            await client.ping()
    await until(lambda: not router.listener.connections)
    router.handlers.clear()
    kept = [one for one in connections() if not any(one is other for other in before)]
    assert len(kept) <= 1  # the loop variable's


# Certificates


async def test_new_online_certificate_is_taken_up_without_dropping_clients(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / "identity"
    init_identity(directory, "localhost", "ed25519")
    router = await start(directory, reload_interval=0.05, send_timeout=0.4)
    async with await SmpClient.connect(router.address) as old:
        before = router.listener.identity.online
        renew_online(directory, "localhost", "ed25519")
        await until(lambda: router.listener.identity.online is not before)
        async with await SmpClient.connect(router.address) as new:
            assert new.connection._peer_chain[0] != old.connection._peer_chain[0]
            assert fingerprint(new.connection._peer_chain[1]) == router.address.fingerprint
            await new.ping()
        await old.ping()


async def test_certificate_of_another_key_or_identity_is_not_taken_up(start: Start, tmp_path: Path) -> None:
    directory, other = tmp_path / "identity", tmp_path / "other"
    init_identity(directory, "localhost", "ed25519")
    init_identity(other, "localhost", "ed25519")
    router = await start(directory)
    identity = router.listener.identity
    before = identity.online
    assert not identity.reload() and identity.problem is None
    (other / "server.crt").replace(directory / "server.crt")
    assert not identity.reload()
    assert identity.problem is not None
    assert identity.problem.endswith("server.crt: the certificate is not for server.key")
    (other / "server.key").replace(directory / "server.key")
    (other / "ca.crt").replace(directory / "ca.crt")
    assert not identity.reload()
    assert identity.problem == "ca.crt: another identity; a running router keeps its address"
    assert identity.online is before
    async with await SmpClient.connect(router.address) as client:
        await client.ping()


async def test_a_certificate_that_stays_unusable_is_logged_once(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "identity"
    init_identity(directory, "localhost", "ed25519")
    router = await start(directory)
    identity = router.listener.identity
    for content in ("half", "written"):
        (directory / "server.crt").write_text(content)
        assert not identity.reload()
    assert caplog.records == [], "files that change are still being written"
    for _ in range(3):
        assert not identity.reload()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the new online certificate is not in use: ") and "server.crt" in line
    renew_online(directory, "localhost", "ed25519")
    assert identity.reload() and identity.problem is None


async def test_days_to_expiry(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / "identity"
    init_identity(directory, "localhost", "ed25519")
    renew_online(directory, "localhost", "ed25519", days=30)
    router = await start(directory)
    assert 29 < router.listener.identity.days_to_expiry() <= 30
