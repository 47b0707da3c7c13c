"""The other end of a transcript: a client that says exactly what a test tells it to, and a router that answers."""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from weir.crypto.block import pad_block
from weir.crypto.boxes import unpad
from weir.crypto.pem import key_to_pem
from weir.transport.connection import Connection
from weir.transport.handshake import ServiceCredentials
from weir.transport.identity import ServerIdentity
from weir.transport.server import Listener, TransportConfig, bind, serve
from weir.transport.stream import TlsStream
from weir.transport.tls import client_context, session_id
from weir.wire.address import SmpAddress
from weir.wire.commands import PING, ServiceRole
from weir.wire.errors import HandshakeError
from weir.wire.replies import ERR, OK, PONG
from weir.wire.smp import encode_reply
from weir.wire.transmission import TransmissionError, decode_block, encode_server, pack_forward


class Heard(Enum):
    CLOSED = "the router closed the connection"
    ALERT = "a TLS alert"


class RawPeer(TlsStream):
    """TLS as a client, and nothing of SMP."""

    __slots__ = ("__dict__",)

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self.context = context
        self.heard: asyncio.Queue[bytes | Heard] = asyncio.Queue()
        self.established = asyncio.Event()
        self.last = b""
        self.session_id = b""

    def _wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        return self.context.wrap_bio(incoming, outgoing)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        self.last = data
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.heard.put_nowait(Heard.CLOSED)
        self.established.set()

    def _on_established(self, tls: ssl.SSLObject) -> None:
        self.session_id = session_id(tls)
        self.established.set()

    def _on_tls_failure(self, error: ssl.SSLError) -> None:
        self.heard.put_nowait(Heard.ALERT)

    def _on_raw_block(self, block: bytes) -> None:
        self.heard.put_nowait(block)

    def say_raw(self, data: bytes) -> None:
        self._send_blocks([data])

    def say(self, content: bytes) -> None:
        self.say_raw(pad_block(content))

    async def hear_raw(self) -> bytes | Heard:
        return await self.heard.get()

    async def hear(self) -> bytes | Heard | None:
        block = await self.heard.get()
        return unpad(block) if isinstance(block, bytes) else block


async def raw_peer(
    port: int, *, alpn: str | None = "smp/1", tls12: bool = False, service: ServiceCredentials | None = None
) -> RawPeer:
    chain = () if service is None else service.chain
    key = b"" if service is None else key_to_pem(service.key)
    context = client_context(alpn, chain=chain, key_pem=key, tls12=tls12)
    loop = asyncio.get_running_loop()
    _, peer = await loop.create_connection(lambda: RawPeer(context), "127.0.0.1", port)
    await peer.established.wait()
    return peer


class Echo:
    """PONG for PING, OK for any other command, ERR for what cannot be understood."""

    def __init__(self, router: "Router", connection: Connection) -> None:
        self.router = router
        self.connection = connection
        self.closed = asyncio.Event()
        self.writable = 0
        self.contents: list[bytes] = []
        router.handlers.append(self)
        router.arrived.set()

    def on_blocks(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self.on_block(self.connection.open(block))

    def on_block(self, content: bytes) -> None:
        self.contents.append(content)
        session = self.connection.session
        replies = []
        for one in decode_block(session, content):
            if isinstance(one, TransmissionError):
                reply, entity = ERR(one.error), one.entity_id
            else:
                reply, entity = (PONG(), b"") if isinstance(one.command, PING) else (OK(), one.entity_id)
            replies.append(encode_server(session, one.corr_id, entity, encode_reply(session.version, reply)))
        self.connection.send_contents(pack_forward(replies))

    def on_writable(self) -> None:
        self.writable += 1

    def on_closed(self) -> None:
        self.closed.set()


SERVICE_ID = b"service-id-of-24-bytes.."


@dataclass
class Router:
    """A listener with Echo behind it."""

    listener: Listener
    handlers: list[Echo]
    arrived: asyncio.Event
    services: list[tuple[ServiceRole, tuple[bytes, ...], bytes]]
    service_answer: bytes | HandshakeError = SERVICE_ID

    @property
    def port(self) -> int:
        return self.listener.ports[0]

    @property
    def address(self) -> SmpAddress:
        return SmpAddress(self.listener.identity.fingerprint, ("127.0.0.1",), self.port)


async def start_router(identity: Path, sock: socket.socket | None = None, **limits: object) -> Router:
    async def get_service(role: ServiceRole, chain: tuple[bytes, ...], fingerprint: bytes) -> bytes | HandshakeError:
        router.services.append((role, chain, fingerprint))
        await asyncio.sleep(0)
        return router.service_answer

    config = TransportConfig(**limits)  # type: ignore[arg-type]
    listener = await serve(
        config,
        ServerIdentity(identity),
        lambda connection: Echo(router, connection),
        get_service,
        socks=[sock or bind("127.0.0.1", 0)],
    )
    router = Router(listener, [], asyncio.Event(), [])
    return router
