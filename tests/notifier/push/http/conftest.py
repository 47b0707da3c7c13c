from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from weir.bench.standins.authority import Authority
from weir.bench.standins.server import Handler, Server
from weir.notifier.push.http.exchange import Origin, Request, Response
from weir.notifier.push.http.pool import Pool

StartServer = Callable[..., Coroutine[Any, Any, Server]]


@pytest.fixture
async def start(authority: Authority) -> AsyncIterator[StartServer]:
    servers = []

    async def begin(handler: Handler, *, streams: int = 1000, window: int = 2**24, http1_only: bool = False) -> Server:
        server = Server(handler, authority.server_context(), http1_only=http1_only)
        server.behaviour.streams, server.behaviour.window = streams, window
        servers.append(server)
        await server.start()
        return server

    yield begin
    for server in servers:
        await server.close()


@pytest.fixture
async def pool(authority: Authority) -> AsyncIterator[Pool]:
    pool = Pool(authority.client_context(), allow_local=True)
    yield pool
    await pool.close()


async def post(pool: Pool, server: Server, path: str = "/", body: bytes = b"{}", timeout: float = 10.0) -> Response:
    origin = Origin("localhost", server.port)
    connection = await pool.connection(origin)
    return await connection.send(Request(origin, path.encode(), [(b"x-test", b"1")], body), timeout)
