"""The numbers that the control port prints for `stats`, `clients`, `sockets` and `server-info`, line by line."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

from weir.router.surface.view import ClientInfo
from weir.surface.fleet import FleetNumbers

_BEFORE_ACTIVE = ("qCreated", "qSecured", "qDeletedAll", "qDeletedAllB", "qDeletedNew", "qDeletedSecured")
_SUBS = ("qSub", "qSubAllB", "qSubEnd", "qSubEndB")
_MESSAGES = ("msgSent", "msgRecv", "msgRecvGet", "msgGet", "msgGetNoMsg")
_NOTIFICATIONS = ("msgSentNtf", "msgRecvNtf", "msgNtfs", "msgNtfsB", "msgNtfExpired")
_PROXY = ("pRequests", "pSuccesses", "pErrorsConnect", "pErrorsCompat", "pErrorsOther")
# Lines of the reference's `server-info`. Here they show the whole fleet.
_CLIENTS = (
    ("SMP subscriptions (via clients)", "subscriptions"),
    ("SMP subscribed clients (via clients)", "subscribed_clients"),
    ("Ntf subscriptions (via clients)", "ntf_subscriptions"),
    ("Ntf subscribed clients (via clients)", "ntf_clients"),
)
_SUBSCRIBERS = (
    ("SMP subscriptions", "subscriptions"),
    ("SMP subscribed clients", "subscribed_clients"),
    ("SMP subscribed clients count 2", "subscribed_clients"),
    ("Ntf subscriptions", "ntf_subscriptions"),
    ("Ntf subscribed clients", "ntf_clients"),
    ("Ntf subscribed clients count 2", "ntf_clients"),
)
_OWN = (
    ("SMP service subscriptions", "service_subscriptions"),
    ("SMP queues subscribed through services", "service_queues"),
    ("Ntf service subscriptions", "ntf_services"),
    ("Ntf queues subscribed through services", "ntf_service_queues"),
)
_OWN_ADMIN = (
    ("Handshakes", "handshakes"),
    ("Messages that wait for their ACK", "in_flight"),
    ("Messages that wait for room", "deferred"),
    ("Bytes that wait to be sent", "outgoing_bytes"),
    ("Relays", "relays"),
    ("Forwards", "forwards"),
    ("Folds", "folds"),
)
_EACH_EDGE = (
    ("Clients", "clients"),
    ("SMP subscriptions", "subscriptions"),
    ("Ntf subscriptions", "ntf_subscriptions"),
)


def stats(numbers: FleetNumbers, admin: bool) -> Iterator[str]:
    """Lines in the reference's order. The reference counts queues and notifications in two ways; Weir counts once."""
    counted, stored = numbers.stats, numbers.counts

    def each(names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            yield f"{name}: {counted.get(name, 0)}"

    def together(*names: str) -> str:
        return f"({','.join(str(counted.get(name, 0)) for name in names)})"

    start = counted.get("fromTime", numbers.taken_at)  # `fromTime` is missing until something was counted
    since = datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"fromTime: {since}"
    yield from each(_BEFORE_ACTIVE)
    yield f"daily active queues: {stored.get('queues_day', 0)}"
    yield from each(_SUBS)
    yield "other SUB events (auth, duplicate, prohibited): " + together("qSubAuth", "qSubDuplicate", "qSubProhibited")
    yield from each(_MESSAGES)
    yield "other GET events (auth, duplicate, prohibited): " + together(
        "msgGetAuth", "msgGetDuplicate", "msgGetProhibited"
    )
    yield from each(_NOTIFICATIONS)
    yield f"qCount: {stored.get('queues', 0)}"
    yield f"qCount 2: {stored.get('queues', 0)}"
    yield f"notifiers: {stored.get('notifiers', 0)}"
    yield f"msgCount: {stored.get('messages', 0)}"
    yield f"ntfCount: {stored.get('notifications', 0)}"
    if admin:
        yield f"ntfCount 2: {stored.get('notifications', 0)}"
    for outer in ("pRelays", "pRelaysOwn", "pMsgFwds", "pMsgFwdsOwn"):
        parts = ", ".join(f"{_short(name)}={counted.get(f'{outer}_{name}', 0)}" for name in _PROXY)
        yield f"{outer}: {parts}"
    yield from each(("pMsgFwdsRecv",))
    yield f"rcvServiceCount: {stored.get('rcv_services', 0)}"
    yield f"ntfServiceCount: {stored.get('ntf_services', 0)}"
    yield f"rcvServiceQueuesCount: {stored.get('rcv_service_queues', 0)}"
    yield f"ntfServiceQueuesCount: {stored.get('ntf_service_queues', 0)}"


def _short(name: str) -> str:
    return name[1].lower() + name[2:]


def clients(found: Mapping[str, Collection[ClientInfo]]) -> Iterator[str]:
    """The reference's columns, then Weir's. The session id stays empty: it would identify a client elsewhere, too.

    Each edge numbers its own clients, so a client's id is `edge:number`.
    """
    yield (
        "clientId,sessionId,connected,createdAt,rcvActiveAt,sndActiveAt,age,subscriptions,"
        "version,ntfSubscriptions,outgoingBytes,service"
    )
    now = int(time.time())
    for edge in sorted(found):
        for client in found[edge]:
            created, rcv_active, snd_active = int(client.created), int(client.rcv_active), int(client.snd_active)
            yield (
                f"{edge}:{client.id},,True,{created},{rcv_active},{snd_active},{now - created},{client.subs},"
                f"{client.version},{client.ntf_subs},{client.outgoing},{'yes' if client.service else 'no'}"
            )


def sockets(numbers: FleetNumbers, ports: Collection[int]) -> Iterator[str]:
    accepted, closed = numbers.total("sockets_accepted"), numbers.total("sockets_closed")
    active = numbers.total("clients") + numbers.total("handshakes")
    yield f"Sockets for port {','.join(str(port) for port in ports)}:"
    yield f"accepted: {accepted}"
    yield f"closed: {closed}"
    yield f"active: {active}"
    yield f"leaked: {max(0, accepted - closed - active)}"


def server_info(numbers: FleetNumbers, admin: bool) -> Iterator[str]:
    """`Threads` is the number of edges. The reference's lines about queues between threads have no counterpart."""
    yield f"Threads: {len(numbers.edges)}"
    yield f"Clients: {numbers.total('clients')}"
    for text, name in (_CLIENTS if admin else ()) + _SUBSCRIBERS + _OWN + (_OWN_ADMIN if admin else ()):
        yield f"{text}: {numbers.total(name)}"
    for edge, gauges in sorted(numbers.edges.items()):
        for text, name in _EACH_EDGE:
            yield f"{text} of edge {edge}: {gauges.get(name, 0)}"
