"""The hosts of a relay that are dialled, the way to them, and the number of sessions."""

import asyncio

import pytest

from tests.router.fleet import Fleet
from tests.router.proxied import server_host
from weir.router.config import Proxy, RouterConfig
from weir.router.proxy.relays import RelayError, Relays
from weir.wire.address import ServerHost
from weir.wire.errors import BrokerErrorTag

ONION = "a" * 56 + ".onion"


@pytest.mark.parametrize(
    ("host", "port"),
    [
        (b"a..b", b""),
        (b"a" * 64 + b".example", b""),
        (b"127.0.0.1", "²".encode("latin-1")),
        (b"127.0.0.1", b"65536"),
    ],
)
async def test_hosts_and_ports_that_no_router_can_have(host: bytes, port: bytes) -> None:
    relays = Relays(Proxy(allow_local_relays=True))
    with pytest.raises(RelayError) as caught:
        await relays.get(ServerHost((host,), port, bytes(32)))
    assert caught.value.error is BrokerErrorTag.HOST
    await relays.close()


class Socks:
    """A SOCKS5 proxy that knows one name."""

    def __init__(self, port: int) -> None:
        self.destination = port
        self.asked: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\5\0")
        kind = (await reader.readexactly(4))[3]
        assert kind == 3, "a name, not an address"
        self.asked.append(await reader.readexactly((await reader.readexactly(1))[0]))
        await reader.readexactly(2)
        there, back = await asyncio.open_connection("127.0.0.1", self.destination)
        writer.write(b"\5\0\0\1" + bytes(6))

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
            target.close()

        await asyncio.gather(pump(reader, back), pump(there, writer))


async def test_an_onion_host_through_socks(relay: Fleet) -> None:
    socks = Socks(relay[0].ports[0])
    server = await asyncio.start_server(socks.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    relays = Relays(Proxy(socks_proxy=f"127.0.0.1:{port}"))
    host = server_host(relay.address())._replace(hosts=(ONION.encode(),))
    session = await relays.get(host)
    await session.client.ping()
    assert socks.asked == [ONION.encode()]
    await relays.close()
    server.close()


async def test_one_session_for_all_who_ask_at_once(relay: Fleet) -> None:
    relays = Relays(Proxy(allow_local_relays=True))
    host = server_host(relay.address())
    sessions = await asyncio.gather(*(relays.get(host) for _ in range(20)))
    assert len(set(map(id, sessions))) == 1 and len(relays) == 1
    await relays.close()


async def test_their_number_is_bounded(config: RouterConfig, relay: Fleet) -> None:
    """The one unused for longest makes room; when all are in use, there is none."""
    await relay.add()
    await relay.add()
    relays = Relays(Proxy(allow_local_relays=True, relay_limit=2))
    first = await relays.get(server_host(relay.address(0)))
    second = await relays.get(server_host(relay.address(1)))
    third = await relays.get(server_host(relay.address(2)))
    async with asyncio.timeout(5):
        await first.client.closed.wait()
    assert len(relays) == 2
    second.waiting = third.waiting = 1
    with pytest.raises(RelayError) as refused:
        await relays.get(server_host(relay.address(0)))
    assert refused.value.error is BrokerErrorTag.TIMEOUT
    await relays.close()


async def test_unused_sessions_are_let_go(relay: Fleet) -> None:
    relays = Relays(Proxy(allow_local_relays=True, idle_ttl=0.0))
    session = await relays.get(server_host(relay.address()))
    relays._tick()
    async with asyncio.timeout(5):
        await session.client.closed.wait()
    assert len(relays) == 0
    assert relays.session(session.session_id) is None
    await relays.close()


async def test_a_session_that_ends_late(relay: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay has a new session before the connection of the old session is closed: the new session stays."""
    relays = Relays(Proxy(allow_local_relays=True, idle_ttl=0.0))
    host = server_host(relay.address())
    first = await relays.get(host)
    with monkeypatch.context() as slowly:
        slowly.setattr(type(first.client.connection), "close", lambda _: None)
        relays._tick()
    second = await relays.get(host)
    assert second is not first
    first.client.connection.abort()
    async with asyncio.timeout(5):
        while len(relays._watchers) > 1:
            await asyncio.sleep(0.01)
    assert await relays.get(host) is second
    await relays.close()


@pytest.mark.parametrize("host", [b"64:ff9b::a00:1", b"64:ff9b:1::7f00:1", b"2002:7f00:1::1", b"::ffff:127.0.0.1"])
async def test_addresses_that_lead_to_a_private_one(host: bytes) -> None:
    """The proxy refuses such addresses at once. Otherwise NETWORK or TIMEOUT would tell what is in the network."""
    relays = Relays(Proxy())
    with pytest.raises(RelayError) as caught:
        await relays.get(ServerHost((host,), b"", bytes(32)))
    assert caught.value.error is BrokerErrorTag.HOST
    await relays.close()


async def test_failed_relays_are_bounded() -> None:
    """A client that asks for one bad relay after the other does not fill the memory. Failures are forgotten in time."""
    relays = Relays(Proxy(relay_limit=3))
    hosts = [ServerHost((b"%d..b" % n,), b"", bytes(32)) for n in range(10)]
    for host in hosts:
        with pytest.raises(RelayError):
            await relays.get(host)
    assert list(relays._failed) == hosts[-3:]
    await relays.close()

    relays = Relays(Proxy(error_ttl=0.0))
    with pytest.raises(RelayError):
        await relays.get(hosts[0])
    relays._tick()
    assert not relays._failed
    await relays.close()


async def test_a_failure_that_many_ask_for() -> None:
    """Each caller gets an error of its own: one that is raised again and again would grow with each raise."""
    relays = Relays(Proxy())
    host = ServerHost((b"a..b",), b"", bytes(32))
    errors = []
    for _ in range(3):
        with pytest.raises(RelayError) as caught:
            await relays.get(host)
        errors.append(caught.value)
    assert len(set(map(id, errors))) == 3
    assert {error.error for error in errors} == {BrokerErrorTag.HOST}
    await relays.close()
