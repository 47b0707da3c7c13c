"""The other end of a transcript: a client that says exactly what a test tells it to, and a router that answers."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from weir.crypto.block import pad_block
from weir.crypto.boxes import unpad
from weir.crypto.keys import generate
from weir.crypto.pem import key_to_pem
from weir.transport.client import ClientConnection
from weir.transport.connection import Connection
from weir.transport.ntf import NTF
from weir.transport.ntf import connect as connect_ntf
from weir.transport.protocol import Protocol
from weir.transport.server import Listener, TransportConfig, bind, serve
from weir.transport.smp import SMP, ServiceCredentials, ServiceOffer
from weir.transport.smp import connect as connect_smp
from weir.transport.stream import TlsStream
from weir.transport.tls import client_context, session_id
from weir.wire import frame
from weir.wire.address import SmpAddress
from weir.wire.errors import HandshakeError
from weir.wire.frame import Framing
from weir.wire.ntf import codec as ntf_codec
from weir.wire.ntf import handshake as ntf_handshake
from weir.wire.ntf import transmission as ntf_transmission
from weir.wire.ntf import types as ntf
from weir.wire.smp import codec as smp_codec
from weir.wire.smp import commands as cmd
from weir.wire.smp import handshake as smp_handshake
from weir.wire.smp import transmission as smp_transmission
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import ERR, OK, PONG
from weir.wire.versions import NTF_LEGACY_RANGE, SMP_LEGACY_RANGE, VersionRange


@dataclass(frozen=True)
class Dialect:
    """The parts of one protocol that a transcript needs."""

    protocol: Protocol[Any]
    legacy: VersionRange
    connect: Callable[..., Awaitable[ClientConnection]]
    decode_server_hello: Callable[[bytes], Any]
    client_hello: Callable[..., bytes]
    """(version, expected fingerprint) → the client's hello"""
    answer: Callable[[Any, bytes], list[bytes]]
    """PONG for PING, OK for any other command, ERR for what cannot be understood: a block's content → answers"""

    @property
    def versions(self) -> VersionRange:
        return self.protocol.versions

    @property
    def block_size(self) -> int:
        return self.protocol.block_size

    def ping(self, session: Framing) -> bytes:
        """The content of a block with one PING."""
        _, sent = frame.for_auth(session, b"c" * 24, b"", b"PING")
        encoded = frame.encode_client(session, sent, b"", None)
        return encoded[2:] if session.version == 1 else b"\x01" + encoded


def _answer_smp(session: Any, content: bytes) -> list[bytes]:
    replies = []
    for one in smp_transmission.decode_block(session, content):
        if isinstance(one, smp_transmission.TransmissionError):
            reply, entity = ERR(one.error), one.entity_id
        else:
            reply, entity = (PONG(), b"") if isinstance(one.command, cmd.PING) else (OK(), one.entity_id)
        encoded = smp_codec.encode_reply(session.version, reply)
        replies.append(smp_transmission.encode_server(session, one.corr_id, entity, encoded))
    return smp_transmission.pack_forward(replies)


def _answer_ntf(session: Any, content: bytes) -> list[bytes]:
    replies = []
    for one in ntf_transmission.decode_block(session, content):
        if isinstance(one, ntf_transmission.TransmissionError):
            reply, entity = ntf.ERR(one.error), one.entity_id
        else:
            reply, entity = (ntf.PONG(), b"") if isinstance(one.command, ntf.PING) else (ntf.OK(), one.entity_id)
        encoded = ntf_codec.encode_reply(session.version, reply)
        replies.append(ntf_transmission.encode_server(session, one.corr_id, entity, encoded))
    return ntf_transmission.pack(session, replies)


def _smp_hello(version: int, key_hash: bytes) -> bytes:
    hello = smp_handshake.ClientHello(version, key_hash, generate("x25519").public)
    return smp_handshake.encode_client_hello(hello)


def _ntf_hello(version: int, key_hash: bytes) -> bytes:
    return ntf_handshake.encode_client_hello(ntf_handshake.NtfClientHello(version, key_hash))


SMP_DIALECT = Dialect(SMP, SMP_LEGACY_RANGE, connect_smp, smp_handshake.decode_server_hello, _smp_hello, _answer_smp)
NTF_DIALECT = Dialect(NTF, NTF_LEGACY_RANGE, connect_ntf, ntf_handshake.decode_server_hello, _ntf_hello, _answer_ntf)


class Heard(Enum):
    CLOSED = "the router closed the connection"
    ALERT = "a TLS alert"


class RawPeer(TlsStream):
    """TLS as a client, and nothing of the protocol."""

    __slots__ = ("__dict__",)

    def __init__(self, context: ssl.SSLContext, block_size: int = 16384) -> None:
        super().__init__(block_size)
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
        self.say_raw(pad_block(content, self._block_size))

    async def hear_raw(self) -> bytes | Heard:
        return await self.heard.get()

    async def hear(self) -> bytes | Heard | None:
        block = await self.heard.get()
        return unpad(block) if isinstance(block, bytes) else block


async def raw_peer(
    port: int,
    *,
    alpn: str | None = "smp/1",
    tls12: bool = False,
    service: ServiceCredentials | None = None,
    block_size: int = 16384,
) -> RawPeer:
    chain = () if service is None else service.chain
    key = b"" if service is None else key_to_pem(service.key)
    context = client_context(alpn, chain=chain, key_pem=key, tls12=tls12)
    loop = asyncio.get_running_loop()
    _, peer = await loop.create_connection(lambda: RawPeer(context, block_size), "127.0.0.1", port)
    await peer.established.wait()
    return peer


class Echo:
    """Answers every block as the router's dialect says."""

    def __init__(self, router: "Router", connection: Connection) -> None:
        self.router = router
        self.connection: Any = connection
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
        self.connection.send_contents(self.router.dialect.answer(self.connection.session, content))

    def on_writable(self) -> None:
        self.writable += 1

    def on_closed(self) -> None:
        self.closed.set()


SERVICE_ID = b"service-id-of-24-bytes.."


@dataclass
class Router:
    """A listener with Echo behind it."""

    dialect: Dialect
    listener: Listener[Any]
    handlers: list[Echo]
    arrived: asyncio.Event
    services: list[tuple[ServiceRole, tuple[bytes, ...], bytes]]
    service_answer: bytes | HandshakeError = SERVICE_ID

    @property
    def port(self) -> int:
        return self.listener.ports[0]

    @property
    def address(self) -> SmpAddress:
        scheme = self.dialect.protocol.alpn.removesuffix("/1")
        return SmpAddress(self.listener.identity.fingerprint, ("127.0.0.1",), self.port, scheme=scheme)

    async def peer(self, alpn: str | None = "", **options: Any) -> RawPeer:
        """A client of this router that only speaks TLS."""
        protocol = self.dialect.protocol
        alpn = protocol.alpn if alpn == "" else alpn
        return await raw_peer(self.port, alpn=alpn, block_size=protocol.block_size, **options)


async def start_router(
    identity: Path, sock: socket.socket | None = None, dialect: Dialect = SMP_DIALECT, **limits: object
) -> Router:
    async def service_id(offer: ServiceOffer) -> bytes | HandshakeError:
        router.services.append((offer.role, offer.chain, offer.fingerprint))
        await asyncio.sleep(0)
        return router.service_answer

    listener: Listener[Any] = await serve(
        dialect.protocol,
        TransportConfig(**limits),  # type: ignore[arg-type]
        dialect.protocol.identity(identity),
        lambda connection: Echo(router, connection),
        service_id,
        socks=[sock or bind("127.0.0.1", 0)],
    )
    router = Router(dialect, listener, [], asyncio.Event(), [])
    return router
