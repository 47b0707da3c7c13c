"""The incoming side of a session: a client's blocks, begun in their order.

    transport ──on_blocks──► blocks ──begin──┬── the program begins the block's commands at once
                                             └── the program returns a `Block`: begun a few commands per turn

The commands of a connection begin in the order in which they came. A command that needs more than cached credentials
takes a `Hold`. While a hold is not released, no further block begins, so nothing overtakes the command. A block that is
not begun completely holds back the blocks behind it as well.

The router stops reading from a client when blocks wait, when the client's outgoing buffer is full, or when the
connection is throttled (weir/runtime/turns.py).

Why commands run as callbacks: a session was also built as one coroutine that takes a block, verifies its commands,
awaits Redis once for the whole block and hands the answers out. Measured by turns with `weir bench cycle` and
`weir bench sub`, medians of three: a cycle took 336 µs of the edge's CPU instead of 287 (16 KB) and 301 instead of 264
(64 bytes), because a task, a future and two more turns of the loop per block cost more than the callbacks, and fewer
commands shared a write to Redis (91 µs instead of 76). A batched SUB took 57 µs instead of 63. A tenth more was the
limit, so the callbacks stayed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from weir.runtime.turns import Share, Turns

_log = logging.getLogger(__name__)

# Blocks of one client that are begun and not answered. Other clients wait behind them at this edge and at Redis.
_IN_PROGRESS = 2  # one block in progress and the next one ready
_IN_PROGRESS_ALONE = 8  # many blocks in one write to Redis cost less each


class Connection(Protocol):
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Outgoing(Protocol):
    """The outgoing side of the session."""

    full: bool
    charged_to: Share[Any] | None
    """Pays for sending while blocks of the client wait."""


class Block(Protocol):
    """A block of several commands."""

    def begin_more(self) -> bool:
        """Begin as many commands as this turn allows. Return whether all commands of the block are begun."""

    @property
    def waits(self) -> bool:
        """Whether an answer must come before more commands may begin."""


class Hold:
    """Keeps the blocks behind a command from beginning, until `release` is called once."""

    __slots__ = ("_incoming",)

    def __init__(self, incoming: Incoming) -> None:
        self._incoming: Incoming | None = incoming

    def release(self) -> None:
        """Let the next block begin. Raises RuntimeError when the hold is released already."""
        incoming, self._incoming = self._incoming, None
        if incoming is None:
            raise RuntimeError("a hold is released only once")
        incoming.released()

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is not None and not incoming.closed:
            _log.error("a command was dropped without an answer; the commands behind it continue")
            incoming.released()


class Incoming:
    """One client's blocks that are not begun, and how many are in progress."""

    __slots__ = (
        "_begin",
        "_conn",
        "_outgoing",
        "_paused_for_good",
        "_scheduled",
        "_turns",
        "block",
        "block_hold",
        "blocks",
        "closed",
        "holds",
        "in_progress",
        "paused",
        "share",
        "throttled",
    )

    def __init__(
        self,
        conn: Connection,
        turns: Turns,
        share: Share[Any],
        outgoing: Outgoing,
        begin: Callable[[bytes], Block | None],
    ) -> None:
        self._conn = conn
        self._turns = turns
        self._outgoing = outgoing
        self._begin = begin  # decodes a block and dispatches it; returns a block of several commands
        self.share = share
        self.blocks: deque[bytes] = deque()  # still encrypted, not begun
        self.block: Block | None = None  # the block whose commands are not all begun
        self.block_hold: Hold | None = None
        self.in_progress = 0  # blocks that are begun and not answered
        self.holds = 0
        self.paused = False
        self.throttled = False
        self.closed = False
        self._scheduled = False
        self._paused_for_good = False

    def on_blocks(self, blocks: list[bytes]) -> None:
        """Take blocks from the transport. A single block of an idle client begins at once."""
        turns = self._turns
        if turns.last is not self:
            turns.heard(self)
        if self.in_progress or self.blocks or len(blocks) > 1 or self.holds or self._outgoing.full:
            self.blocks += blocks
            self._outgoing.charged_to = self.share
            if self.share.throttle():
                self.schedule()
            elif not self._scheduled:
                self._continue()
        else:
            self.in_progress += 1
            several = self._begin(blocks[0])
            if several is not None:
                self._begin_several(several)

    def hold(self) -> Hold:
        """Hold back the blocks that are not begun."""
        self.holds += 1
        return Hold(self)

    def released(self) -> None:
        """A hold was released."""
        self.holds -= 1
        if self.blocks and not self.holds:
            self.schedule()

    def block_answered(self) -> None:
        """All commands of a block are answered."""
        self.in_progress -= 1
        if self.blocks and not self.holds:
            self.schedule()

    def schedule(self) -> None:
        """Begin more in the next turn of the loop, or when the connection is throttled no longer."""
        if self._scheduled or (self.block is None and not self.blocks):
            return
        self._scheduled = True
        wait = self.share.throttle()
        if wait:
            self.throttled = True
            self._pause()
            self._turns.loop.call_later(wait, self._continue)
        else:
            self._turns.loop.call_soon(self._continue)

    def _continue(self) -> None:
        began = perf_counter()
        self._scheduled = self.throttled = False
        if self.block is not None:
            self._begin_commands(self.block)
        alone = self._turns.alone
        limit = _IN_PROGRESS_ALONE if alone else _IN_PROGRESS
        in_this_turn = _IN_PROGRESS_ALONE if alone else 1
        while self.blocks and not self.holds and self.in_progress < limit and not self._outgoing.full:
            if not in_this_turn:
                self.schedule()
                break
            in_this_turn -= 1
            self.in_progress += 1
            several = self._begin(self.blocks.popleft())
            if several is not None:
                self._begin_several(several)
        self._outgoing.charged_to = self.share if self.blocks or self.block is not None else None
        if self.blocks:
            self._pause()
        elif self.paused and not (self.throttled or self.closed or self._paused_for_good):
            self.paused = False
            self._conn.resume_reading()
        self.share.charge(began, perf_counter())

    def _begin_several(self, block: Block) -> None:
        self.block, self.block_hold = block, self.hold()
        self._begin_commands(block)

    def _begin_commands(self, block: Block) -> None:
        if block.begin_more():
            self._block_begun()
            return
        self._outgoing.charged_to = self.share
        if not (block.waits or self._outgoing.full):
            self.schedule()

    def _block_begun(self) -> None:
        self.block, hold, self.block_hold = None, self.block_hold, None
        if hold is not None:
            hold.release()

    def _pause(self) -> None:
        if not self.paused:
            self.paused = True
            self._conn.pause_reading()

    @property
    def idle(self) -> bool:
        """Whether everything that came is answered."""
        return not self.in_progress and not self.blocks

    def stop_reading(self) -> None:
        """Answer what has come, and read no more."""
        self._paused_for_good = True
        self._pause()

    def close(self) -> None:
        """The client has disconnected: begin nothing more."""
        self.closed = True
        self.blocks.clear()
        self.share.close()
        self._block_begun()
