"""One client of a router: TLS, the SMP handshake, then blocks in and out."""

import asyncio
import ssl
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from weir.crypto.block import ChainKey, open_block, pad_block, seal_block
from weir.crypto.boxes import unpad
from weir.transport.handshake import Accepted, PeerService, Refused, ServerHandshake, ServiceOffer
from weir.transport.stream import TlsStream
from weir.transport.tls import peer_chain, session_id
from weir.wire.errors import HandshakeError
from weir.wire.session import Session

if TYPE_CHECKING:
    from weir.transport.server import Listener

# A block that cannot be opened is answered like one that cannot be parsed; no content parses less than this.
_UNREADABLE = b""


class Handler(Protocol):
    """What a connection tells the router."""

    def on_blocks(self, blocks: list[bytes]) -> None:
        """What one read brought, still sealed: `Connection.open` each, in this order, when its turn has come."""

    def on_writable(self) -> None:
        """`buffered` fell under the low-water mark after it had been above the high one."""

    def on_closed(self) -> None: ...


class Connection(TlsStream):
    __slots__ = (
        "_early",
        "_handler",
        "_handshake_state",
        "_listener",
        "_rcv_chain",
        "_snd_chain",
        "created",
        "id",
        "in_turn",
        "proxy",
        "rcv_active",
        "service",
        "session",
        "session_key",
        "session_secret",
        "snd_active",
    )

    session: Session
    session_key: bytes  # X25519, raw private: what authenticators are verified with
    session_secret: bytes | None  # box key agreed with the client's hello key: for RFWD
    service: PeerService | None
    proxy: bool

    def __init__(self, listener: "Listener", connection_id: int) -> None:
        super().__init__()
        self.id = connection_id
        self.created = self.rcv_active = self.snd_active = monotonic()
        self._listener = listener
        self._handshake_state: ServerHandshake | None = None
        self.in_turn = False  # it waits for this edge to go on with its handshake, not for its peer
        self._early: list[bytes] | None = None  # blocks that came while the service was looked up
        self._handler: Handler | None = None
        self._rcv_chain: ChainKey | None = None
        self._snd_chain: ChainKey | None = None

    @property
    def idle_since(self) -> float:
        return max(self.rcv_active, self.snd_active)

    def send_contents(self, contents: list[bytes]) -> None:
        """Each content becomes one block; all that one loop turn sends leaves in one socket write."""
        chain = self._snd_chain
        if chain is None:
            blocks = [pad_block(content) for content in contents]
        elif len(contents) == 1:
            blocks = [seal_block(chain, contents[0])]
        else:
            blocks = [seal_block(chain, content) for content in contents]
        self._send_blocks(blocks)
        self.snd_active = monotonic()

    def open(self, block: bytes) -> bytes:
        """The content of the next block that came."""
        chain = self._rcv_chain
        content = unpad(block) if chain is None else open_block(chain, block)
        return _UNREADABLE if content is None else content

    def limit_outgoing(self, high: int, low: int) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._listener.opened(self)

    def resume_writing(self) -> None:
        if self._handler is not None and not self._closing:
            self._handler.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._listener.closed(self)
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_closed()

    # TLS

    def _wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        self._handshake_state = ServerHandshake(self._listener.identity.online, self._listener.config.versions)
        return self._handshake_state.online.context.wrap_bio(incoming, outgoing, server_side=True)

    def _on_handshake_records(self, records: bytes | bytearray) -> None:
        """Nothing more is read until they have had their turn."""
        self.pause_reading()
        self.in_turn = True
        self._listener.handshakes.add(partial(self._turn, records))

    def _turn(self, records: bytes | bytearray) -> None:
        self.in_turn = False
        if self._closing:
            return
        self.resume_reading()
        try:
            self._shake_hands(records)
        except Exception:
            self.abort()
            raise

    def _on_tls_failure(self, error: ssl.SSLError) -> None:
        if self._handler is None:
            self._listener.failed()

    def _on_established(self, tls: ssl.SSLObject) -> None:
        state = self._handshake_state
        assert state is not None
        hello = state.hello(session_id(tls), peer_chain(tls), alpn=tls.selected_alpn_protocol() is not None)
        self._send_blocks([pad_block(hello)])

    def _on_raw_blocks(self, blocks: list[bytes]) -> None:
        self.rcv_active = monotonic()
        if self._handler is not None:
            self._listener.handshakes.heard_at = self.rcv_active
            self._handler.on_blocks(blocks)
            return
        for at, block in enumerate(blocks):
            if self._handler is not None:
                self._handler.on_blocks(blocks[at:])
                return
            if self._early is not None:
                self._early.append(block)
            else:
                self._on_client_hello(unpad(block))
            if self._closing:
                return

    # The SMP handshake

    def _on_client_hello(self, content: bytes | None) -> None:
        assert self._handshake_state is not None
        result = self._handshake_state.accept(content)
        if isinstance(result, Accepted):
            self._open(result)
        elif isinstance(result, ServiceOffer):
            self._early = []
            self.pause_reading()
            self._listener.look_up(self, result)
        else:
            self._refuse(result)

    def service_found(self, offer: ServiceOffer, service: bytes | HandshakeError) -> None:
        """The listener's answer to `look_up`."""
        if self._closing:
            return
        if isinstance(service, HandshakeError):
            self._refuse(Refused(service, told=True))
            return
        reply, accepted = ServerHandshake.service_accepted(offer, service)
        self._send_blocks([pad_block(reply)])
        early, self._early = self._early, None
        self._open(accepted)
        self.resume_reading()
        if early:
            self._on_raw_blocks(early)

    def _refuse(self, refused: Refused) -> None:
        if refused.told:
            self._send_blocks([pad_block(ServerHandshake.service_refused(refused.error))])
        self._listener.failed()
        self.close()

    def _open(self, accepted: Accepted) -> None:
        self.session = accepted.session
        self.session_key = accepted.session_key
        self.session_secret = accepted.session_secret
        self.service = accepted.service
        self.proxy = accepted.proxy
        if accepted.chains is not None:
            self._snd_chain, self._rcv_chain = accepted.chains
        self._handshake_state = None
        self._handler = self._listener.ready(self)
