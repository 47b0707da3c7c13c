"""Clients that misuse a router as hard as one client can, for `weir bench fairness`.

Each kind of client prepares what it needs, calls `ready`, and then works until it is cancelled. `hostile_client` runs
one in a process of its own, so that it shares nothing with the client that is measured.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator

from weir.bench.clients import Queue, open_client, send_to_each
from weir.bench.created import Created
from weir.bench.target import BenchError, Target
from weir.bench.workers import Worker, pool
from weir.client.errors import ClientError
from weir.client.smp import Request, SmpClient
from weir.crypto.keys import generate
from weir.wire.smp.commands import GET, PFWD, PING, PRXY, SEND, SUB
from weir.wire.smp.replies import PKEY

Ready = Callable[[], object]

_OUTSTANDING = 64
_BODY = bytes(16000)


async def _create(target: Target, client: SmpClient, count: int, *, subscribe: bool = True) -> list[Queue]:
    """Create queues that stay: hostile clients work at routers that the bench removes."""
    return await Created(target).queues(client, count, "x25519", subscribe=subscribe)


async def never_reads(target: Target, ready: Ready) -> None:
    """Subscribe to 100 queues that receive messages, send PINGs without end, and read nothing."""
    client, sender = await open_client(target), await open_client(target)
    queues = await _create(target, client, 100)
    transport = client.connection._transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    client.connection.pause_reading()
    ready()

    async def ask() -> None:
        while True:
            for _ in range(100):
                with contextlib.suppress(ClientError):
                    client.submit(PING(), b"", None, lambda _: None)
            await asyncio.sleep(0.05)

    async def feed() -> None:
        while True:
            for queue in queues:
                await sender.send(SEND(False, _BODY), queue.snd_id)
                await asyncio.sleep(0.005)

    await asyncio.gather(ask(), feed())


async def floods(target: Target, ready: Ready) -> None:
    """Keep 64 SENDs in flight on one connection."""
    client = await open_client(target)
    (queue,) = await _create(target, client, 1)
    ready()

    async def send() -> None:
        while True:
            await client.send(SEND(False, _BODY), queue.snd_id)

    await asyncio.gather(*(send() for _ in range(_OUTSTANDING)))


async def subscribes(target: Target, ready: Ready) -> None:
    """Send full blocks of SUBs in sessions that have not verified any of the keys before."""
    client = await open_client(target)
    queues = await _create(target, client, 135)
    ready()
    while True:
        session = await open_client(target)
        for _ in range(5):
            await session.send_many([Request(SUB(), queue.rcv_id, queue.rcv_key) for queue in queues])
        await session.close()


async def pings(target: Target, ready: Ready) -> None:
    """Send full blocks of commands that the edge answers without Redis."""
    client = await open_client(target)
    ready()
    await _send_blocks(client, [Request(PING())] * 255)


async def forges(target: Target, ready: Ready) -> None:
    """Send full blocks of SUBs with a wrong key. The edge verifies each against the cached and against a new record."""
    client = await open_client(target)
    queues = await _create(target, client, 100)
    key = generate("x25519")
    ready()
    await _send_blocks(client, [Request(SUB(), queue.rcv_id, key) for queue in queues])


async def gets(target: Target, ready: Ready) -> None:
    """Send full blocks of GETs. Each reply carries 16 KB."""
    client = await open_client(target)
    queues = await _create(target, client, 100, subscribe=False)
    await send_to_each(target, queues, len(_BODY))
    ready()
    await _send_blocks(client, [Request(GET(), queue.rcv_id, queue.rcv_key) for queue in queues], 2)


async def creates(target: Target, ready: Ready) -> None:
    """Create queues without end."""
    client = await open_client(target)
    ready()

    async def create() -> None:
        while True:
            await _create(target, client, 1)

    await asyncio.gather(*(create() for _ in range(_OUTSTANDING)))


async def talks_nonsense(target: Target, ready: Ready) -> None:
    """Send blocks that the router cannot parse."""
    client = await open_client(target)
    ready()
    while not client.closed.is_set():
        client.connection.send_contents([_BODY] * 8)
        for _ in range(8):
            await client.events.get()


async def dribbles(target: Target, ready: Ready) -> None:
    """Send invalid TLS records byte by byte."""
    ready()
    while True:
        client = await open_client(target)
        transport = client.connection._transport
        assert transport is not None
        transport.write(b"\x17\x03\x03\x40\x10")
        while not client.closed.is_set():
            transport.write(b"\0")
            await asyncio.sleep(0)


async def reconnects(target: Target, ready: Ready) -> None:
    """Connect and disconnect without end, sixteen connections at a time. Each costs the edge a handshake."""
    ready()

    async def connect() -> None:
        while True:
            client = await open_client(target)
            client.connection.abort()

    await asyncio.gather(*(connect() for _ in range(16)))


async def forwards(target: Target, ready: Ready) -> None:
    """Keep 64 forwarded commands in flight. The relay is the same router, and it cannot decrypt the commands."""
    client = await open_client(target)
    session = await client.send(PRXY(target.address.server_host, None))
    if not isinstance(session, PKEY):
        raise BenchError("PRXY failed: the router must allow relays on this machine")
    command = PFWD(session.versions.max, generate("x25519").public, bytes(16242))
    ready()

    async def forward() -> None:
        while True:
            await client.send(command, session.session_id)

    await asyncio.gather(*(forward() for _ in range(_OUTSTANDING)))


async def _send_blocks(client: SmpClient, requests: list[Request], in_flight: int = 4) -> None:
    async def ask() -> None:
        while True:
            await client.send_many(requests)

    await asyncio.gather(*(ask() for _ in range(in_flight)))


KINDS: dict[str, Callable[[Target, Ready], Awaitable[None]]] = {
    "never reads": never_reads,
    "floods": floods,
    "subscribes": subscribes,
    "pings": pings,
    "forges": forges,
    "gets": gets,
    "creates": creates,
    "talks nonsense": talks_nonsense,
    "dribbles": dribbles,
    "reconnects": reconnects,
    "forwards": forwards,
}


@contextlib.contextmanager
def hostile_client(kind: str, target: Target) -> Iterator[None]:
    """Run a hostile client during the `with` block. Raises BenchError if the client stopped before the end."""
    with pool(_work, [(kind, target)]) as workers:
        workers.gather()
        yield
        workers.start_all("stop")
        workers.gather()


async def _work(worker: Worker, share: tuple[str, Target]) -> None:
    kind, target = share
    ready = asyncio.Event()
    work = asyncio.ensure_future(KINDS[kind](target, ready.set))
    for step in (ready.wait, worker.report):
        waiting = asyncio.ensure_future(step())
        await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            raise BenchError(f"the client that {kind} stopped")
    work.cancel()
