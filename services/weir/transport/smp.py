"""SMP on the shared transport: blocks of 16,384 bytes; services present a client certificate."""

from __future__ import annotations

import ssl
from typing import Final

from weir.crypto.pem import key_to_pem
from weir.transport.client import CONNECT_TIMEOUT, ClientConnection, connect_to, context_without_certificate
from weir.transport.connection import Connection
from weir.transport.handshake import Accepted, Opened
from weir.transport.protocol import Protocol
from weir.transport.smp_handshake import (
    ClientServiceSession,
    PeerService,
    ServiceCredentials,
    ServiceOffer,
    SmpAccepted,
    SmpClientHandshake,
    SmpOpened,
    SmpServerHandshake,
)
from weir.transport.socks import SocksProxy
from weir.transport.tls import client_context
from weir.wire.address import SmpAddress
from weir.wire.smp.replies import CertChainKey
from weir.wire.smp.session import Session
from weir.wire.versions import SMP_ALPN, SMP_BLOCK_SIZE, SMP_RANGE, VersionRange

__all__ = ["SMP", "ServiceCredentials", "ServiceOffer", "SmpClientConnection", "SmpConnection", "connect"]


class SmpConnection(Connection):
    """A client of an SMP router."""

    __slots__ = ("proxy", "service", "session_secret")

    session: Session
    session_secret: bytes | None  # box key agreed with the client's hello key: for RFWD
    service: PeerService | None
    proxy: bool

    def _take(self, accepted: Accepted) -> None:
        super()._take(accepted)
        assert isinstance(accepted, SmpAccepted)
        self.session_secret = accepted.session_secret
        self.service = accepted.service
        self.proxy = accepted.proxy


SMP: Final = Protocol(
    alpn=SMP_ALPN,
    block_size=SMP_BLOCK_SIZE,
    versions=SMP_RANGE,
    ask_client_certificate=True,
    handshake=SmpServerHandshake,
    connection=SmpConnection,
)


class SmpClientConnection(ClientConnection):
    """A connection to an SMP router, made by `connect`."""

    __slots__ = ("cert_key", "service", "session_secret")

    session: Session
    cert_key: CertChainKey | None  # the server's chain and signed key, which a proxy passes on
    session_secret: bytes | None
    service: ClientServiceSession | None

    def _take(self, opened: Opened) -> None:
        super()._take(opened)
        assert isinstance(opened, SmpOpened)
        self.cert_key = opened.cert_key
        self.session_secret = opened.session_secret
        self.service = opened.service


def _context(alpn: str | None, tls12: bool, service: ServiceCredentials | None) -> ssl.SSLContext:
    if service is None:
        return context_without_certificate(alpn, tls12)
    return client_context(alpn, chain=service.chain, key_pem=key_to_pem(service.key), tls12=tls12)


async def connect(
    address: SmpAddress | str,
    *,
    versions: VersionRange = SMP_RANGE,
    service: ServiceCredentials | None = None,
    proxy: bool = False,
    tls12: bool = False,
    alpn: bool = True,
    timeout: float = CONNECT_TIMEOUT,
    socks: SocksProxy | None = None,
) -> SmpClientConnection:
    """Try the address's hosts in order. Raises ConnectError."""
    context = _context(SMP_ALPN if alpn else None, tls12, service)

    def make(fingerprint: bytes) -> SmpClientConnection:
        handshake = SmpClientHandshake(fingerprint, versions, proxy=proxy, service=service)
        return SmpClientConnection(SMP_BLOCK_SIZE, context, handshake)

    return await connect_to(address, "smp", make, timeout=timeout, socks=socks)
