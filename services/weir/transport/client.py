"""The connecting side: TLS to a router, the SMP handshake, then blocks in and out."""

import asyncio
import functools
import os
import socket
import ssl
from typing import Protocol, cast

from weir.crypto.block import ChainKey, open_block, pad_block, seal_block
from weir.crypto.boxes import unpad
from weir.crypto.pem import key_to_pem
from weir.transport.handshake import ClientHandshake, ClientServiceSession, Opened, ServiceCredentials
from weir.transport.socks import SocksProxy, dial
from weir.transport.stream import TlsStream
from weir.transport.tls import client_context, peer_chain, session_id
from weir.wire.address import SmpAddress
from weir.wire.errors import BrokerErrorTag, TransportErrorType
from weir.wire.replies import CertChainKey
from weir.wire.session import Session
from weir.wire.versions import SMP_ALPN, SMP_RANGE, VersionRange

CONNECT_TIMEOUT = 25.0


class ConnectError(Exception):
    """Why there is no connection, in the words a proxy answers with."""

    def __init__(self, error: BrokerErrorTag | TransportErrorType, detail: str = "") -> None:
        super().__init__(f"{error.value}{': ' + detail if detail else ''}")
        self.error = error


class ClientHandler(Protocol):
    """What a connection tells the client."""

    def on_block(self, content: bytes) -> None: ...

    def on_writable(self) -> None:
        """As a router's."""

    def on_closed(self) -> None: ...


class ClientConnection(TlsStream):
    """Made by `connect`. Blocks that arrive before `attach` wait for it."""

    __slots__ = (
        "_context",
        "_early",
        "_handler",
        "_handshake_state",
        "_peer_chain",
        "_rcv_chain",
        "_ready",
        "_replied",
        "_session_id",
        "_snd_chain",
        "cert_key",
        "server_key",
        "server_versions",
        "service",
        "session",
        "session_secret",
    )

    session: Session
    server_versions: VersionRange
    server_key: bytes | None  # X25519, raw public: what authenticators are made with
    cert_key: CertChainKey | None  # the server's chain and signed key, which a proxy passes on
    session_secret: bytes | None
    service: ClientServiceSession | None

    def __init__(self, context: ssl.SSLContext, handshake: ClientHandshake) -> None:
        super().__init__()
        self._context = context
        self._handshake_state: ClientHandshake | None = handshake
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session_id = b""
        self._peer_chain: tuple[bytes, ...] = ()
        self._replied = False
        self._early: list[bytes] = []
        self._handler: ClientHandler | None = None
        self._rcv_chain: ChainKey | None = None
        self._snd_chain: ChainKey | None = None

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS session, to ask about its parameters; None once it is over."""
        return self._tls

    @property
    def local_port(self) -> int:
        """This end's port; 0 once it is over."""
        return 0 if self._transport is None else cast(int, self._transport.get_extra_info("sockname")[1])

    def attach(self, handler: ClientHandler) -> None:
        self._handler = handler
        early, self._early = self._early, []
        for block in early:
            self._on_raw_block(block)
        if self._transport is None:
            handler.on_closed()

    def send_contents(self, contents: list[bytes]) -> None:
        chain = self._snd_chain
        if chain is None:
            self._send_blocks([pad_block(content) for content in contents])
        else:
            self._send_blocks([seal_block(chain, content) for content in contents])

    def send_raw(self, data: bytes) -> None:
        """Bytes that need not be a block, for whoever tests the other side."""
        self._send_blocks([data])

    async def ready(self) -> None:
        await self._ready

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start()

    def resume_writing(self) -> None:
        if self._handler is not None and not self._closing:
            self._handler.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._fail_with(ConnectError(BrokerErrorTag.NETWORK, "the router closed the connection"))
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_closed()

    # TLS

    def _wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        return self._context.wrap_bio(incoming, outgoing)

    def _on_tls_failure(self, error: ssl.SSLError) -> None:
        self._fail_with(ConnectError(BrokerErrorTag.NETWORK, f"TLS: {error.reason or error}"))

    def _on_established(self, tls: ssl.SSLObject) -> None:
        self._session_id = session_id(tls)
        self._peer_chain = peer_chain(tls)
        error = cast(ClientHandshake, self._handshake_state).check_chain(self._peer_chain)
        if error is not None:
            self._fail_with(ConnectError(error))
            self.close()

    def _on_raw_block(self, block: bytes) -> None:
        if self._handshake_state is not None:
            self._on_hello(self._handshake_state, unpad(block))
        elif self._handler is None:
            self._early.append(block)
        else:
            chain = self._rcv_chain
            content = unpad(block) if chain is None else open_block(chain, block)
            self._handler.on_block(b"" if content is None else content)

    # The SMP handshake

    def _on_hello(self, state: ClientHandshake, content: bytes | None) -> None:
        opened: Opened | TransportErrorType | None
        if self._replied:
            opened = state.finish(content)
        else:
            reply = state.reply(content, self._session_id, self._peer_chain)
            if isinstance(reply, tuple):
                self._replied = True
                self._send_blocks([pad_block(reply[0])])
                opened = reply[1]
            else:
                opened = reply
        if isinstance(opened, Opened):
            self._open(opened)
        elif opened is not None:
            self._fail_with(ConnectError(opened))
            self.close()

    def _open(self, opened: Opened) -> None:
        self.session = opened.session
        self.server_versions = opened.server_versions
        self.server_key = opened.server_key
        self.cert_key = opened.cert_key
        self.session_secret = opened.session_secret
        self.service = opened.service
        if opened.chains is not None:
            self._snd_chain, self._rcv_chain = opened.chains
        self._handshake_state = None
        if not self._ready.done():
            self._ready.set_result(None)

    def _fail_with(self, error: ConnectError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)


@functools.cache
def _plain_context(alpn: str | None, tls12: bool) -> ssl.SSLContext:
    return client_context(alpn, tls12=tls12)


def _context(alpn: str | None, tls12: bool, service: ServiceCredentials | None) -> ssl.SSLContext:
    if service is None:
        return _plain_context(alpn, tls12)
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
) -> ClientConnection:
    """Try the address's hosts in order. Raises ConnectError."""
    parsed = SmpAddress.parse(address) if isinstance(address, str) else address
    if parsed is None:
        raise ConnectError(BrokerErrorTag.HOST, "not an smp:// address")
    context = _context(SMP_ALPN if alpn else None, tls12, service)
    error = ConnectError(BrokerErrorTag.HOST, "no host in the address")
    try:
        async with asyncio.timeout(timeout):
            for host in parsed.hosts:
                handshake = ClientHandshake(parsed.fingerprint, versions, proxy=proxy, service=service)
                try:
                    return await _connect_host(host, parsed.effective_port, context, handshake, socks)
                except ConnectError as failure:
                    error = failure
                    if error.error is not BrokerErrorTag.NETWORK:
                        break
    except TimeoutError:
        error = ConnectError(BrokerErrorTag.TIMEOUT)
    raise error


async def _connect_host(
    host: str, port: int, context: ssl.SSLContext, handshake: ClientHandshake, socks: SocksProxy | None
) -> ClientConnection:
    loop = asyncio.get_running_loop()

    def make() -> ClientConnection:
        return ClientConnection(context, handshake)

    try:
        if socks is None:
            _, connection = await loop.create_connection(make, host, port)
        else:
            _, connection = await loop.create_connection(make, sock=await dial(socks, host, port))
    except (OSError, UnicodeError) as failure:
        raise ConnectError(BrokerErrorTag.NETWORK, _describe(failure)) from None
    try:
        await connection.ready()
    except BaseException:
        connection.abort()
        raise
    return connection


def _describe(failure: OSError | UnicodeError) -> str:
    """The system's own words: asyncio puts the address into its."""
    if isinstance(failure, OSError) and failure.errno and not isinstance(failure, socket.gaierror):
        return os.strerror(failure.errno).lower()
    return getattr(failure, "strerror", None) or "cannot connect"
