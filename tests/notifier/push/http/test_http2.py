"""HTTP/2 towards servers that limit, refuse, leave, stall and vanish."""

import asyncio

import pytest

from tests.notifier.push.http.conftest import StartServer, post
from weir.bench.standins.server import Answer, Received, Server
from weir.notifier.push.http import http2
from weir.notifier.push.http.exchange import LARGEST_RESPONSE, Lost, Origin, Refused, Request
from weir.notifier.push.http.pool import Pool

SLOW = Answer(delay=0.05)


async def test_a_request_and_its_response(start: StartServer, pool: Pool) -> None:
    seen: list[Received] = []

    def handler(request: Received) -> Answer:
        seen.append(request)
        return Answer(201, (("location", "/here"),), b"made")

    server = await start(handler)
    response = await post(pool, server, "/a?b=c", b"body")
    assert (response.status, response.headers[b"location"], response.body) == (201, b"/here", b"made")
    [request] = seen
    assert (request.method, request.path, request.body) == ("POST", "/a?b=c", b"body")
    assert request.headers[":authority"] == f"localhost:{server.port}"
    assert request.headers["x-test"] == "1"


async def test_a_request_without_a_body(start: StartServer, pool: Pool) -> None:
    server = await start(lambda request: Answer(200 if request.body == b"" else 400))
    assert (await post(pool, server, body=b"")).status == 200


async def test_requests_share_a_connection(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: SLOW)
    await post(pool, server)
    await asyncio.gather(*(post(pool, server) for _ in range(200)))
    assert server.behaviour.accepted == 1
    assert server.behaviour.most_streams > 100
    assert pool.in_flight == 0


async def test_the_servers_limit_of_streams_holds(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(delay=0.01), streams=3)
    responses = await asyncio.gather(*(post(pool, server) for _ in range(60)))
    assert {response.status for response in responses} == {200}
    assert server.behaviour.most_streams <= 3
    assert server.behaviour.accepted <= 4


async def test_at_most_1000_streams(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(failure="hang"), streams=100_000)
    connection = await pool.connection(Origin("localhost", server.port))
    assert connection.room == 1000


async def test_bodies_wait_for_the_servers_window(start: StartServer, pool: Pool) -> None:
    """A window of 1,000 bytes: each body takes several turns."""
    bodies = []

    def handler(request: Received) -> Answer:
        bodies.append(request.body)
        return Answer()

    server = await start(handler, window=1000)
    sent = [bytes([number]) * 4096 for number in range(40)]
    await asyncio.gather(*(post(pool, server, body=body) for body in sent))
    assert sorted(bodies) == sent


async def test_many_more_bytes_than_the_first_window(start: StartServer, pool: Pool) -> None:
    server = await start(lambda request: Answer(200 if len(request.body) == 4096 else 500), window=65_535)
    responses = await asyncio.gather(*(post(pool, server, body=bytes(4096)) for _ in range(300)))
    assert {response.status for response in responses} == {200}


async def test_goaway_lets_requests_in_flight_finish(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(delay=0.1))
    first = [asyncio.create_task(post(pool, server)) for _ in range(20)]
    while not server.behaviour.most_streams:
        await asyncio.sleep(0.005)
    server.go_away()
    second = [asyncio.create_task(post(pool, server)) for _ in range(20)]
    assert {response.status for response in await asyncio.gather(*first, *second)} == {200}
    assert server.behaviour.accepted == 2


async def test_goaway_refuses_what_the_server_does_not_process(start: StartServer, pool: Pool) -> None:
    """The seventh request makes the server leave; it and later ones were not processed, earlier ones were."""
    handled = []

    def handler(_: Received) -> Answer:
        handled.append(None)
        return Answer(failure="goaway") if len(handled) == 7 else Answer(delay=0.05)

    server = await start(handler)
    connection = await pool.connection(Origin("localhost", server.port))
    request = Request(Origin("localhost", server.port), b"/", [], b"{}")
    results = await asyncio.gather(*(connection.send(request, 10.0) for _ in range(10)), return_exceptions=True)
    assert [isinstance(result, Refused) for result in results] == [False] * 6 + [True] * 4
    assert connection.retired


async def test_a_refused_stream_is_not_a_lost_one(start: StartServer, pool: Pool) -> None:
    server = await start(lambda request: Answer(failure="refuse" if request.path == "/refuse" else "reset"))
    with pytest.raises(Refused):
        await post(pool, server, "/refuse")
    with pytest.raises(Lost):
        await post(pool, server, "/reset")
    assert server.behaviour.accepted == 1


async def test_a_cut_connection_loses_its_requests_and_the_next_one_is_fresh(start: StartServer, pool: Pool) -> None:
    server = await start(lambda request: Answer(failure="close") if request.path == "/cut" else Answer())
    with pytest.raises(Lost):
        await post(pool, server, "/cut")
    assert (await post(pool, server)).status == 200
    assert server.behaviour.accepted == 2


async def test_an_answer_that_never_comes(start: StartServer, pool: Pool) -> None:
    """The request is lost, its stream is cancelled, and the connection serves others."""
    server = await start(lambda request: Answer(failure="hang") if request.path == "/hang" else Answer())
    with pytest.raises(Lost, match="in time"):
        await post(pool, server, "/hang", timeout=0.1)
    assert (await post(pool, server)).status == 200
    assert server.behaviour.accepted == 1
    assert pool.in_flight == 0


async def test_a_caller_that_gives_up_cancels_the_stream(start: StartServer, pool: Pool) -> None:
    server = await start(lambda request: Answer(failure="hang") if request.path == "/hang" else Answer())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await post(pool, server, "/hang")
    assert (await post(pool, server)).status == 200
    assert pool.in_flight == 0


async def test_a_ping_finds_a_server_that_hangs(
    start: StartServer, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("SILENCE", 0.1), ("PONG_WITHIN", 0.2), ("_TICK", 0.05)):
        monkeypatch.setattr(http2, name, seconds)
    server = await start(lambda _: Answer(failure="hang"))
    pending = asyncio.create_task(post(pool, server))
    while not server.behaviour.pings:
        await asyncio.sleep(0.02)
    assert not pending.done()  # the server answers pings: it is only slow
    server.behaviour.silent = True
    with pytest.raises(Lost, match="ended"):
        await pending


async def test_a_large_response_is_cut_off(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(body=bytes(30_000)))
    response = await post(pool, server)
    assert LARGEST_RESPONSE < len(response.body) < 30_000
    assert (await post(pool, server)).status == 200


async def _raw(pool: Pool, server: Server, data: bytes) -> None:
    """Let the server send bytes while a request waits."""
    pending = asyncio.create_task(post(pool, server))
    while not server.behaviour.most_streams:
        await asyncio.sleep(0.005)
    [connection] = server.behaviour.connections
    connection.send_raw(data)
    with pytest.raises(Lost, match="ended"):
        await pending


async def test_bytes_that_are_not_http2(start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(failure="hang"))
    await _raw(pool, server, bytes.fromhex("000004010400000001ffffffff"))  # headers that cannot be decompressed


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 200_000,  # a frame of 16 MiB
        bytes.fromhex("0000080600000000000000000000000000") * 20_000,  # pings
        bytes.fromhex("000000040000000000") * 20_000,  # settings
    ],
)
async def test_a_server_that_floods(data: bytes, start: StartServer, pool: Pool) -> None:
    server = await start(lambda _: Answer(failure="hang"))
    await _raw(pool, server, data)
