"""NTF on the shared transport: blocks of 512 bytes, without block encryption and without client certificates.

The server's hello carries its session key but no certificate chain: the client takes the chain from TLS.
"""

from __future__ import annotations

from typing import Final

from weir.transport.client import CONNECT_TIMEOUT, ClientConnection, connect_to, context_without_certificate
from weir.transport.connection import Connection
from weir.transport.handshake import Accepted, ClientHandshake, Opened, Reply, ServerHandshake
from weir.transport.protocol import Protocol
from weir.transport.socks import SocksProxy
from weir.wire.address import SmpAddress
from weir.wire.errors import HandshakeError, TransportErrorType
from weir.wire.ntf.handshake import (
    NtfClientHello,
    NtfServerHello,
    decode_client_hello,
    decode_server_hello,
    encode_client_hello,
    encode_server_hello,
)
from weir.wire.ntf.session import NtfSession
from weir.wire.versions import NTF_ALPN, NTF_AUTH_BATCH, NTF_BLOCK_SIZE, NTF_LEGACY_RANGE, NTF_RANGE, VersionRange


class NtfServerHandshake(ServerHandshake[NtfClientHello]):
    __slots__ = ()

    legacy_versions = NTF_LEGACY_RANGE

    def _encode_hello(self) -> bytes:
        signed = self.online.sign_session_key(self.key.spki) if self.versions.max >= NTF_AUTH_BATCH else None
        return encode_server_hello(NtfServerHello(self.versions, self.session_id, signed))

    def _decode_hello(self, content: bytes) -> NtfClientHello | HandshakeError:
        return decode_client_hello(content)

    def _accept(self, hello: NtfClientHello) -> Accepted:
        return Accepted(NtfSession(self.session_id, hello.version), self.key.private)


class NtfClientHandshake(ClientHandshake[NtfServerHello]):
    def _decode_hello(self, content: bytes) -> NtfServerHello | HandshakeError:
        return decode_server_hello(content)

    def _reply(self, hello: NtfServerHello, version: int) -> Reply | TransportErrorType:
        server_key = None
        if hello.signed_key is not None:
            server_key = self._signed_by_server(hello.signed_key)
            if server_key is None:
                return HandshakeError.BAD_AUTH
        opened = Opened(NtfSession(self._session_id, version), hello.versions, server_key)
        return Reply(encode_client_hello(NtfClientHello(version, self._expected)), opened)


class NtfConnection(Connection):
    """A client of an NTF router."""

    __slots__ = ()

    session: NtfSession


NTF: Final = Protocol(
    alpn=NTF_ALPN,
    block_size=NTF_BLOCK_SIZE,
    versions=NTF_RANGE,
    ask_client_certificate=False,
    handshake=NtfServerHandshake,
    connection=NtfConnection,
)


class NtfClientConnection(ClientConnection):
    """A connection to an NTF router, made by `connect`."""

    __slots__ = ()

    session: NtfSession


async def connect(
    address: SmpAddress | str,
    *,
    versions: VersionRange = NTF_RANGE,
    tls12: bool = False,
    alpn: bool = True,
    timeout: float = CONNECT_TIMEOUT,
    socks: SocksProxy | None = None,
) -> NtfClientConnection:
    """Try the address's hosts in order. Raises ConnectError."""
    context = context_without_certificate(NTF_ALPN if alpn else None, tls12)

    def make(fingerprint: bytes) -> NtfClientConnection:
        return NtfClientConnection(NTF_BLOCK_SIZE, context, NtfClientHandshake(fingerprint, versions))

    return await connect_to(address, "ntf", make, timeout=timeout, socks=socks)
