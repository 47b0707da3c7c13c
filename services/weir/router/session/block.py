"""A block of several commands: a few in progress at a time, answered in their order, together if the answers are small.

A block holds up to 255 commands, and each may bring a message of 16 KB. If all began at once, other connections would
wait behind them at this edge and at Redis, and all answers would be in memory at the same time.

When END or ENDS comes for an entity whose answer waits for others, the answers that are there leave first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir.router.session.subscriptions import Sub
from weir.router.store.records import Entry
from weir.wire.smp import commands as cmd
from weir.wire.smp.transmission import ClientTransmission, decode_client, encode_server

if TYPE_CHECKING:
    from weir.router.commands.handler import Handler
    from weir.router.session.session import Session

# Commands of a block that begin in one turn of the loop, and that are begun and not answered.
_IN_PROGRESS = 16
_IN_PROGRESS_ALONE = 32  # many commands in one write to Redis cost less each
_SUBS_IN_PROGRESS = 255  # for a block of SUBs, which bring no bodies: many in one call to the store cost less each
_TOGETHER = 16384  # bytes: larger answers leave before the rest is answered
_PENDING = 4 * _TOGETHER  # bytes of answers that wait for an earlier one; with more, no further command begins
_SOKS_WITH_MESSAGE = 4
# Statistics that count blocks of only one kind of command.
_ONLY_SUBS = {cmd.SUB}
_BLOCK_STATS = {cmd.SUB: "qSubAllB", cmd.DEL: "qDeletedAllB", cmd.NDEL: "ntfDeletedB", cmd.NSUB: "ntfSubB"}


class Block:
    """The origin of a block's commands. The first message leaves with up to four answers."""

    __slots__ = (
        "_barrier",
        "_begun",
        "_bytes",
        "_content",
        "_in_turn",
        "_kinds",
        "_messages",
        "_replies",
        "_sent",
        "_session",
        "_spans",
        "_unanswered",
        "framing",
        "verifier",
    )

    def __init__(self, session: Session, content: bytes, spans: list[tuple[int, int]]) -> None:
        self._session = session
        self.framing = session.framing
        self.verifier = session.verifier
        self._content = content
        self._spans = spans
        self._kinds: set[type[cmd.Command]] = set()
        self._replies: list[bytes | None] = [None] * len(spans)
        self._begun = self._sent = 0
        self._unanswered = len(spans)
        self._bytes = 0
        self._in_turn = _IN_PROGRESS
        self._barrier = session.outgoing.barrier(send_answers=self._send_answers)
        self._messages: list[tuple[bytes, Sub, Entry]] = []

    def begin_more(self) -> bool:
        """Begin as many commands as this turn allows. Return whether all commands of the block are begun."""
        session, content, spans = self._session, self._content, self._spans
        count = len(spans)
        self._in_turn = in_turn = _IN_PROGRESS_ALONE if session.shared.turns.alone else _IN_PROGRESS
        end = min(count, self._begun + in_turn)
        while self._begun < end and not self.waits and not session.outgoing.full:
            index = self._begun
            self._begun += 1
            t = decode_client(self.framing, content, *spans[index])
            if type(t) is ClientTransmission:
                self._kinds.add(type(t.command))
            session.dispatch(t, self, index)
        if self._begun < count:
            return False
        self._count()
        return True

    def _count(self) -> None:
        if len(self._kinds) == 1:
            name = _BLOCK_STATS.get(next(iter(self._kinds)))
            if name is not None:
                stats = self._session.shared.stats
                setattr(stats, name, getattr(stats, name) + 1)

    @property
    def in_progress(self) -> int:
        """Commands that are begun and not answered."""
        return self._begun + self._unanswered - len(self._spans)

    @property
    def pending_bytes(self) -> int:
        """Bytes of answers that wait for an earlier one."""
        return self._bytes

    @property
    def _limit(self) -> int:
        """Commands of this block that may be in progress at the same time."""
        return _SUBS_IN_PROGRESS if self._kinds == _ONLY_SUBS else self._in_turn

    @property
    def waits(self) -> bool:
        """Whether an answer must come before more commands may begin."""
        return self.in_progress >= self._limit or self._bytes >= _PENDING

    # The origin of commands.

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self._answered(index, encode_server(self.framing, corr_id, entity_id, reply))

    def answer(self, handler: Handler, reply: bytes) -> None:
        t = handler.t
        self._session.shared.answers.by_command[t.command.__class__] += 1
        self._barrier.ids.add(t.entity_id)
        self._answered(handler.index, encode_server(self.framing, t.corr_id, t.entity_id, reply))

    def answer_sub(self, handler: Handler, reply: bytes, sub: Sub, entry: Entry) -> None:
        self._messages.append((handler.t.entity_id, sub, entry))
        self.answer(handler, reply)

    def detach(self, handler: Handler) -> None:
        self._answered(handler.index, b"")

    def _answered(self, index: int, reply: bytes) -> None:
        self._replies[index] = reply
        self._bytes += len(reply)
        self._unanswered -= 1
        if not self._unanswered:
            self._send_last()
            return
        if self._bytes > _TOGETHER:
            self._send_first()
        if self._begun < len(self._spans) and self.in_progress <= self._limit // 2:  # several at once cost less each
            self._session.incoming.schedule()

    def _send_first(self) -> None:
        """Send the answers up to the first that is missing."""
        replies, at, add = self._replies, self._sent, self._session.outgoing.add
        while (reply := replies[at]) is not None:
            if reply:
                add(reply)
                self._bytes -= len(reply)
                replies[at] = b""
            at += 1
        self._sent = at

    def _send_answers(self) -> bool:
        """An event came for an entity whose answer waits for others: send all answers that are there, out of order."""
        if not self._unanswered:
            return False  # the answers wait for a message that leaves with them
        for index, reply in enumerate(self._replies):
            if reply:
                self._session.outgoing.add(reply)
                self._bytes -= len(reply)
                self._replies[index] = b""
        return True

    def _send_last(self) -> None:
        outgoing, messages = self._session.outgoing, self._messages
        replies = [reply for reply in self._replies if reply]
        self._session.incoming.block_answered()
        if messages and len(replies) <= _SOKS_WITH_MESSAGE:
            outgoing.message_with(replies, self._barrier, *messages[0])
            messages = messages[1:]
        else:
            for reply in replies:
                outgoing.add(reply)
            outgoing.lift(self._barrier)
        for rcv_id, sub, entry in messages:
            outgoing.message(rcv_id, sub, entry)
