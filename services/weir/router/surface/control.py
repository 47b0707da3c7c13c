"""The SMP router's commands at the control port, with the reference's words."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import AsyncIterator, Awaitable
from functools import partial

from weir.router.store.records import EntityStatus, QueueRecord, Status
from weir.router.store.store import Store
from weir.router.surface.control_numbers import clients, server_info, sockets, stats
from weir.router.surface.control_words import read_blocking, show_blocking, show_queue, show_status
from weir.router.surface.view import OUTAGE, ClientInfo, EdgeView
from weir.runtime.state.calls import awaited
from weir.surface.control.commands import Command, Commands, Refused, Role, life_commands
from weir.surface.control.fleet import AllEdges, require_all
from weir.surface.control.port import ControlPort, open_port
from weir.surface.control.session import Passwords, Session
from weir.surface.fleet import Fleet

_ATTEMPTS = 5  # to delete a queue that other commands keep changing

HELP = """\
commands: stats, clients, sockets, server-info, status, block, unblock, delete, trace, suspend, resume, save, help, quit
Commands and numbers are for all edges, whichever edge answers.
auth PASSWORD              take the role of this password (once per session)
stats                      counters
clients                    clients, one per line (admin)
sockets                    sockets
server-info                clients and subscriptions, then those of each edge
status ID                  status of the queue with this sender or link id
block ID reason=spam|content[,notice={"ttl":SECONDS}]
unblock ID
delete ID                  delete the queue and its messages (admin)
trace CLIENT on|off        trace every command of one client; CLIENT is a clientId of `clients` (admin)
suspend | resume           stop or start accepting new clients (admin)
save                       put the edges' counters into Redis; everything else is always there (admin)
help | quit"""


async def start_control(edge: EdgeView) -> ControlPort:
    control, auth = edge.config.control, edge.config.auth
    passwords = Passwords(auth.control_port_admin_password, auth.control_port_user_password)

    def new_session() -> Session:
        return Session(passwords, _commands(edge), HELP, OUTAGE)

    return await open_port(control.listen, control.port, "SMP server control port", new_session)


def _commands(edge: EdgeView) -> Commands:
    smp = _SmpCommands(edge)
    return {
        "stats": Command(Role.USER, 0, smp.stats),
        "sockets": Command(Role.USER, 0, smp.sockets),
        "server-info": Command(Role.USER, 0, smp.server_info),
        "status": Command(Role.USER, 1, smp.status),
        "block": Command(Role.USER, 2, smp.block),
        "unblock": Command(Role.USER, 1, smp.unblock),
        "clients": Command(Role.ADMIN, 0, smp.clients),
        "delete": Command(Role.ADMIN, 1, smp.delete),
        "trace": Command(Role.ADMIN, 2, smp.trace),
        **life_commands(AllEdges(edge.store.broadcast), "all edges take"),
    }


class _SmpCommands:
    def __init__(self, edge: EdgeView) -> None:
        self._edge = edge
        self._fleet = Fleet(edge, for_everybody=False)
        self._all = AllEdges(edge.store.broadcast)

    async def stats(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for line in stats(await self._fleet.numbers(), role is Role.ADMIN):
            yield line

    async def sockets(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for line in sockets(await self._fleet.numbers(), self._edge.config.transport.ports):
            yield line

    async def server_info(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for line in server_info(await self._fleet.numbers(), role is Role.ADMIN):
            yield line

    async def clients(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        answers = await self._all.ask(do="clients")
        for line in clients({edge: [ClientInfo(*row) for row in rows] for edge, rows in answers.by_edge.items()}):
            yield line
        require_all(answers)

    async def trace(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        client, switch = arguments
        edge, _, number = client.rpartition(":")
        if not edge or not number.isdecimal() or switch not in ("on", "off"):
            raise Refused("trace CLIENT on|off, where CLIENT is a clientId of `clients`")
        if self._edge.config.telemetry.traces is None:
            raise Refused("tracing is off: set [telemetry] traces")
        answers = await self._all.ask(do="trace", edge=edge, client=int(number), on=switch == "on")
        if not any(answers.by_edge.values()):
            require_all(answers)
            raise Refused("no such client")
        yield "ok"

    async def status(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        yield show_queue(await self._queue(arguments[0]))

    async def block(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        info = read_blocking(arguments[1])
        if info is None:
            raise Refused('expected reason=spam or reason=content, and perhaps ,notice={"ttl":SECONDS}')
        quota, today = self._edge.config.auth.daily_block_queue_quota, f"qBlocked_{int(time.time()) // 86400}"
        if quota and (await self._edge.store.stats.read_stats()).get(today, 0) >= quota:
            raise Refused(f"reached limit of {quota} queues blocked daily")
        record = await self._queue(arguments[0])
        before = await _found(self._edge.store.queues.block(record.snd_id, info))
        if before.status is EntityStatus.ACTIVE:
            await self._edge.store.stats.add_stats({today: 1, "qBlocked": 1})
            yield f"ok, queue blocked: {show_status(info)}"
        else:
            yield f"ok, already inactive: {show_status(info)}"

    async def unblock(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        record = await self._queue(arguments[0])
        if record.status is EntityStatus.ACTIVE:
            yield "ok, queue was active"
        elif record.status is EntityStatus.OFF:
            yield "error, queue is inactive"
        else:
            await _found(self._edge.store.queues.unblock(record.snd_id))
            yield f"ok, queue unblocked, reason to block was: {show_blocking(record.status)}"

    async def delete(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for _ in range(_ATTEMPTS):
            record = await self._queue(arguments[0])
            result = await self._edge.store.queues.delete(record, None)
            if result.status is not Status.STALE:
                secured = "qDeletedNew" if record.snd_key is None else "qDeletedSecured"
                await self._edge.store.stats.add_stats({"qDeletedAll": 1, secured: 1})
                yield f"ok, {result.messages} messages deleted"
                return
        raise Refused("the queue keeps changing, try again")

    async def _queue(self, text: str) -> QueueRecord:
        """The queue with this sender id, or else with this link id."""
        try:
            entity_id = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise Refused("not an id: expected base64url") from None
        store = self._edge.store
        return await store.lookups.get_snd(entity_id) or await _found(_by_link(store, entity_id))


async def _by_link(store: Store, link_id: bytes) -> QueueRecord | None:
    return await awaited(partial(store.links.fetch_link, link_id))


async def _found(queue: Awaitable[QueueRecord | None]) -> QueueRecord:
    """The queue. A missing queue is refused as in the protocol."""
    record = await queue
    if record is None:
        raise Refused("AUTH")
    return record
