"""The connecting side: TLS to a router, the protocol's handshake, then blocks in and out."""

import asyncio
import functools
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from weir.crypto.block import ChainKey, open_block, pad_block, seal_block
from weir.crypto.boxes import unpad
from weir.transport.handshake import ClientHandshake, Opened, Reply
from weir.transport.socks import SocksProxy, dial
from weir.transport.stream import TlsStream
from weir.transport.tls import client_context, peer_chain, session_id
from weir.wire.address import SmpAddress
from weir.wire.errors import BrokerErrorTag, TransportErrorType
from weir.wire.frame import Framing
from weir.wire.versions import VersionRange

C = TypeVar("C", bound="ClientConnection")

CONNECT_TIMEOUT = 25.0


class ConnectError(Exception):
    """Why there is no connection. `error` is what a proxy answers to its client."""

    def __init__(self, error: BrokerErrorTag | TransportErrorType, detail: str = "") -> None:
        super().__init__(f"{error.value}{': ' + detail if detail else ''}")
        self.error = error
        self.detail = detail


class ClientHandler(Protocol):
    """The client's side of one connection: receives blocks and events."""

    def on_block(self, content: bytes) -> None: ...

    def on_writable(self) -> None:
        """The send buffer has drained; writing may resume."""

    def on_closed(self) -> None: ...


class ClientConnection(TlsStream):
    """Made by a protocol's `connect`. Blocks that arrive before `attach` wait for it."""

    __slots__ = (
        "_context",
        "_handler",
        "_handshake_state",
        "_peer_chain",
        "_rcv_chain",
        "_ready",
        "_snd_chain",
        "_waiting_blocks",
        "server_key",
        "server_versions",
        "session",
    )

    session: Framing
    server_versions: VersionRange
    server_key: bytes | None  # X25519, raw public: authenticators are made with it

    def __init__(self, block_size: int, context: ssl.SSLContext, handshake: ClientHandshake[Any]) -> None:
        super().__init__(block_size)
        self._context = context
        self._handshake_state: ClientHandshake[Any] | None = handshake
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._peer_chain: tuple[bytes, ...] = ()
        self._waiting_blocks: list[bytes] = []
        self._handler: ClientHandler | None = None
        self._rcv_chain: ChainKey | None = None
        self._snd_chain: ChainKey | None = None

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS session, for questions about its parameters. None after the connection has ended."""
        return self._tls

    @property
    def local_port(self) -> int:
        """The local port. 0 after the connection has ended."""
        return 0 if self._transport is None else cast(int, self._transport.get_extra_info("sockname")[1])

    def attach(self, handler: ClientHandler) -> None:
        self._handler = handler
        blocks, self._waiting_blocks = self._waiting_blocks, []
        for block in blocks:
            self._on_raw_block(block)
        if self._transport is None:
            handler.on_closed()

    def send_contents(self, contents: list[bytes]) -> None:
        """Send each content as one block."""
        chain, size = self._snd_chain, self._block_size
        if chain is None:
            self._send_blocks([pad_block(content, size) for content in contents])
        else:
            self._send_blocks([seal_block(chain, content, size) for content in contents])

    def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be a block. Tests of the other side use it."""
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
        self._peer_chain = peer_chain(tls)
        state = cast("ClientHandshake[Any]", self._handshake_state)
        error = state.begin(session_id(tls), self._peer_chain)
        if error is not None:
            problem = state.chain_problem
            self._fail_with(ConnectError(error, f"the router's certificates: {problem.value}" if problem else ""))
            self.close()

    def _on_raw_block(self, block: bytes) -> None:
        if self._handshake_state is not None:
            self._on_handshake_message(self._handshake_state, unpad(block))
        elif self._handler is None:
            self._waiting_blocks.append(block)
        else:
            chain = self._rcv_chain
            content = unpad(block) if chain is None else open_block(chain, block)
            self._handler.on_block(b"" if content is None else content)

    # The protocol's handshake

    def _on_handshake_message(self, state: ClientHandshake[Any], content: bytes | None) -> None:
        reply = state.receive(content)
        if not isinstance(reply, Reply):
            self._fail_with(ConnectError(reply))
            self.close()
            return
        if reply.message is not None:
            self._send_blocks([pad_block(reply.message, self._block_size)])
        if reply.opened is not None:
            self._take(reply.opened)
            self._handshake_state = None
            if not self._ready.done():
                self._ready.set_result(None)

    def _take(self, opened: Opened) -> None:
        """Keep what the session needs of the handshake."""
        self.session = opened.session
        self.server_versions = opened.server_versions
        self.server_key = opened.server_key
        if opened.chains is not None:
            self._snd_chain, self._rcv_chain = opened.chains

    def _fail_with(self, error: ConnectError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)


@functools.cache
def context_without_certificate(alpn: str | None, tls12: bool) -> ssl.SSLContext:
    return client_context(alpn, tls12=tls12)


async def connect_to(
    address: SmpAddress | str,
    scheme: str,
    make: Callable[[bytes], C],
    *,
    timeout: float = CONNECT_TIMEOUT,
    socks: SocksProxy | None = None,
) -> C:
    """Try the address's hosts in order. `make` makes a connection that expects a fingerprint. Raises ConnectError."""
    server = SmpAddress.parse(address) if isinstance(address, str) else address
    if server is None:
        raise ConnectError(BrokerErrorTag.HOST, f"not an {scheme}:// address")
    error = ConnectError(BrokerErrorTag.HOST, "no host in the address")
    try:
        async with asyncio.timeout(timeout):
            for host in server.hosts:
                try:
                    return await _connect_host(
                        host, server.effective_port, functools.partial(make, server.fingerprint), socks
                    )
                except ConnectError as failure:
                    error = failure
                    if error.error is not BrokerErrorTag.NETWORK:
                        break
    except TimeoutError:
        error = ConnectError(BrokerErrorTag.TIMEOUT)
    raise error


async def _connect_host(host: str, port: int, make: Callable[[], C], socks: SocksProxy | None) -> C:
    loop = asyncio.get_running_loop()
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
    """The operating system's text of an error: asyncio's text contains the address."""
    if isinstance(failure, OSError) and failure.errno and not isinstance(failure, socket.gaierror):
        return os.strerror(failure.errno).lower()
    return getattr(failure, "strerror", None) or "cannot connect"
