"""One client of a listener: TLS, the protocol's handshake, then blocks in and out.

    connection_made ─► TLS handshake, in turns ─► hello ─► client's hello ─► [question ─► answer] ─► session
                       (handshakes.py)            (block)   (block)           (the program's)        Handler

The listener limits the time for all steps before the session. Blocks that arrive while a question is open wait in
`_waiting_blocks`.
"""

import asyncio
import ssl
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from weir.crypto.block import ChainKey, open_block, pad_block, seal_block
from weir.crypto.boxes import unpad
from weir.transport.handshake import Accepted, Question, Refused, ServerHandshake
from weir.transport.stream import TlsStream
from weir.transport.tls import peer_chain, session_id
from weir.wire.frame import Framing

if TYPE_CHECKING:
    from weir.transport.server import Listener

# An empty block: the parser rejects it, so a block that cannot be decrypted gets the same answer as one that cannot be
# parsed.
_UNREADABLE = b""


class Handler(Protocol):
    """The program's side of one connection: receives blocks and events."""

    def on_blocks(self, blocks: list[bytes]) -> None:
        """Receive the blocks of one read, still encrypted. Call `Connection.open` once for each, in this order."""

    def on_writable(self) -> None:
        """The send buffer was above its limit and has drained; writing may resume."""

    def on_closed(self) -> None: ...


class Connection(TlsStream):
    __slots__ = (
        "_handler",
        "_handshake_state",
        "_listener",
        "_rcv_chain",
        "_snd_chain",
        "_waiting_blocks",
        "created",
        "id",
        "in_turn",
        "rcv_active",
        "session",
        "session_key",
        "snd_active",
    )

    session: Framing
    session_key: bytes  # X25519, raw private: authenticators are verified with it

    def __init__(self, listener: "Listener[Any]", connection_id: int) -> None:
        super().__init__(listener.protocol.block_size)
        self.id = connection_id
        self.created = self.rcv_active = self.snd_active = monotonic()
        self._listener = listener
        self._handshake_state: ServerHandshake[Any] | None = None
        self.in_turn = False  # the handshake waits for its turn on this edge, not for the client
        self._waiting_blocks: list[bytes] | None = None  # blocks that arrived while a question was open
        self._handler: Handler | None = None
        self._rcv_chain: ChainKey | None = None
        self._snd_chain: ChainKey | None = None

    @property
    def idle_since(self) -> float:
        return max(self.rcv_active, self.snd_active)

    def send_contents(self, contents: list[bytes]) -> None:
        """Send each content as one block."""
        chain, size = self._snd_chain, self._block_size
        if chain is None:
            blocks = [pad_block(content, size) for content in contents]
        elif len(contents) == 1:
            blocks = [seal_block(chain, contents[0], size)]
        else:
            blocks = [seal_block(chain, content, size) for content in contents]
        self._send_blocks(blocks)
        self.snd_active = monotonic()

    def open(self, block: bytes) -> bytes:
        """Return the content of the next received block."""
        chain = self._rcv_chain
        content = unpad(block) if chain is None else open_block(chain, block)
        return _UNREADABLE if content is None else content

    def limit_outgoing(self, high: int, low: int) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)

    def refuse(self) -> None:
        """End a handshake so that the client notices at once and can connect elsewhere.

        Closing a socket with unread data would reset the connection. So this end only stops sending, and discards what
        arrives until the client has closed its end. The listener limits the time.
        """
        if self._closing or self._transport is None:
            return
        self.resume_reading()
        if self._established:
            self._close_notify()
        self._closing = True
        self._transport.write_eof()

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
        listener = self._listener
        self._handshake_state = listener.protocol.handshake(listener.identity.online, listener.versions)
        return self._handshake_state.online.context.wrap_bio(incoming, outgoing, server_side=True)

    def _on_handshake_records(self, records: bytes | bytearray) -> None:
        """Queue the handshake's next step. Nothing more is read until the step has had its turn."""
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
        self._send_padded(state.hello(session_id(tls), peer_chain(tls), alpn=tls.selected_alpn_protocol() is not None))

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
            if self._waiting_blocks is not None:
                self._waiting_blocks.append(block)
            else:
                self._on_client_hello(unpad(block))
            if self._closing:
                return

    # The protocol's handshake

    def _on_client_hello(self, content: bytes | None) -> None:
        assert self._handshake_state is not None
        result = self._handshake_state.accept(content)
        if isinstance(result, Question):
            self._waiting_blocks = []
            self.pause_reading()
            self._listener.ask(self, result)
        else:
            self._finish(result)

    def answered(self, question: Question, answer: Any) -> None:
        """Continue with the program's answer to a question."""
        if self._closing:
            return
        assert self._handshake_state is not None
        blocks, self._waiting_blocks = self._waiting_blocks, None
        self._finish(self._handshake_state.resume(question, answer))
        self.resume_reading()
        if blocks and not self._closing:
            self._on_raw_blocks(blocks)

    def _finish(self, result: Accepted | Refused) -> None:
        if result.message is not None:
            self._send_padded(result.message)
        if isinstance(result, Refused):
            self._listener.failed()
            self.close()
        else:
            self._take(result)
            self._handshake_state = None
            self._handler = self._listener.ready(self)

    def _take(self, accepted: Accepted) -> None:
        """Keep what the session needs of the handshake."""
        self.session = accepted.session
        self.session_key = accepted.session_key
        if accepted.chains is not None:
            self._snd_chain, self._rcv_chain = accepted.chains

    def _send_padded(self, content: bytes) -> None:
        self._send_blocks([pad_block(content, self._block_size)])
