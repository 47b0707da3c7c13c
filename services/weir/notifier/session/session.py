"""One client's conversation with the router: blocks in, answers out, one block after the other.

    block ──decode──► errors ─────────────────────────────────────────────► answered at once
                 └──► commands ──find records──► verify, in turns ──refused──► answered ahead of the commands
                                                       └──► executed in their order, each answered

A block is a task of its own, and holds back the blocks behind it. Devices send few commands, and most commands need
two round trips to Redis. The next command of a block sees what the one before has changed, because its record is
fetched again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weir.notifier.commands.handler import Handler, VerifiedHandler
from weir.notifier.commands.table import HANDLERS
from weir.notifier.session.outgoing import Outgoing
from weir.redis.errors import Unavailable
from weir.runtime.incoming import Hold, Incoming
from weir.runtime.turns import Charged, Share
from weir.runtime.verification import KeyVerifier
from weir.telemetry.errors import log_mistake
from weir.wire.errors import ErrorType, Simple
from weir.wire.ntf.codec import encode_reply
from weir.wire.ntf.transmission import NtfTransmission, TransmissionError, decode_block, encode_server
from weir.wire.ntf.types import ERR, IDSUB, IDTKN, PONG, NtfReply

if TYPE_CHECKING:
    from weir.notifier.notifier import Shared
    from weir.transport.ntf import NtfConnection

_log = logging.getLogger(__name__)

_WITHOUT_ENTITY = (IDTKN, IDSUB, PONG)
Answer = NtfReply | ErrorType


class Session:
    """One client's conversation. The transport calls `on_blocks`, `on_writable` and `on_closed`."""

    __slots__ = (
        "closed",
        "conn",
        "draining",
        "framing",
        "id",
        "incoming",
        "on_blocks",
        "outgoing",
        "shared",
        "verifier",
    )

    is_subscribed = False  # a device waits for nothing here: silent clients are disconnected by inactivity alone

    def __init__(self, shared: Shared, conn: NtfConnection) -> None:
        self.shared = shared
        self.conn = conn
        self.id = conn.id
        self.framing = conn.session
        self.verifier: KeyVerifier[NtfTransmission] = KeyVerifier(conn.session_key)
        self.outgoing = Outgoing(conn, shared.loop)
        share: Share[VerifiedHandler[Any, Any]] = Share(shared.turns, conn.abort)
        self.incoming = Incoming(conn, shared.turns, share, self.outgoing, self._begin_block)
        self.on_blocks = self.incoming.on_blocks
        self.closed = False
        self.draining = False

    # The transport's side.

    def on_writable(self) -> None:
        self.outgoing.on_writable()
        self.incoming.schedule()

    def on_closed(self) -> None:
        self.closed = self.outgoing.closed = True
        for handler in self.incoming.share.waiting:
            handler.drop()
        self.incoming.close()
        self.shared.on_closed(self)

    # Commands.

    def _begin_block(self, sealed: bytes) -> None:
        transmissions = decode_block(self.framing, self.conn.open(sealed))
        hold = self.incoming.hold()
        self.shared.spawn(Charged(self.incoming.share, self._answer_block(transmissions, hold)))

    async def _answer_block(self, transmissions: Sequence[NtfTransmission | TransmissionError], hold: Hold) -> None:
        with hold:
            try:
                await self._execute(await self._verified(transmissions))
            finally:
                self.incoming.block_answered()

    async def _verified(self, transmissions: Sequence[NtfTransmission | TransmissionError]) -> list[Handler[Any, Any]]:
        """Answer what cannot be executed. Return the other commands, verified and with their records."""
        handlers: list[Handler[Any, Any]] = []
        for t in transmissions:
            if isinstance(t, NtfTransmission):
                handlers.append(HANDLERS[type(t.command)](self, t))
            else:
                self.shared.answers.unreadable(t.error)
                self._answer(t.corr_id, t.entity_id, t.error)
        if len(handlers) == 1:
            await self._find(handlers[0])
        else:
            await asyncio.gather(*map(self._find, handlers))
        verified = [handler for handler in handlers if isinstance(handler, VerifiedHandler) and handler.error is None]
        for waiting in verified:
            waiting.wait_for_turn()
        for waiting in verified:
            await waiting.verified()
        for handler in handlers:
            if handler.error is not None:
                self.answer(handler, handler.error)
        return [handler for handler in handlers if handler.error is None]

    async def _find(self, handler: Handler[Any, Any]) -> None:
        """Fetch the record of a command."""
        try:
            handler.record = await handler.find()
        except Unavailable:
            handler.error = Simple.INTERNAL
        except Exception as error:
            handler.error = _unexpected(error)

    async def _execute(self, handlers: list[Handler[Any, Any]]) -> None:
        for place, handler in enumerate(handlers):
            if place:
                await self._find(handler)
            self.answer(handler, handler.error or handler.refused() or await self._result(handler))

    async def _result(self, handler: Handler[Any, Any]) -> Answer:
        span = self.shared.tracer.sample(handler.name)
        try:
            answer = await handler.execute(handler.record)
        except Unavailable:
            answer = Simple.INTERNAL
        except Exception as error:
            answer = _unexpected(error)
        span.end(None if isinstance(answer, NtfReply) else str(getattr(answer, "value", type(answer).__name__)))
        return answer

    def answer(self, handler: Handler[Any, Any], answer: Answer) -> None:
        answers, command = self.shared.answers, type(handler.t.command)
        answers.by_command[command] += 1
        if not isinstance(answer, NtfReply):
            answers.failed(command, answer)
        entity_id = b"" if isinstance(answer, _WITHOUT_ENTITY) else handler.t.entity_id
        self._answer(handler.t.corr_id, entity_id, answer)

    def _answer(self, corr_id: bytes, entity_id: bytes, answer: Answer) -> None:
        reply = answer if isinstance(answer, NtfReply) else ERR(answer)
        encoded = encode_reply(self.framing.version, reply)
        self.outgoing.add(encode_server(self.framing, corr_id, entity_id, encoded))

    # Requests of the edge.

    def drain(self) -> None:
        """Close the connection as soon as everything that came is answered."""
        if not self.draining:
            self.draining = True
            self.incoming.stop_reading()
        if self.incoming.idle:
            self.outgoing.flush()
            self.conn.close()


def _unexpected(error: Exception) -> Simple:
    log_mistake(_log, "a command failed", error)
    return Simple.INTERNAL
