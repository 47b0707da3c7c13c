"""A mux is one connection to one Redis node, shared by all calls of the edge.

    call ──► _out ──── one write per turn of the loop ────► Redis
         └─► _pending ◄──── answers, in the order of the commands ────┘ ──► callback

    not connected:   call ──► _waiting ──── written when the connection is ready
    _held:           answers that wait for WAIT or WAITAOF, which says that the writes before it are durable
    _redo:           commands that Redis refused to execute for now (loading, moved, scripts forgotten)

Commands are pipelined. The mux reconnects by itself and repeats what was not answered; scripts are repeated in their
retry form, and know by it that the first attempt may have been executed. Nothing is repeated after its deadline: the
marks by which scripts recognise a retry do not stay for ever.

A command without an answer within the deadline fails with UNAVAILABLE. If it was a script that may have marked a
message as in flight (`late`), its late answer is still passed to the callback, so that the message is delivered.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from weir.redis.connection import Connection, Dial, ReplyError
from weir.redis.durability import Durability
from weir.redis.errors import UNAVAILABLE
from weir.redis.failures import DISCONNECTED, NOT_DURABLE, TIMEOUT, Failures
from weir.redis.operations import (
    AT,
    BODY,
    CTX,
    FAILED,
    LATE,
    LATE_KINDS,
    LATE_ONE_KEY,
    LATER,
    MOVING,
    NOT_EXECUTED,
    ON_REPLY,
    SCRIPT,
    WIRE,
    OnReply,
    Op,
    ignore,
    make_retry,
    resolve,
)
from weir.redis.round_trip import RoundTrip
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)
_TICK: Final = 0.1
_NOT_HANDLED: Final = "the answer to a command was not handled"


class Mux(Connection):
    """On a Redis Cluster, `on_moved` is called when the node refused commands because another node serves their slots.

    All commands in flight are answered by then, and the callee takes the unwritten ones with `hand_over`. Without
    `on_moved` (one master), the mux dials again and so finds the new master. `on_moving` gets each operation whose slot
    is migrating; the other operations continue.
    """

    def __init__(
        self,
        dial: Dial,
        greeting: Callable[[], list[bytes]],
        *,
        deadline: float = 5.0,
        durability: Durability | None = None,
        on_up: Callable[[], None] | None = None,
        on_down: Callable[[], None] | None = None,
        on_moved: Callable[[ReplyError], None] | None = None,
        on_moving: Callable[[Op, ReplyError], None] | None = None,
        on_round_trip: Callable[[float], None] = lambda _seconds: None,
        failures: Failures | None = None,
    ) -> None:
        super().__init__(dial, greeting, deadline)
        self._durability = durability
        self._on_up = on_up
        self._on_down = on_down
        self._on_moved = on_moved
        self._on_moving = on_moving
        self._round_trip = RoundTrip(on_round_trip)
        self._ready = False  # greeted: commands may be written
        self._out: list[bytes] = []
        self._flushing = False
        self._dirty = False  # `_out` holds a write that has to be made durable
        self._pending: deque[Op] = deque()  # written, not answered
        self._waiting: deque[Op] = deque()  # not written
        self._held: list[tuple[Op, Any]] = []  # answered, not durable yet
        self._waits = 0
        self._body_error: ReplyError | None = None
        self._redo: list[Op] = []
        self._redo_error: ReplyError | None = None
        self._now = self._heard = self._loop.time()
        self._ticker = self._loop.call_later(_TICK, self._tick)
        self.calls = self.flushes = 0
        self._failures = failures or Failures()

    # Calls

    def script(self, wire: bytes, on_reply: OnReply, ctx: Any, late: bool = False) -> None:
        """A script call that ends in the retry flag."""
        self.calls += 1
        self._write([wire, on_reply, ctx, LATE if late else True, self._now], True)

    def script_of_one_key(self, wire: bytes, on_reply: OnReply, ctx: Any) -> None:
        """A script call that waits neither for its slot's migration nor for durability. A late answer is passed on."""
        self.calls += 1
        self._write([wire, on_reply, ctx, LATE_ONE_KEY, self._now], False)

    def script_with_body(self, head: bytes, body: bytes, wire: bytes, on_reply: OnReply, ctx: Any) -> None:
        """A SET of `body` and the script that uses it, as one operation. `head` is all of the SET before the value,
        `wire` the rest of it and the script call."""
        self.calls += 1
        pieces = (head, body, wire)
        op = [pieces, on_reply, ctx, LATE, self._now]
        if self._ready:  # the steps of `_write`, without a call: this is the hottest command
            self._pending.append(BODY)
            self._pending.append(op)
            self._out += pieces
            self._dirty = True
            if not self._flushing:
                self._flushing = True
                self._loop.call_soon(self._flush)
        else:
            self._waiting.append(op)

    def read(self, wire: bytes, on_reply: OnReply, ctx: Any) -> None:
        """A command that changes nothing."""
        self.calls += 1
        self._write([wire, on_reply, ctx, False, self._now], False)

    def submit(self, wire: bytes, on_reply: OnReply, ctx: Any) -> None:
        """A plain command that may be repeated as it is."""
        self.calls += 1
        self._write([wire, on_reply, ctx, False, self._now], True)

    def once(self, wire: bytes, on_reply: OnReply, ctx: Any) -> None:
        """A plain command that must not be repeated: it fails when the connection breaks."""
        self.calls += 1
        if self._ready:
            self._write([wire, on_reply, ctx, None, self._now], True)
        else:
            self._failures.count(DISCONNECTED)
            on_reply(UNAVAILABLE, ctx)

    def ask(self, wire: bytes, *, script: bool = False, durable: bool = True) -> "asyncio.Future[Any]":
        """The answer as a future, which raises Unavailable or ReplyError."""
        self.calls += 1
        future: asyncio.Future[Any] = self._loop.create_future()
        self._write([wire, resolve, future, script, self._now], durable)
        return future

    def resubmit(self, ops: list[Op]) -> None:
        """Write operations that another mux gave back."""
        for op in ops:
            self._write(op, True)

    def withdraw(self, unwanted: Callable[[bytes], bool]) -> None:
        """Fail script calls that wait for a connection and are unwanted by now."""
        kept: deque[Op] = deque()
        taken: list[Op] = []
        for op in self._waiting:
            (taken if op[WIRE].__class__ is bytes and unwanted(op[WIRE]) else kept).append(op)
        self._waiting = kept
        for op in taken:
            self._answer(op, UNAVAILABLE)

    def _write(self, op: Op, dirty: bool) -> None:
        if not self._ready:
            self._waiting.append(op)
            return
        wire = op[WIRE]
        if wire.__class__ is tuple:
            self._pending.append(BODY)
            self._out += wire
        else:
            self._out.append(wire)
        self._pending.append(op)
        self._dirty |= dirty
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        out = self._out
        if not out or self._transport is None:
            return
        self.flushes += 1
        if self._round_trip.due:
            self._round_trip.begin(self._pending[-1])
        durability = self._durability
        if durability is not None and durability.wait is not None and self._dirty:
            self._waits += 1
            self._pending.append([b"", self._durable, None, False, self._now])
            out.append(durability.wait)
        self._dirty = False
        self._transport.write(b"".join(out))
        out.clear()

    @property
    def connected(self) -> bool:
        return self._ready

    @property
    def idle(self) -> bool:
        return not (self._pending or self._waiting or self._redo)

    # Answers

    def data_received(self, data: bytes) -> None:
        self._heard = self._now
        reader = self._reader
        reader.feed(data)
        if self._greeted is not None:
            self._greeting_reply()
            return
        gets = reader.gets
        popleft = self._pending.popleft
        while True:
            reply = gets()
            if reply is False:
                break
            op = popleft()
            if op is BODY:
                if reply.__class__ is ReplyError:
                    self._body_error = reply
                continue
            if self._body_error is not None:
                if reply.__class__ is not ReplyError:
                    make_retry(op)  # the script was executed without its body: a second call must be a retry
                reply, self._body_error = self._body_error, None
            if reply.__class__ is ReplyError:
                if reply.code in NOT_EXECUTED:
                    self._redo_later(op, reply)
                    continue
                self._failures.count(reply.code)
                if op[ON_REPLY] is not resolve:
                    if op[AT] == FAILED:
                        continue
                    reply = UNAVAILABLE
            if self._waits and op[ON_REPLY] != self._durable:
                self._held.append((op, reply))
                continue
            try:
                op[ON_REPLY](reply, op[CTX])
            except Exception as error:
                log_mistake(_log, _NOT_HANDLED, error)  # the answers behind this one are for other callers
        if self._round_trip.op is not None:
            self._round_trip.check(self._pending)
        if self._redo_error is not None and not self._pending:
            self._recover()

    def _answer(self, op: Op, reply: Any) -> None:
        try:
            op[ON_REPLY](reply, op[CTX])
        except Exception as error:
            log_mistake(_log, _NOT_HANDLED, error)

    def _durable(self, reply: Any, _ctx: Any) -> None:
        """The answer to WAIT or WAITAOF: all writes of the flush before it are durable, or all of them fail."""
        self._waits -= 1
        held, self._held = self._held, []
        assert self._durability is not None
        enough = self._durability.enough(reply)
        if held and not enough:
            self._failures.count(NOT_DURABLE, len(held))
        for op, answer in held:
            if not enough and op[AT] != FAILED:
                self._answer(op, UNAVAILABLE)
            if enough or op[SCRIPT] in LATE_KINDS:
                self._answer(op, answer)

    def _redo_later(self, op: Op, error: ReplyError) -> None:
        """The command was not executed. Stop writing until all commands in flight are answered, to keep the order."""
        if self._on_moving is not None and error.code in MOVING:
            if op[AT] != FAILED:
                self._on_moving(op, error)
            return
        self._ready = False
        if op[AT] != FAILED:
            self._redo.append(op)
        self._redo_error = error

    def _redo_first(self) -> None:
        self._waiting.extendleft(reversed(self._redo))
        self._redo = []

    def _recover(self) -> None:
        self._redo_first()
        error, self._redo_error = self._redo_error, None
        assert error is not None
        if error.code in LATER:
            self._loop.call_later(0.05, self._resume)
        elif error.code != "NOSCRIPT" and self._on_moved is not None:
            self._on_moved(error)
        elif self._transport is not None:
            self._transport.abort()  # a new connection finds the master and loads the scripts

    def hand_over(self) -> list[Op]:
        """Take all unwritten operations, for the nodes that serve them now. Call `resume` afterwards."""
        ops, self._waiting = list(self._waiting), deque()
        return ops

    def resume(self) -> None:
        if self._transport is not None and self._greeted is None and not self._redo:
            self._resume()

    def _resume(self) -> None:
        if self._transport is None or self._closed:
            return
        self._ready = True
        self.resubmit(self.hand_over())

    def _tick(self) -> None:
        """Fail commands that are past the deadline. Their late answers are dropped, except those of `late` scripts."""
        self._now = now = self._loop.time()
        self._ticker = self._loop.call_later(_TICK, self._tick)
        self._round_trip.ask()
        since = now - self._deadline
        while self._waiting and self._waiting[0][AT] < since:
            op = self._waiting.popleft()
            self._failures.count(TIMEOUT)
            self._answer(op, UNAVAILABLE)
        if not (self._pending or self._held):
            return
        late = [op for op in (*self._pending, *(op for op, _ in self._held)) if FAILED < op[AT] < since]
        for op in late:
            if op[ON_REPLY] == self._durable:
                continue
            op[AT] = FAILED
            self._failures.count(TIMEOUT)
            self._answer(op, UNAVAILABLE)
            if op[SCRIPT] not in LATE_KINDS:
                op[ON_REPLY] = ignore
        if late and now - self._heard > 2 * self._deadline and self._transport is not None:
            self._transport.abort()

    # The connection

    async def close(self) -> None:
        """Close the connection. Commands without an answer fail."""
        self._closed = True
        self._ready = False
        self._ticker.cancel()
        self.started.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._task
        if self._transport is not None:
            self._transport.abort()
        for op in self._unanswered():
            self._answer(op, UNAVAILABLE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._body_error = None
        self._round_trip.drop()
        self._waits = 0
        self._heard = self._loop.time()

    def _opened(self, first: bool) -> None:
        self._resume()
        if not first and self._on_up is not None:
            self._on_up()

    def _not_opened(self, code: str | None) -> None:
        self._failures.count(code or DISCONNECTED)

    def _broken(self) -> None:
        was_ready, self._ready = self._ready or bool(self._redo), False
        ops = self._unanswered(retry=True)
        # A process that was stopped may hear of the end of its connection before its clock fails what is too late.
        since = self._loop.time() - self._deadline
        again = [op for op in ops if op[SCRIPT] is not None and op[AT] >= since]
        self._waiting.extendleft(reversed(again))
        for op in ops:
            if op[SCRIPT] is None or op[AT] < since:
                self._answer(op, UNAVAILABLE)
        self._failures.count(DISCONNECTED)
        if was_ready and self._on_down is not None:
            self._on_down()

    def _unanswered(self, *, retry: bool = False) -> list[Op]:
        """Take all commands without an answer, in order. Without `retry`, also those that were not written."""
        written = [*(op for op, _ in self._held), *self._redo, *self._pending]
        ops = [op for op in written if op[AT] != FAILED and op[ON_REPLY] != self._durable]
        self._held, self._redo, self._redo_error = [], [], None
        self._pending.clear()
        self._out.clear()
        if not retry:
            return ops + self.hand_over()
        for op in ops:
            make_retry(op)
        return ops
