"""The connection of a mux: dial, greet, and dial again when it breaks.

    dial ──► greeting: AUTH, SELECT, SCRIPT LOAD …, CLIENT KILL of the previous connection ──► ready ──► broken ──► dial

An abandoned connection may still have commands in Redis' buffers, and the new connection repeats them. A late execution
of the old command after the repeated one would break the order. So the new connection first kills the old one.
"""

import asyncio
import itertools
import logging
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, cast

import hiredis

from weir.redis.errors import StoreError, Unavailable
from weir.redis.resp import command
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)

_GENERATIONS: Final = itertools.count(1)
_BACKOFF: Final = (0.02, 1.0)
_REFUSED: Final = frozenset(("NOAUTH", "WRONGPASS", "NOPERM", "ERR", "DENIED"))


# The code in front of the text. Redis 6.2 puts the place of the error in the script before the code:
# "ERR Error running script (…): @user_script:1: @user_script: 1: -OOM command not allowed …".
_CODE: Final = re.compile(r"(?:(?:ERR Error running script .*)?@user_script: ?\d+: -?)?([A-Z]{2,})\b")
_NO_RIGHT: Final = re.compile(r"ACL failure in script|The user executing the script can't run")


class ReplyError(Unavailable):
    """An error that Redis answered, e.g. because its memory is full."""

    @property
    def code(self) -> str:
        """One word in capitals; ERR if Redis gave none."""
        text = str(self)
        if _NO_RIGHT.search(text):
            return "NOPERM"
        found = _CODE.match(text)
        return found[1] if found else "ERR"


class Dial(Protocol):
    """Opens a transport for the protocol; raises OSError when the node cannot be reached."""

    async def __call__(self, protocol: asyncio.Protocol) -> None: ...


class _Identity(NamedTuple):
    """Identifies a connection. Redis counts client ids from 1 in every process, so the id alone is not enough: it takes
    the address too or, for a Unix socket, which has no address, the run id of the process."""

    client_id: int
    run_id: bytes
    address: bytes


class Connection(asyncio.Protocol, ABC):
    """Keeps a connection up. Subclasses handle its answers (`data_received`) and its ends (`_broken`)."""

    def __init__(self, dial: Dial, greeting: Callable[[], list[bytes]], deadline: float) -> None:
        self._dial = dial
        self._greeting = greeting
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader: Any = None
        self._closed = False
        self._greeted: tuple[list[Any], int, asyncio.Future[None]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._backoff = _BACKOFF[0]
        self._identity: _Identity | None = None  # of the last connection
        self.started: asyncio.Future[None] = self._loop.create_future()
        # Differs for each connection: a cursor of SCAN is good for one connection only.
        self.generation = next(_GENERATIONS)

    # For subclasses to implement

    @abstractmethod
    def _opened(self, first: bool) -> None:
        """The greeting is done: commands may be written."""

    @abstractmethod
    def _not_opened(self, code: str | None) -> None:
        """The node cannot be reached, or (with `code`) it refuses the greeting with this error."""

    @abstractmethod
    def _broken(self) -> None:
        """The connection is gone, and with it all answers that have not arrived."""

    # For subclasses to call

    def start_soon(self) -> None:
        """Connect in the background. `started` resolves when connected and raises StoreError when Redis refuses us."""
        self._task = self._loop.create_task(self._run(self.started))

    def drop(self) -> None:
        """Breaks the connection as the network would."""
        if self._transport is not None:
            self._transport.abort()

    async def _run(self, up: "asyncio.Future[None]") -> None:
        """Keeps the connection up until closed."""
        while not self._closed:
            self._lost.clear()
            try:
                await self._dial(self)
                await self._greet()
            except Exception as error:
                # Every exception is caught: without this task, nothing would connect again.
                if not isinstance(error, (OSError, ReplyError, StoreError)):
                    log_mistake(_log, "connecting to Redis failed and starts again", error)
                refused = error.__cause__ if isinstance(error, StoreError) else error
                self._not_opened(refused.code if isinstance(refused, ReplyError) else None)
                self._greeted = None
                if self._transport is not None:
                    self._transport.abort()
                if isinstance(error, StoreError) and not up.done():
                    up.set_exception(error)
                    return
                await asyncio.sleep(self._backoff * random.uniform(0.7, 1.3))
                self._backoff = min(self._backoff * 2, _BACKOFF[1])
                continue
            self._backoff = _BACKOFF[0]
            self.generation = next(_GENERATIONS)
            first = not up.done()
            self._opened(first)
            if first:
                up.set_result(None)
            await self._lost.wait()

    async def _greet(self) -> None:
        greeting, before = self._greeting(), self._identity
        words = [*greeting, command(b"CLIENT", b"ID"), command(b"INFO", b"server")]
        if before is not None and before.address:
            words.append(command(b"CLIENT", b"KILL", b"ID", before.client_id, b"ADDR", before.address))
        replies = await self._exchange(words)
        for reply in replies[: len(greeting)]:
            if isinstance(reply, ReplyError):
                if reply.code in _REFUSED:
                    raise StoreError(f"Redis refuses the connection: {reply}") from reply
                raise reply
        client_id, info = replies[len(greeting) : len(greeting) + 2]
        self._identity = now = _identity(client_id, info, self._transport)
        if before is not None and now is not None and not before.address and before.run_id == now.run_id:
            await self._exchange([command(b"CLIENT", b"KILL", b"ID", before.client_id)])

    async def _exchange(self, words: list[bytes]) -> list[Any]:
        future: asyncio.Future[None] = self._loop.create_future()
        if self._transport is None:
            raise OSError("closed")
        self._greeted = ([], len(words), future)
        self._transport.write(b"".join(words))
        try:
            async with asyncio.timeout(self._deadline):
                await future
        except TimeoutError as error:
            raise OSError("no answer") from error
        replies, self._greeted = self._greeted[0], None
        return replies

    def _greeting_reply(self) -> None:
        assert self._greeted is not None
        replies, expected, future = self._greeted
        while len(replies) < expected and (reply := self._reader.gets()) is not False:
            replies.append(reply)
        if len(replies) == expected and not future.done():
            future.set_result(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._reader = hiredis.Reader(replyError=ReplyError)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._greeted is not None:
            future = self._greeted[2]
            if not future.done():
                future.set_exception(OSError("closed"))
            return
        if self._closed:
            return
        self._broken()
        self._lost.set()


def _identity(client_id: object, info: object, transport: asyncio.Transport | None) -> _Identity | None:
    if not isinstance(client_id, int) or not isinstance(info, bytes) or transport is None:
        return None
    name = transport.get_extra_info("sockname")
    address = ""
    if isinstance(name, tuple):
        address = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
    return _Identity(client_id, info.partition(b"run_id:")[2][:40], address.encode())
