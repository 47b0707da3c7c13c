"""The control port: a line protocol for whoever runs the server, with the reference's words.

A session gets its role once, by `auth`; a second `auth` shows it and does not change it. What is typed is never logged
beyond the command's word: queue ids and passwords stay between the operator and the port.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from functools import partial

from weir.router.control_stats import clients, server_info, sockets, stats
from weir.router.control_words import read_blocking, show_blocking, show_queue, show_status
from weir.router.view import EdgeView, Fleet
from weir.store.core import awaited
from weir.store.records import EntityStatus, QueueRecord, Status, Unavailable
from weir.store.store import Store

log = logging.getLogger(__name__)

_MAX_LINE = 4096
_MAX_SESSIONS = 16
_WRONG_PASSWORD_DELAY = 1.0
_ATTEMPTS = 5  # a write that keeps finding the record changed under it

HELP = """\
commands: stats, clients, sockets, server-info, status, block, unblock, delete, trace, suspend, resume, save, help, quit
auth PASSWORD              take the role of this password (once a session)
stats                      counters of the whole fleet
clients                    clients of this edge, one a line (admin)
sockets                    sockets of this edge
server-info                clients and subscriptions of the fleet, then of this edge
status ID                  status of the queue with this sender or link id
block ID reason=spam|content[,notice={"ttl":SECONDS}]
unblock ID
delete ID                  delete the queue and its messages (admin)
trace CLIENT on|off        trace every command of one client of this edge (admin)
suspend | resume           stop or start taking new clients on this edge (admin)
save                       put this edge's counters into Redis, where all else is already (admin)
help | quit"""


class Role(Enum):
    NONE = 0
    USER = 1
    ADMIN = 2

    @property
    def shown(self) -> str:
        return f"CPR{self.name.title()}"


class ControlServer:
    def __init__(self, server: asyncio.Server, sessions: set[asyncio.StreamWriter]) -> None:
        self._server = server
        self._sessions = sessions
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        for writer in list(self._sessions):
            writer.close()
        await self._server.wait_closed()


async def start_control(edge: EdgeView) -> ControlServer:
    sessions: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(sessions) >= _MAX_SESSIONS:
            writer.write(b"error: too many sessions\n")
            writer.close()
            return
        sessions.add(writer)
        try:
            await _Session(edge, reader, writer).run()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            sessions.discard(writer)
            writer.close()

    config = edge.config.control
    return ControlServer(await asyncio.start_server(serve, config.listen, config.port, limit=_MAX_LINE), sessions)


class _Refused(Exception):
    """One line for the operator."""


class _Session:
    def __init__(self, edge: EdgeView, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._edge = edge
        self._fleet = Fleet(edge)
        self._reader = reader
        self._writer = writer
        self._role = Role.NONE

    async def run(self) -> None:
        self._put("SMP server control port", "'help' for supported commands")
        while line := await self._reader.readuntil(b"\n"):
            word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            if word == "quit":
                break
            if word:
                await self._command(word, rest)
            await self._writer.drain()

    async def _command(self, word: str, rest: str) -> None:
        entry = _COMMANDS.get(word)
        if entry is None:
            self._put("error: unknown command, try help")
            return
        role, count, run = entry
        if self._role.value < role.value:
            log.warning("control port: %s without the right to", word)
            self._put("AUTH")
            return
        # The last argument goes to the end of the line: a notice's JSON may have spaces.
        arguments = rest.split(" ", max(count - 1, 0)) if rest else []
        if len(arguments) != count:
            self._put(f"error: {word} takes {count} words, try help")
            return
        if word not in ("auth", "help"):
            log.warning("control port: %s", word)
        try:
            async for text in run(self, arguments):
                self._put(text)
        except _Refused as refusal:
            self._put(f"error: {refusal}")
        except Unavailable:
            self._put("error: Redis does not answer")

    def _put(self, *lines: str) -> None:
        self._writer.write("".join(line + "\n" for line in lines).encode())

    async def auth(self, arguments: list[str]) -> AsyncIterator[str]:
        auth = self._edge.config.auth
        asked = Role.NONE
        for role, password in (
            (Role.ADMIN, auth.control_port_admin_password),
            (Role.USER, auth.control_port_user_password),
        ):
            if password is not None and hmac.compare_digest(arguments[0].encode(), password.encode()):
                asked = role
                break
        if self._role is Role.NONE:
            if asked is Role.NONE:
                await asyncio.sleep(_WRONG_PASSWORD_DELAY)
            self._role = asked
            yield f"Current role is {self._role.shown}"
        else:
            other = "" if asked is self._role else ", start new session to change."
            yield f"Current role is {self._role.shown}{other}"

    async def help(self, arguments: list[str]) -> AsyncIterator[str]:
        yield HELP

    async def stats(self, arguments: list[str]) -> AsyncIterator[str]:
        for line in stats(await self._fleet.numbers(), self._role is Role.ADMIN):
            yield line

    async def sockets(self, arguments: list[str]) -> AsyncIterator[str]:
        for line in sockets(self._edge):
            yield line

    async def server_info(self, arguments: list[str]) -> AsyncIterator[str]:
        for line in server_info(self._edge, await self._fleet.numbers(), self._role is Role.ADMIN):
            yield line

    async def clients(self, arguments: list[str]) -> AsyncIterator[str]:
        for line in clients(self._edge):
            yield line

    async def trace(self, arguments: list[str]) -> AsyncIterator[str]:
        client, switch = arguments
        if not client.isdecimal() or switch not in ("on", "off"):
            raise _Refused("trace CLIENT on|off")
        if self._edge.config.telemetry.traces is None:
            raise _Refused("tracing is off: set [telemetry] traces")
        if not self._edge.trace_session(int(client), switch == "on"):
            raise _Refused("no such client on this edge")
        yield "ok"

    async def suspend(self, arguments: list[str]) -> AsyncIterator[str]:
        await self._edge.suspend()
        yield "ok, this edge takes no new clients"

    async def resume(self, arguments: list[str]) -> AsyncIterator[str]:
        try:
            await self._edge.resume()
        except OSError as error:
            raise _Refused(f"cannot listen again: {os.strerror(error.errno or 0).lower()}") from None
        yield "ok, this edge takes new clients"

    async def save(self, arguments: list[str]) -> AsyncIterator[str]:
        yield "saving server state..."
        await self._edge.save()
        yield "server state saved!"

    async def status(self, arguments: list[str]) -> AsyncIterator[str]:
        yield show_queue(await self._queue(arguments[0]))

    async def block(self, arguments: list[str]) -> AsyncIterator[str]:
        info = read_blocking(arguments[1])
        if info is None:
            raise _Refused('expected reason=spam or reason=content, and perhaps ,notice={"ttl":SECONDS}')
        quota, today = self._edge.config.auth.daily_block_queue_quota, f"qBlocked_{int(time.time()) // 86400}"
        if quota and (await self._edge.store.read_stats()).get(today, 0) >= quota:
            raise _Refused(f"reached limit of {quota} queues blocked daily")
        record = await self._queue(arguments[0])
        before = await _found(self._edge.store.block(record.snd_id, info))
        if before.status is EntityStatus.ACTIVE:
            await self._edge.store.add_stats({today: 1, "qBlocked": 1})
            yield f"ok, queue blocked: {show_status(info)}"
        else:
            yield f"ok, already inactive: {show_status(info)}"

    async def unblock(self, arguments: list[str]) -> AsyncIterator[str]:
        record = await self._queue(arguments[0])
        if record.status is EntityStatus.ACTIVE:
            yield "ok, queue was active"
        elif record.status is EntityStatus.OFF:
            yield "error, queue is inactive"
        else:
            await _found(self._edge.store.unblock(record.snd_id))
            yield f"ok, queue unblocked, reason to block was: {show_blocking(record.status)}"

    async def delete(self, arguments: list[str]) -> AsyncIterator[str]:
        for _ in range(_ATTEMPTS):
            record = await self._queue(arguments[0])
            result = await self._edge.store.delete(record, None)
            if result.status is not Status.STALE:
                secured = "qDeletedNew" if record.snd_key is None else "qDeletedSecured"
                await self._edge.store.add_stats({"qDeletedAll": 1, secured: 1})
                yield f"ok, {result.messages} messages deleted"
                return
        raise _Refused("the queue keeps changing, try again")

    async def _queue(self, text: str) -> QueueRecord:
        """The queue of a sender id, or else of a link id."""
        try:
            entity_id = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _Refused("not an id: expected base64url") from None
        store = self._edge.store
        return await store.get_snd(entity_id) or await _found(_by_link(store, entity_id))


async def _by_link(store: Store, link_id: bytes) -> QueueRecord | None:
    return await awaited(partial(store.fetch_link, link_id))


async def _found(queue: Awaitable[QueueRecord | None]) -> QueueRecord:
    """The queue, or the answer that the protocol gives when there is none."""
    record = await queue
    if record is None:
        raise _Refused("AUTH")
    return record


_Run = Callable[[_Session, list[str]], AsyncIterator[str]]
_COMMANDS: dict[str, tuple[Role, int, _Run]] = {
    "auth": (Role.NONE, 1, _Session.auth),
    "help": (Role.NONE, 0, _Session.help),
    "stats": (Role.USER, 0, _Session.stats),
    "sockets": (Role.USER, 0, _Session.sockets),
    "server-info": (Role.USER, 0, _Session.server_info),
    "status": (Role.USER, 1, _Session.status),
    "block": (Role.USER, 2, _Session.block),
    "unblock": (Role.USER, 1, _Session.unblock),
    "clients": (Role.ADMIN, 0, _Session.clients),
    "delete": (Role.ADMIN, 1, _Session.delete),
    "trace": (Role.ADMIN, 2, _Session.trace),
    "suspend": (Role.ADMIN, 0, _Session.suspend),
    "resume": (Role.ADMIN, 0, _Session.resume),
    "save": (Role.ADMIN, 0, _Session.save),
}
