"""Edges and clients for the router's tests: real TLS, a real Redis, any number of edges in this process."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weir.client.smp import Answer, Request, SmpClient
from weir.crypto.authenticator import authenticate
from weir.crypto.keys import KeyPair, KeyType, dh, generate
from weir.redis.settings import Redis
from weir.router.config import Proxy, Queues, RouterConfig, Transport
from weir.router.edge import Edge
from weir.surface.settings import Http
from weir.transport.server import bind
from weir.wire.errors import ErrorType
from weir.wire.smp import commands as cmd
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import Command, MessagingReq, QueueMode, QueueReq
from weir.wire.smp.message import RcvMsgBody, RcvMsgQuota, decrypt_message
from weir.wire.smp.replies import ERR, IDS, MSG, OK, SOK, Reply
from weir.wire.smp.transmission import ServerTransmission, decode_replies, encode_client, for_auth, pack

LIMIT = 10.0
_MESSAGING = MessagingReq()


class Fleet:
    """Edges on one Redis. `fleet[0]` is the first."""

    def __init__(self, config: RouterConfig) -> None:
        self.config = config
        self.edges: list[Edge] = []
        self.clients: list[SmpClient] = []

    async def add(self, **changes: Any) -> Edge:
        config = replace(self.config, **changes)
        sock = bind("127.0.0.1", 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)  # a slow reader shows soon
        edge = await Edge.start(config, socks=[sock])
        self.edges.append(edge)
        return edge

    def __getitem__(self, index: int) -> Edge:
        return self.edges[index]

    def address(self, edge: int = 0) -> str:
        return self.edges[edge].address

    async def client(self, edge: int = 0, **options: Any) -> Peer:
        client = await SmpClient.connect(self.address(edge), reply_timeout=LIMIT, **options)
        self.clients.append(client)
        return Peer(client)

    async def close(self) -> None:
        for client in self.clients:
            client.connection.abort()
        for edge in self.edges:
            await edge.close()


@dataclass
class Peer:
    """One client: `do` a command and get the reply, or wait for the next event."""

    smp: SmpClient

    async def do(self, command: Command, entity_id: bytes = b"", key: KeyPair | None = None, **options: Any) -> Answer:
        return await self.smp.send(command, entity_id, key, **options)

    async def event(self) -> ServerTransmission:
        async with asyncio.timeout(LIMIT):
            return await self.smp.events.get()

    async def msg(self, queue: Queue) -> tuple[bytes, RcvMsgBody | RcvMsgQuota | None]:
        """The next event must be a message of this queue: its id and what is in it."""
        event = await self.event()
        assert event.entity_id == queue.rcv_id, event
        assert isinstance(event.reply, MSG), event
        return event.reply.msg_id, queue.open(event.reply)

    async def text(self, queue: Queue) -> bytes:
        """The body of the next message, which is acknowledged; nothing may follow it."""
        msg_id, body = await self.msg(queue)
        assert isinstance(body, RcvMsgBody)
        assert await self.ack(queue, msg_id) == OK()
        return body.body

    async def ack(self, queue: Queue, msg_id: bytes) -> Answer:
        return await self.do(cmd.ACK(msg_id), queue.rcv_id, queue.rcv_key)

    def stop_reading(self) -> None:
        transport = self.smp.connection._transport
        assert transport is not None
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        self.smp.connection.pause_reading()

    def read_again(self) -> None:
        self.smp.connection.resume_reading()

    async def silence(self) -> None:
        """Nothing else comes: after a round trip through the router and Redis there is no event."""
        await self.smp.ping()
        await asyncio.sleep(0.05)
        assert self.smp.events.empty(), self.smp.events.get_nowait()

    async def send(self, queue: Queue, body: bytes, notification: bool = False) -> Answer:
        return await self.do(cmd.SEND(notification, body), queue.snd_id, queue.snd_key)

    async def new(
        self,
        key_type: KeyType = "x25519",
        *,
        subscribe: bool = True,
        request: QueueReq | None = _MESSAGING,
        secure: bool = False,
        **options: Any,
    ) -> Queue:
        key, dh_key = generate(key_type), generate("x25519")
        command = cmd.NEW(key.spki, dh_key.public, subscribe=subscribe, queue_req=request, **options)
        reply = await self.do(command, b"", key)
        assert isinstance(reply, IDS), reply
        queue = Queue(reply, key, dh(reply.dh_key, dh_key.private))
        if secure:
            queue.snd_key = generate(key_type)
            assert await self.do(cmd.KEY(queue.snd_key.spki), queue.rcv_id, key) == OK()
        return queue

    async def sub(self, queue: Queue) -> Answer:
        return await self.do(cmd.SUB(), queue.rcv_id, queue.rcv_key)

    async def close(self) -> None:
        await self.smp.close()


@dataclass
class Queue:
    """A queue as its recipient knows it, and its sender's key."""

    ids: IDS
    rcv_key: KeyPair
    secret: bytes
    snd_key: KeyPair | None = None

    @property
    def rcv_id(self) -> bytes:
        return self.ids.rcv_id

    @property
    def snd_id(self) -> bytes:
        return self.ids.snd_id

    @property
    def mode(self) -> QueueMode | None:
        return self.ids.queue_mode

    def open(self, message: MSG) -> RcvMsgBody | RcvMsgQuota | None:
        return decrypt_message(self.secret, message.msg_id, message.body)


def err(error: ErrorType) -> Reply:
    return ERR(error)


def sok(peer: Peer) -> Reply:
    """The answer to SUB on this connection, without a service."""
    return SOK() if peer.smp.session.version >= 16 else OK()


def router_config(redis_url: str, identity: Path, directory: Path, **sections: Any) -> RouterConfig:
    key = directory / "placement.key"
    if not key.exists():
        key.write_bytes(os.urandom(32))
    config = RouterConfig(
        transport=Transport(hosts=("127.0.0.1",), listen="127.0.0.1", identity=identity),
        redis=Redis(url=redis_url, placement_key=key),
        queues=Queues(notification_interval=0.02),
        http=Http(port=0, metrics_port=0),
        proxy=Proxy(allow_local_relays=True),
    )
    return replace(config, **sections)


def ids(count: int) -> Iterator[bytes]:
    for n in range(count):
        yield n.to_bytes(24, "big")


def body_of(queue: Queue, message: object) -> bytes:
    assert isinstance(message, MSG), message
    opened = queue.open(message)
    assert isinstance(opened, RcvMsgBody)
    return opened.body


async def raw_blocks(peer: Peer, requests: list[Request], count: int) -> list[list[object]]:
    """Send the requests in one block and take the router's next blocks as they come."""
    blocks: asyncio.Queue[list[object]] = asyncio.Queue()
    session = peer.smp.session

    class Tap:
        def on_block(self, content: bytes) -> None:
            blocks.put_nowait(list(decode_replies(session, content)))

        def on_writable(self) -> None: ...

        def on_closed(self) -> None: ...

    encoded = []
    for command, entity_id, key in requests:
        corr_id = os.urandom(24)
        authorized, sent = for_auth(session, corr_id, entity_id, encode_command(session.version, command))
        server_key = peer.smp.connection.server_key
        assert server_key is not None
        auth = b"" if key is None else authenticate(dh(server_key, key.private), corr_id, authorized)
        encoded.append(encode_client(session, sent, auth, None))
    contents = pack(encoded)
    assert len(contents) == 1
    peer.smp.connection.attach(Tap())
    peer.smp.connection.send_contents(contents)
    async with asyncio.timeout(10):
        return [await blocks.get() for _ in range(count)]
