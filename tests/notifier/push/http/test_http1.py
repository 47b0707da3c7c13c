"""HTTP/1.1 towards servers without HTTP/2."""

import asyncio

import pytest

from tests.notifier.push.http.conftest import StartServer, post
from weir.bench.standins.server import Answer, Received
from weir.notifier.push.http.exchange import LARGEST_RESPONSE, Lost
from weir.notifier.push.http.pool import Pool


async def test_a_request_and_its_response(start: StartServer, pool: Pool) -> None:
    seen: list[Received] = []

    def handler(request: Received) -> Answer:
        seen.append(request)
        return Answer(201, (("location", "/here"),), b"made")

    server = await start(handler, http1_only=True)
    for _ in range(2):
        response = await post(pool, server, "/a?b=c", b"body")
        assert (response.status, response.headers[b"location"], response.body) == (201, b"/here", b"made")
    assert (seen[0].method, seen[0].path, seen[0].body) == ("POST", "/a?b=c", b"body")
    assert seen[0].headers["host"] == f"localhost:{server.port}"
    assert seen[0].headers["x-test"] == "1"
    assert server.behaviour.accepted == 1


async def test_requests_at_once_share_few_connections(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(delay=0.005), http1_only=True)
    responses = await asyncio.gather(*(post(pool, server) for _ in range(30)))
    assert {response.status for response in responses} == {200}
    assert server.behaviour.accepted == 4


async def test_a_cut_connection_loses_its_request(start: StartServer, pool: Pool) -> None:
    server = await start(
        lambda request: Answer(failure="close") if request.path == "/cut" else Answer(), http1_only=True
    )
    with pytest.raises(Lost):
        await post(pool, server, "/cut")
    assert (await post(pool, server)).status == 200
    assert server.behaviour.accepted == 2


async def test_an_answer_that_never_comes(start: StartServer, pool: Pool) -> None:
    """The connection cannot be used again: the answer may still come."""
    server = await start(
        lambda request: Answer(failure="hang") if request.path == "/hang" else Answer(), http1_only=True
    )
    with pytest.raises(Lost, match="in time"):
        await post(pool, server, "/hang", timeout=0.1)
    assert (await post(pool, server)).status == 200
    assert server.behaviour.accepted == 2


async def test_a_large_response_is_cut_off(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(body=bytes(20_000)), http1_only=True)
    response = await post(pool, server)
    assert LARGEST_RESPONSE < len(response.body) <= 20_000


async def test_a_server_that_floods(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(failure="hang"), http1_only=True)
    pending = asyncio.create_task(post(pool, server))
    while pool.in_flight == 0:
        await asyncio.sleep(0.005)
    [connection] = server.behaviour.connections
    connection.send_raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)
    with pytest.raises(Lost, match="ended"):
        await pending


async def test_bytes_that_are_not_http(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(failure="hang"), http1_only=True)
    pending = asyncio.create_task(post(pool, server))
    while pool.in_flight == 0:
        await asyncio.sleep(0.005)
    [connection] = server.behaviour.connections
    connection.send_raw(b"\xff" * 200 + b"\r\n\r\n")
    with pytest.raises(Lost):
        await pending
