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
from weir.wire.commands import NEW, PING, SEND, SUB, MessagingReq
from weir.wire.replies import IDS

_OUTSTANDING = 64
_BODY = bytes(16000)


async def new_queue(client: SmpClient) -> tuple[IDS, KeyPair]:
    key = generate("x25519")
    reply = await client.send(NEW(key.spki, generate("x25519").public, queue_req=MessagingReq()), b"", key)
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


KINDS = {"never reads": never_reads, "floods": floods, "subscribes": subscribes}


async def main(kind: str, address: str) -> None:
    work = asyncio.ensure_future(KINDS[kind](address))
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    work.cancel()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2]))
