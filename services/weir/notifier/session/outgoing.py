"""The outgoing side of a session: the answers of one turn of the loop leave together, in as few blocks as possible.

Answers are always taken, because a client whose answers pile up is not read from (`full`).
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from typing import TYPE_CHECKING, Any

from weir.transport.server import TransportConfig
from weir.wire.ntf.transmission import pack

if TYPE_CHECKING:
    from weir.runtime.turns import Share
    from weir.transport.ntf import NtfConnection

LIMITS = TransportConfig(outgoing_bytes=64 << 10, outgoing_low_bytes=16 << 10)
"""Bytes of answers that wait for a client. With more, the client is not read from. The transport calls `on_writable`
only after it had more than its own limit, so a listener must have these limits."""


class Outgoing:
    __slots__ = ("_conn", "_items", "_loop", "charged_to", "closed", "full")

    def __init__(self, conn: NtfConnection, loop: AbstractEventLoop) -> None:
        self._conn = conn
        self._loop = loop
        self._items: list[bytes] = []
        self.full = False
        self.closed = False
        self.charged_to: Share[Any] | None = None

    def add(self, transmission: bytes) -> None:
        """Send an encoded transmission at the end of this turn."""
        if not self._items:
            self._loop.call_soon(self.flush)
        self._items.append(transmission)

    def flush(self) -> None:
        """Send what was added."""
        items, self._items = self._items, []
        if self.closed or not items:
            return
        self._conn.send_contents(pack(self._conn.session, items))
        self.full = self._conn.buffered > LIMITS.outgoing_bytes

    def on_writable(self) -> None:
        """The transport's buffer has drained."""
        self.full = False
