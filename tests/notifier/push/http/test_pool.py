"""Connections are opened, shared and closed; private addresses are never dialled."""

import asyncio
import ssl

import pytest

from tests.notifier.push.http.conftest import StartServer, post
from tests.support.ports import free_port
from weir.bench.standins.authority import Authority
from weir.bench.standins.server import Answer, Server
from weir.notifier.push.http import pool as pool_module
from weir.notifier.push.http.exchange import Forbidden, Origin, Unreachable
from weir.notifier.push.http.pool import Pool
from weir.transport import destinations


async def test_a_second_connection_is_opened_when_the_first_is_full(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(delay=0.05), streams=10)
    await asyncio.gather(*(post(pool, server) for _ in range(80)))
    assert 1 < server.behaviour.accepted <= 4


async def test_nobody_waits_for_a_server_that_is_not_there(pool: Pool) -> None:
    origin = Origin("localhost", free_port())
    results = await asyncio.gather(*(pool.connection(origin) for _ in range(10)), return_exceptions=True)
    assert {type(result) for result in results} == {Unreachable}
    assert origin.host not in str(results[0])


async def test_a_certificate_that_nobody_signed(start: StartServer) -> None:
    server = await start(lambda _: Answer())
    pool = Pool(ssl.create_default_context(), allow_local=True)
    with pytest.raises(Unreachable, match="not trusted"):
        await post(pool, server)
    await pool.close()


async def test_a_certificate_of_another_name(authority: Authority, pool: Pool) -> None:
    server = Server(lambda _: Answer(), authority.server_context())
    await server.start("127.0.0.2")
    with pytest.raises(Unreachable, match="not trusted"):
        await pool.connection(Origin("127.0.0.2", server.port))
    await server.close()


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "0.0.0.0", "10.1.2.3", "169.254.169.254", "2130706433", "0x7f.1", "127.1"],
)
async def test_flaw_private_endpoints_are_not_dialled(host: str, start: StartServer, authority: Authority) -> None:
    server = await start(lambda _: Answer())
    pool = Pool(authority.client_context())
    with pytest.raises((Forbidden, Unreachable)) as caught:
        await pool.connection(Origin(host, server.port))
    assert isinstance(caught.value, Forbidden) or host == "0x7f.1"
    assert server.behaviour.accepted == 0
    await pool.close()


@pytest.mark.parametrize("host", ["a..b", ".", ".localhost", "localhost.", "x" * 64, "x" * 253, "-", "_"])
async def test_names_that_are_none(host: str, authority: Authority) -> None:
    pool = Pool(authority.client_context(), allow_local=True)
    async with asyncio.timeout(10):
        with pytest.raises((Forbidden, Unreachable)):
            await pool.connection(Origin(host, free_port()))
    await pool.close()


async def test_an_unexpected_error_leaves_nobody_waiting(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("secret.example")

    monkeypatch.setattr(pool_module, "resolve", broken)
    with pytest.raises(Unreachable):
        await pool.connection(Origin("secret.example", 443))
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


async def test_every_connection_is_checked_and_names_are_never_dialled(
    authority: Authority, start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere after the first connection: the second connection is refused."""
    server = await start(lambda _: Answer())
    public = {"now": True}
    monkeypatch.setattr(destinations, "is_public", lambda address: public["now"])
    pool = Pool(authority.client_context())
    assert (await post(pool, server)).status == 200
    public["now"] = False
    assert (await post(pool, server)).status == 200  # on the connection that was checked
    server.cut()
    while pool.connections:
        await asyncio.sleep(0.005)
    with pytest.raises(Forbidden):
        await post(pool, server)
    assert server.behaviour.accepted == 1
    await pool.close()


async def test_idle_connections_are_closed(authority: Authority, start: StartServer) -> None:
    server = await start(lambda _: Answer())
    pool = Pool(authority.client_context(), allow_local=True, idle=0.0, sweep=0.02)
    await post(pool, server)
    while pool.connections or server.behaviour.connections:
        await asyncio.sleep(0.01)
    await post(pool, server)
    assert server.behaviour.accepted == 2
    await pool.close()


async def test_a_connection_in_use_is_not_idle(authority: Authority, start: StartServer) -> None:
    server = await start(lambda _: Answer(delay=0.2))
    pool = Pool(authority.client_context(), allow_local=True, idle=0.0, sweep=0.01)
    assert (await post(pool, server)).status == 200
    await pool.close()


async def test_the_longest_idle_origin_makes_room(authority: Authority, start: StartServer) -> None:
    pool = Pool(authority.client_context(), allow_local=True, origins=2)
    servers = [await start(lambda _: Answer()) for _ in range(3)]
    for server in servers:
        await post(pool, server)
    assert pool.connections == 2
    await post(pool, servers[1])
    assert servers[1].behaviour.accepted == 1
    await pool.close()


async def test_a_retired_connection_answers_and_takes_nothing_more(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(delay=0.05))
    origin = Origin("localhost", server.port)
    pending = asyncio.create_task(post(pool, server))
    connection = await pool.connection(origin)
    while not pool.in_flight:
        await asyncio.sleep(0.005)
    connection.retire()
    assert await pool.connection(origin) is not connection
    assert (await pending).status == 200


async def test_a_closed_pool_lets_nobody_wait(authority: Authority, start: StartServer) -> None:
    server = await start(lambda _: Answer(failure="hang"), streams=1)
    pool = Pool(authority.client_context(), allow_local=True, per_origin=1)
    pending = [asyncio.create_task(post(pool, server)) for _ in range(3)]
    while not pool.in_flight:
        await asyncio.sleep(0.005)
    await pool.close()
    results = await asyncio.gather(*pending, return_exceptions=True)
    assert all(isinstance(result, Exception) for result in results)
    with pytest.raises(Unreachable, match="stopping"):
        await pool.connection(Origin("localhost", server.port))
