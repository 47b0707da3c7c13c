"""The NTF router's commands at the control port, with the reference's words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

from weir.notifier.surface.servers import ServerInfo
from weir.notifier.surface.view import OUTAGE, EdgeView, NtfFleet
from weir.surface.control.commands import Command, Commands, Role, life_commands
from weir.surface.control.fleet import AllEdges
from weir.surface.control.port import ControlPort, open_port
from weir.surface.control.session import Passwords, Session
from weir.surface.fleet import FleetNumbers
from weir.telemetry.metrics import process_numbers

HELP = """\
commands: stats, stats-rts, server-info, servers, suspend, resume, save, help, quit
Commands and numbers are for all edges, whichever edge answers.
auth PASSWORD              take the role of this password (once per session)
stats                      counters
stats-rts                  memory and CPU time of the edge that answers
server-info                sessions with SMP servers, subscriptions, pushes
servers                    your own SMP servers: subscribed, since, count, drift, last notification (admin)
suspend | resume           stop or start accepting new clients (admin)
save                       put the edges' counters into Redis; everything else is always there (admin)
help | quit"""

_STATS = (
    *("tknCreated", "tknVerified", "tknDeleted", "tknReplaced", "subCreated", "subDeleted"),
    *("ntfReceived", "ntfDelivered", "ntfFailed", "ntfCronDelivered", "ntfCronFailed"),
    *("ntfVrfQueued", "ntfVrfDelivered", "ntfVrfFailed", "ntfVrfInvalidTkn"),
)
_SUBS = (
    ("SMP service subscriptions", "service_active"),
    ("SMP queue subscriptions", "queues_active"),
    ("Pending SMP service subscriptions", "service_pending"),
    ("Pending SMP queue subscriptions", "queues_pending"),
)


async def start_control(edge: EdgeView) -> ControlPort:
    control, auth = edge.config.control, edge.config.auth
    passwords = Passwords(auth.control_port_admin_password, auth.control_port_user_password)

    def new_session() -> Session:
        return Session(passwords, _commands(edge), HELP, OUTAGE)

    return await open_port(control.listen, control.port, "NTF server control port", new_session)


def _commands(edge: EdgeView) -> Commands:
    ntf = _NtfCommands(edge)
    return {
        "stats": Command(Role.USER, 0, ntf.stats),
        "stats-rts": Command(Role.USER, 0, ntf.stats_rts),
        "server-info": Command(Role.USER, 0, ntf.server_info),
        "servers": Command(Role.ADMIN, 0, ntf.servers),
        **life_commands(AllEdges(edge.store.broadcast), "all edges take"),
    }


class _NtfCommands:
    def __init__(self, edge: EdgeView) -> None:
        self._fleet = NtfFleet(edge, for_everybody=False)

    async def stats(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for line in stats(await self._fleet.numbers()):
            yield line

    async def stats_rts(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for name, value in process_numbers().items():
            yield f"{name}: {value}"

    async def server_info(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        for line in server_info(await self._fleet.numbers()):
            yield line

    async def servers(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        yield "server,subscribed,since,count,pending,drift,lastNotification,problem"
        for server in await self._fleet.servers():
            yield _row(server)


def stats(numbers: FleetNumbers) -> Iterator[str]:
    counted, stored = numbers.stats, numbers.counts
    start = counted.get("fromTime", numbers.taken_at)  # `fromTime` is missing until something was counted
    yield f"fromTime: {datetime.fromtimestamp(start, UTC).strftime('%Y-%m-%d %H:%M:%S UTC')}"
    for name in _STATS:
        yield f"{name}: {counted.get(name, 0)}"
    yield f"daily active tokens: {stored.get('tokens_day', 0)}"
    yield f"daily active subscriptions: {stored.get('subscriptions_day', 0)}"


def server_info(numbers: FleetNumbers) -> Iterator[str]:
    """`Threads` is the number of edges."""
    yield f"Threads: {len(numbers.edges)}"
    yield f"Clients: {numbers.total('clients')}"
    for whose in ("own", "other"):
        yield f"SMP sessions with {whose} servers: {numbers.total(f'smp_clients_{whose}')}"
    for text, name in _SUBS:
        own, other = (numbers.total(f"smp_{name}_subs_{whose}") for whose in ("own", "other"))
        yield f"{text} total: {own + other}"
        yield f"{text} on own servers: {own}"
        yield f"{text} on other servers: {other}"
    yield f"Push notifications queue length: {numbers.total('pushes_in_flight')}"


def _row(server: ServerInfo) -> str:
    cells = (
        server.name,
        "yes" if server.subscribed else "no",
        *("" if value is None else str(value) for value in (server.since, server.count, server.pending, server.drift)),
        "" if server.last is None else str(server.last),
        server.problem,
    )
    return ",".join(cells)
