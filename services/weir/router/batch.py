"""The commands of one block: a few under way at a time, answered in their order, together where that is little.

A block holds up to 255 commands, each of which may bring a message of 16 KB. Read and begun all at once, they would
stand in front of every other connection's at this edge and at Redis, and their answers would wait here whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir.router.op import Op
from weir.router.subscriptions import Sub
from weir.store.records import Entry
from weir.wire import commands as cmd
from weir.wire.transmission import ClientTransmission, decode_client, encode_server

if TYPE_CHECKING:
    from weir.router.connection import Client

# Commands of a block begun in one turn of the loop, and begun and not answered.
_UNDER_WAY_ALONE = 32  # fewer cost more each, as with blocks
_UNDER_WAY = 16
_TOGETHER = 16384  # bytes of answers above which they leave before the rest is answered
_HELD = 4 * _TOGETHER  # bytes of answers, behind one that is missing, above which no more are begun
_SOKS_WITH_MESSAGE = 4
# Blocks that hold nothing but this are counted.
_STATS = {cmd.SUB: "qSubAllB", cmd.DEL: "qDeletedAllB", cmd.NDEL: "ntfDeletedB", cmd.NSUB: "ntfSubB"}


class Batch:
    """The origin of a block's commands. The first message leaves with up to four answers."""

    __slots__ = (
        "_begun",
        "_bytes",
        "_client",
        "_content",
        "_held",
        "_kinds",
        "_left",
        "_limit",
        "_messages",
        "_replies",
        "_sent",
        "_spans",
        "session",
        "verifier",
    )

    def __init__(self, client: Client, content: bytes, spans: list[tuple[int, int]]) -> None:
        self._client = client
        self.session = client.session
        self.verifier = client.verifier
        self._content = content
        self._spans = spans
        self._kinds: set[type[cmd.Command]] = set()
        self._replies: list[bytes | None] = [None] * len(spans)
        self._begun = self._sent = 0
        self._left = len(spans)
        self._bytes = 0
        self._held = client.out.hold()
        self._messages: list[tuple[bytes, Sub, Entry]] = []

    def more(self) -> bool:
        """Begin the next commands, as far as this turn may; whether all are begun."""
        client, content, spans = self._client, self._content, self._spans
        count = len(spans)
        self._limit = limit = _UNDER_WAY_ALONE if client.router.scheduler.alone else _UNDER_WAY
        end = min(count, self._begun + limit)
        while self._begun < end and self._under_way < limit and self._bytes < _HELD and not client.out.full:
            index = self._begun
            self._begun += 1
            t = decode_client(self.session, content, *spans[index])
            if type(t) is ClientTransmission:
                self._kinds.add(type(t.command))
            client.begin(t, self, index)
        if self._begun < count:
            return False
        self._count()
        return True

    def _count(self) -> None:
        if len(self._kinds) == 1:
            name = _STATS.get(next(iter(self._kinds)))
            if name is not None:
                stats = self._client.router.stats
                setattr(stats, name, getattr(stats, name) + 1)

    @property
    def _under_way(self) -> int:
        return self._begun + self._left - len(self._spans)

    @property
    def waits(self) -> bool:
        """For an answer, before more may be begun."""
        return self._under_way >= self._limit or self._bytes >= _HELD

    # Answers.

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        self._answered(index, encode_server(self.session, corr_id, entity_id, reply))

    def answer(self, op: Op, reply: bytes) -> None:
        t = op.t
        self._held.ids.add(t.entity_id)
        self._answered(op.index, encode_server(self.session, t.corr_id, t.entity_id, reply))

    def answer_sub(self, op: Op, reply: bytes, sub: Sub, entry: Entry) -> None:
        self._messages.append((op.t.entity_id, sub, entry))
        self.answer(op, reply)

    def detach(self, op: Op) -> None:
        self._answered(op.index, b"")

    def _answered(self, index: int, reply: bytes) -> None:
        self._replies[index] = reply
        self._bytes += len(reply)
        self._left -= 1
        if not self._left:
            self._last()
            return
        if self._bytes > _TOGETHER:
            self._leave()
        if self._begun < len(self._spans) and self._under_way <= self._limit // 2:  # several at once cost less each
            self._client.go_on()

    def _leave(self) -> None:
        """The answers up to the first that is missing leave."""
        replies, at, add = self._replies, self._sent, self._client.out.add
        while (reply := replies[at]) is not None:
            if reply:
                add(reply)
                self._bytes -= len(reply)
                replies[at] = b""
            at += 1
        self._sent = at

    def _last(self) -> None:
        client, messages = self._client, self._messages
        replies = [reply for reply in self._replies if reply]
        client.block_done()
        if messages and len(replies) <= _SOKS_WITH_MESSAGE:
            client.out.message_with(replies, self._held, *messages[0])
            messages = messages[1:]
        else:
            for reply in replies:
                client.out.add(reply)
            client.out.release(self._held)
        for rcv_id, sub, entry in messages:
            client.out.message(rcv_id, sub, entry)
