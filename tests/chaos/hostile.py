"""Clients that others must not notice, as a process: `python -m tests.chaos.hostile KIND ADDRESS`.

It says `ready` when it is at work, and works until its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

import uvloop

from weir.client.smp import ClientError, Request, SmpClient
from weir.crypto.keys import KeyPair, generate
from weir.wire.address import SmpAddress
from weir.wire.commands import GET, NEW, PFWD, PING, PRXY, SEND, SUB, MessagingReq
from weir.wire.replies import IDS, PKEY

_OUTSTANDING = 64
_BODY = bytes(16000)


async def new_queue(client: SmpClient, *, subscribe: bool = True) -> tuple[IDS, KeyPair]:
    key = generate("x25519")
    command = NEW(key.spki, generate("x25519").public, subscribe=subscribe, queue_req=MessagingReq())
    reply = await client.send(command, b"", key)
    assert isinstance(reply, IDS), reply
    return reply, key


async def never_reads(address: str) -> None:
    """Subscribed to 100 queues that get messages, asking without end, and never taking an answer."""
    client, sender = await SmpClient.connect(address), await SmpClient.connect(address)
    queues = [await new_queue(client) for _ in range(100)]
    transport = client.connection._transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    client.connection.pause_reading()
    print("ready", flush=True)

    async def ask() -> None:
        while True:
            for _ in range(100):
                with contextlib.suppress(ClientError):
                    client.submit(PING(), b"", None, lambda _: None)
            await asyncio.sleep(0.05)

    async def feed() -> None:
        while True:
            for ids, _ in queues:
                await sender.send(SEND(False, _BODY), ids.snd_id)
                await asyncio.sleep(0.005)

    await asyncio.gather(ask(), feed())


async def floods(address: str) -> None:
    """As many SENDs as one connection can have under way."""
    client = await SmpClient.connect(address)
    ids, _ = await new_queue(client)
    print("ready", flush=True)

    async def send() -> None:
        while True:
            await client.send(SEND(False, _BODY), ids.snd_id)

    await asyncio.gather(*(send() for _ in range(_OUTSTANDING)))


async def subscribes(address: str) -> None:
    """Blocks of 135 SUBs, one after another, each from a session that has verified none of the keys yet."""
    client = await SmpClient.connect(address)
    queues = [await new_queue(client) for _ in range(135)]
    print("ready", flush=True)
    while True:
        session = await SmpClient.connect(address)
        for _ in range(5):
            await session.send_many([Request(SUB(), ids.rcv_id, key) for ids, key in queues])
        await session.close()


async def pings(address: str) -> None:
    """Full blocks of commands that the edge answers by itself."""
    client = await SmpClient.connect(address)
    print("ready", flush=True)
    await _blocks(client, [Request(PING())] * 255)


async def forges(address: str) -> None:
    """Full blocks of SUBs by somebody who does not have the queues' keys: each is looked up and verified twice."""
    client = await SmpClient.connect(address)
    queues = [await new_queue(client) for _ in range(100)]
    key = generate("x25519")
    print("ready", flush=True)
    await _blocks(client, [Request(SUB(), ids.rcv_id, key) for ids, _ in queues])


async def gets(address: str) -> None:
    """Full blocks of GETs, each of which brings 16 KB."""
    client = await SmpClient.connect(address)
    queues = [await new_queue(client, subscribe=False) for _ in range(100)]
    await client.send_many([Request(SEND(False, _BODY), ids.snd_id) for ids, _ in queues])
    print("ready", flush=True)
    await _blocks(client, [Request(GET(), ids.rcv_id, key) for ids, key in queues], 2)


async def creates(address: str) -> None:
    """Queues without end."""
    client = await SmpClient.connect(address)
    print("ready", flush=True)

    async def create() -> None:
        while True:
            await new_queue(client)

    await asyncio.gather(*(create() for _ in range(_OUTSTANDING)))


async def talks_nonsense(address: str) -> None:
    """Blocks that cannot be read."""
    client = await SmpClient.connect(address)
    print("ready", flush=True)
    while not client.closed.is_set():
        client.connection.send_contents([_BODY] * 8)
        for _ in range(8):
            await client.events.get()


async def dribbles(address: str) -> None:
    """Records that arrive byte by byte, and are nothing once they are whole."""
    print("ready", flush=True)
    while True:
        client = await SmpClient.connect(address)
        transport = client.connection._transport
        assert transport is not None
        transport.write(b"\x17\x03\x03\x40\x10")
        while not client.closed.is_set():
            transport.write(b"\0")
            await asyncio.sleep(0)


async def reconnects(address: str) -> None:
    """Connections without end, sixteen at a time: each costs the edge a handshake."""
    print("ready", flush=True)

    async def connect() -> None:
        while True:
            client = await SmpClient.connect(address)
            client.connection.abort()

    await asyncio.gather(*(connect() for _ in range(16)))


async def forwards(address: str) -> None:
    """Commands for a relay, which is the same router: it has both ends of each, and cannot open what is inside."""
    client = await SmpClient.connect(address)
    relay = SmpAddress.parse(address)
    assert relay is not None
    session = await client.send(PRXY(relay.server_host, None))
    assert isinstance(session, PKEY), session
    command = PFWD(session.versions.max, generate("x25519").public, bytes(16242))
    print("ready", flush=True)

    async def forward() -> None:
        while True:
            await client.send(command, session.session_id)

    await asyncio.gather(*(forward() for _ in range(_OUTSTANDING)))


async def _blocks(client: SmpClient, requests: list[Request], at_once: int = 4) -> None:
    async def ask() -> None:
        while True:
            await client.send_many(requests)

    await asyncio.gather(*(ask() for _ in range(at_once)))


KINDS = {
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


async def main(kind: str, address: str) -> None:
    work = asyncio.ensure_future(KINDS[kind](address))
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    work.cancel()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2]))
