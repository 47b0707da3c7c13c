"""Commands that wait for Redis in a task: one that fails unexpectedly is answered as well.

Without an answer, the client would wait for ever, and the later blocks of its connection with it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from weir.wire.errors import Simple

if TYPE_CHECKING:
    from weir.router.commands.handler import Handler, Origin
    from weir.router.session.subscriptions import Sub
    from weir.router.store.records import Entry


class _Answered:
    """An origin that notes whether its command is answered, while the command waits for Redis in a task."""

    __slots__ = ("_origin", "answered", "framing", "verifier")

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.answered = False
        self.framing = origin.framing
        self.verifier = origin.verifier

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self.answered = True
        self._origin.put(index, corr_id, entity_id, reply)

    def answer(self, handler: Handler, reply: bytes) -> None:
        self.answered = True
        self._origin.answer(handler, reply)

    def answer_sub(self, handler: Handler, reply: bytes, sub: Sub, entry: Entry) -> None:
        self.answered = True
        self._origin.answer_sub(handler, reply, sub, entry)

    def detach(self, handler: Handler) -> None:
        self.answered = True
        self._origin.detach(handler)


async def answer_failure(handler: Handler, work: Awaitable[None]) -> None:
    """Await the work of a command. Answer INTERNAL if it fails unexpectedly; the caller's task logs the error."""
    handler.origin = origin = _Answered(handler.origin)
    try:
        await work
    except Exception:
        if not origin.answered:
            handler.fail(Simple.INTERNAL)
        raise
