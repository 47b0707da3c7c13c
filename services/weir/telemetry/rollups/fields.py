"""The declaration of a rollup: every name that a record may have, with its unit and one line about it.

The declaration serves the writer, the reader and the table in docs/pipeline.md. A name that is not declared cannot be
written and is not read: no id, key or address can get into a record by mistake.

Names of events are those of the routers' counters. Buckets of /metrics are no events, because histograms say more. The
tests compare the names with the counters, with the commands of the wire, and with what the two routers publish.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

VERSION: Final = 1
"""Raised when a name changes its meaning or goes. Readers keep records of newer versions as they are."""

PROGRAMS: Final = ("smp", "ntf")
UNREADABLE: Final = "unreadable"
OTHER: Final = "other"
ROLES: Final = ("messages", "notifications")
DRIFT: Final = ("ok", "more", "fewer", "diff")

MICROSECONDS: Final = "µs"
MILLISECONDS: Final = "ms"
BYTES: Final = "bytes"


class Field(NamedTuple):
    unit: str
    text: str
    fleet: bool = False
    """A number of the whole fleet, which one edge at a time publishes: take the maximum over edges, never the sum."""


Fields = Mapping[str, Field]


def _count(unit: str, **texts: str) -> dict[str, Field]:
    return {name: Field(unit, text) for name, text in texts.items()}


def _active(name: str, unit: str, text: str) -> dict[str, Field]:
    return {
        f"{name}_{period}": Field(unit, f"{text} this {period}, an estimate (error about 1 %)", fleet=True)
        for period in ("day", "week", "month")
    }


# The key of a count is "COMMAND.OUTCOME".
COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "smp": {
        "NEW": "create a queue",
        "SUB": "subscribe to a queue",
        "SUBS": "subscribe a service to its queues",
        "KEY": "secure a queue, by its recipient",
        "RKEY": "change a queue's recipient keys",
        "LSET": "set a link's data",
        "LDEL": "delete a link",
        "NKEY": "create a notifier",
        "NDEL": "delete a notifier",
        "GET": "fetch a message without a subscription",
        "ACK": "acknowledge a message",
        "OFF": "suspend a queue",
        "DEL": "delete a queue",
        "QUE": "fetch a queue's information",
        "SKEY": "secure a queue, by its sender",
        "SEND": "send a message",
        "PING": "keep a connection",
        "LKEY": "secure a queue through its link",
        "LGET": "fetch a link's data",
        "PRXY": "ask the proxy for a session with another router",
        "PFWD": "forward a command through the proxy",
        "RFWD": "a command that another router's proxy forwards",
        "NSUB": "subscribe to a notifier",
        "NSUBS": "subscribe a service to its notifiers",
        "RSLV": "resolve a name",
        UNREADABLE: "transmissions that are refused before their command begins",
    },
    "ntf": {
        "TNEW": "register a device token",
        "TVFY": "verify a token",
        "TCHK": "check a token",
        "TRPL": "replace a device token",
        "TDEL": "delete a token",
        "TCRN": "set the interval of periodic pushes",
        "SNEW": "create a subscription",
        "SCHK": "check a subscription",
        "SDEL": "delete a subscription",
        "PING": "keep a connection",
        UNREADABLE: "transmissions that are refused before their command begins",
    },
}

OUTCOMES: Final[Mapping[str, str]] = {
    "OK": "answered, without an error",
    "AUTH": "not authorised, or there is no such queue, token or subscription",
    "BLOCK": "a malformed block",
    "SESSION": "another session's transmission",
    "CMD": "unknown, malformed, or prohibited here",
    "SERVICE": "a service's certificate or signature is missing or wrong",
    "CRYPTO": "a body that cannot be opened",
    "QUOTA": "the queue is full",
    "NO_MSG": "no such message in flight",
    "LARGE_MSG": "the body is too large",
    "EXPIRED": "expired",
    "INTERNAL": "Redis did not answer in time, or answered an error",
    "DUPLICATE_": "an unknown error",
    "BLOCKED": "the operator has blocked the queue",
    "STORE": "the store's error, with a text",
    "PROXY": "an error of the proxy, of the relay, or on the way to the relay",
    "NAME": "no name is resolved",
    "OTHER": "errors of one command, added up because the record would be larger than 2 KiB",
}

_CONNECTIONS: Final = _count(
    "connections",
    connections_refused="ended: too many clients or file descriptors, or the edge stops",
    connections_crowded_out="ended: too many handshakes at a time",
    connections_timed_out="ended: the handshake took too long",
    connections_failed="ended: an error in the handshake",
    connections_stalled="ended: the client did not read",
)
_ERRORS: Final = _count(
    "commands",
    redis_timeout="no answer of Redis within the deadline",
    redis_disconnected="the connection to Redis broke",
    redis_not_durable="executed, but not synced to disk or replicated in time",
    redis_full="refused: Redis' memory is full",
    redis_failed="failed in Redis for another reason",
) | _count("lines", errors_logged="error lines in the edge's log")
_RELAY_NAMES: Final = {
    "pRequests": "requests",
    "pSuccesses": "successes, with errors of the relay's own",
    "pErrorsConnect": "failed to connect",
    "pErrorsCompat": "failed: versions do not fit",
    "pErrorsOther": "failed otherwise",
}
_RELAYS: Final = {
    f"{group}_{name}": Field(unit, f"{what}: {text}")
    for group, unit, what in (
        ("pRelays", "sessions", "sessions with relays"),
        ("pRelaysOwn", "sessions", "sessions with the operator's own relays"),
        ("pMsgFwds", "forwards", "forwarded commands"),
        ("pMsgFwdsOwn", "forwards", "commands forwarded to the operator's own relays"),
    )
    for name, text in _RELAY_NAMES.items()
}
_SERVICE_NAMES: Final = {
    "srvAssocNew": ("queues", "queues newly associated"),
    "srvAssocDuplicate": ("queues", "queues associated again"),
    "srvAssocUpdated": ("queues", "queues moved from another service"),
    "srvAssocRemoved": ("queues", "queues taken out of the service"),
    "srvSubCount": ("commands", "service subscriptions"),
    "srvSubDuplicate": ("commands", "service subscriptions repeated in a session"),
    "srvSubQueues": ("queues", "queues subscribed through services"),
    "srvSubEnd": ("subscriptions", "service subscriptions ended by another client"),
    "srvSubOk": ("commands", "service subscriptions without drift"),
    "srvSubMore": ("commands", "service subscriptions with more queues here than the client expects"),
    "srvSubFewer": ("commands", "service subscriptions with fewer queues here than the client expects"),
    "srvSubDiff": ("commands", "service subscriptions with as many but other queues"),
    "srvSubMoreTotal": ("queues", "queues that the clients did not expect"),
    "srvSubFewerTotal": ("queues", "queues that the clients missed"),
}
_SERVICES: Final = {
    f"{side}Services_{name}": Field(unit, f"{what}: {text}")
    for side, what in (("rcv", "messages"), ("ntf", "notifications"))
    for name, (unit, text) in _SERVICE_NAMES.items()
}
_SMP_EVENTS: Final = (
    _count(
        "queues",
        qCreated="queues created",
        qSecured="queues secured",
        qDeletedAll="queues deleted",
        qDeletedNew="queues deleted that were never secured",
        qDeletedSecured="queues deleted that were secured",
        qBlocked="queues blocked by the operator",
        qDamaged="damaged records that the sweeper found, in each round",
        ntfCreated="notifiers created",
        ntfNewCreated="queues created with a notifier",
        ntfDeleted="notifiers deleted",
        rcvServicesSubDuplicate="queues of a fold that were subscribed already",
    )
    | _count(
        "blocks",
        qDeletedAllB="blocks with several deletions",
        qSubAllB="blocks with several subscriptions",
        qSubEndB="blocks of ended subscriptions",
        ntfDeletedB="blocks with several deletions of notifiers",
        ntfSubB="blocks with several notifier subscriptions",
        msgNtfsB="blocks of notifications",
    )
    | _count(
        "subscriptions",
        qSub="subscriptions that found a message",
        qSubAuth="subscriptions refused: not authorised",
        qSubDuplicate="subscriptions repeated",
        qSubProhibited="subscriptions refused: the queue is read with GET",
        qSubEnd="subscriptions ended by another client",
        ntfSub="notifier subscriptions",
        ntfSubAuth="notifier subscriptions refused: not authorised",
        ntfSubDuplicate="notifier subscriptions repeated",
    )
    | _count(
        "messages",
        msgSent="messages sent and stored",
        msgSentAuth="messages refused: not authorised",
        msgSentQuota="messages refused: the queue is full",
        msgSentLarge="messages refused: too large",
        msgSentBlock="messages refused: the queue is blocked",
        msgRecv="messages received and acknowledged",
        msgRecvGet="messages fetched with GET and acknowledged",
        msgGet="messages fetched with GET",
        msgGetNoMsg="GET without a message",
        msgGetAuth="GET refused: not authorised",
        msgGetDuplicate="GET repeated",
        msgGetProhibited="GET refused: the queue is subscribed",
        msgExpired="messages expired",
        msgSentNtf="messages sent with the notification flag",
        msgRecvNtf="messages received with the notification flag",
        pMsgFwdsRecv="messages that other routers' proxies forwarded here",
        rcvServicesSubMsg="messages delivered by folds",
    )
    | _count(
        "notifications",
        msgNtfs="notifications delivered to notifiers",
        msgNtfNoSub="notifications without a subscribed notifier",
        msgNtfLost="notifications lost",
        msgNtfExpired="notifications expired",
    )
    | _RELAYS
    | _SERVICES
)
_PROVIDERS: Final = {
    "apns_dev": "APNs for development",
    "apns_prod": "APNs",
    "apns_test": "APNs' test server",
    "web_push": "Web Push",
}
_PUSHES: Final = {
    f"pushes_{provider}_{outcome}": Field("pushes", f"pushes to {what}: {text}")
    for provider, what in _PROVIDERS.items()
    for outcome, text in (
        ("delivered", "accepted"),
        ("invalid", "the device token is not valid"),
        ("retry", "to be repeated"),
        ("failed", "failed for good"),
    )
} | {
    f"pushLimited_{provider}": Field("pushes", f"pushes to {what} refused because of their rate")
    for provider, what in _PROVIDERS.items()
}
_NTF_EVENTS: Final = (
    _count(
        "tokens",
        tknCreated="tokens created",
        tknVerified="tokens verified",
        tknDeleted="tokens deleted",
        tknReplaced="tokens that got another device token",
    )
    | _count("subscriptions", subCreated="subscriptions created", subDeleted="subscriptions deleted")
    | _count(
        "notifications",
        ntfReceived="notifications received from SMP routers",
        ntfReceivedAuth="notifications received without a subscription or an active token",
        ntfReceivedOwn="notifications received from the operator's own SMP routers",
        ntfReceivedAuthOwn="the same, without a subscription or an active token",
    )
    | _count(
        "pushes",
        ntfDelivered="pushes with messages delivered",
        ntfFailed="pushes with messages failed",
        ntfDeliveredOwn="pushes delivered of the operator's own SMP routers",
        ntfFailedOwn="pushes failed of the operator's own SMP routers",
        ntfCronDelivered="periodic pushes delivered",
        ntfCronFailed="periodic pushes failed",
        ntfVrfQueued="verification pushes queued",
        ntfVrfDelivered="verification pushes delivered",
        ntfVrfFailed="verification pushes failed",
        ntfVrfInvalidTkn="verification pushes to device tokens that the provider does not know",
    )
    | _PUSHES
)
EVENTS: Final[Mapping[str, Fields]] = {
    "smp": _SMP_EVENTS | _CONNECTIONS | _ERRORS,
    "ntf": _NTF_EVENTS | _CONNECTIONS | _ERRORS,
}

_EDGE_GAUGES: Final = {
    "connections": Field("connections", "clients connected"),
    "rss_bytes": Field(BYTES, "memory of the edge"),
    "cpu_us": Field(MICROSECONDS, "CPU time that the edge has used in the interval"),
    "loop_delay_max_us": Field(MICROSECONDS, "the longest delay of the event loop in the interval"),
    "redis_used_bytes": Field(BYTES, "memory that Redis uses, over all masters", fleet=True),
    "redis_max_bytes": Field(BYTES, "memory that Redis may use, over all masters; absent: no limit", fleet=True),
    "redis_keys": Field("keys", "keys in Redis, over all masters", fleet=True),
}
GAUGES: Final[Mapping[str, Fields]] = {
    "smp": _EDGE_GAUGES
    | {
        "subscriptions": Field("queues", "queues subscribed one by one"),
        "service_subscriptions": Field("services", "services subscribed, for messages"),
        "service_queues": Field("queues", "queues subscribed through services"),
        "ntf_subscriptions": Field("notifiers", "notifiers subscribed one by one"),
        "ntf_service_queues": Field("notifiers", "notifiers subscribed through services"),
        "deferred": Field("queues", "queues whose message waits for room in a client's outgoing queue"),
        "outgoing_bytes": Field(BYTES, "bytes that wait to be sent to clients"),
        "fleet_queues": Field("queues", "queues stored", fleet=True),
        "fleet_messages": Field("messages", "messages stored", fleet=True),
        "fleet_notifiers": Field("notifiers", "notifiers stored", fleet=True),
        "fleet_notifications": Field("notifications", "notifications that wait for a notifier", fleet=True),
        "fleet_rcv_services": Field("services", "services that receive messages", fleet=True),
        "fleet_ntf_services": Field("services", "services that receive notifications", fleet=True),
        "fleet_rcv_service_queues": Field("queues", "queues of the services that receive messages", fleet=True),
        "fleet_ntf_service_queues": Field("queues", "queues of the services that receive notifications", fleet=True),
    }
    | _active("fleet_active_queues", "queues", "queues in use")
    | _active("fleet_active_ntf", "queues", "queues with notifications in use"),
    "ntf": _EDGE_GAUGES
    | {
        "ntf_queue_waiting": Field("pushes", "pushes that are due and wait in Redis", fleet=True),
        "smp_servers_owned": Field("routers", "SMP routers whose queues the edge subscribes to"),
        "smp_servers_active": Field("routers", "SMP routers whose queues are all subscribed"),
        "fleet_tokens": Field("tokens", "tokens stored", fleet=True),
        "fleet_subscriptions": Field("subscriptions", "subscriptions stored", fleet=True),
    }
    | _active("fleet_active_tokens", "tokens", "tokens in use")
    | _active("fleet_active_subscriptions", "subscriptions", "subscriptions in use"),
}

_REDIS_RTT: Final = {"redis_rtt": Field(MICROSECONDS, "from sending commands to Redis to the first answer")}
HISTOGRAMS: Final[Mapping[str, Fields]] = {
    "smp": _REDIS_RTT
    | {
        "send_stored": Field(MICROSECONDS, "from SEND to the store's answer"),
        "send_msg": Field(MICROSECONDS, "from SEND to MSG, when the recipient was connected"),
        "msg_ack": Field(MICROSECONDS, "from MSG to ACK"),
        "subs_soks": Field(MICROSECONDS, "from SUBS or NSUBS to SOKS"),
        "subs_alls": Field(MICROSECONDS, "from SUBS to ALLS"),
        "fold_size": Field("messages", "messages that a fold delivered"),
    },
    "ntf": _REDIS_RTT | {"nmsg_push": Field(MICROSECONDS, "from NMSG to the provider's answer")},
}

SERVICE: Final[Fields] = {
    "label": Field("", f"the operator's label of the service; services without a label are added up under {OTHER}"),
    "role": Field("", " or ".join(ROLES)),
    "sessions": Field("connections", "sessions that own the service now"),
    "queues": Field("queues", "queues of the service, as its sessions know"),
    "drift": Field("commands", f"SUBS or NSUBS by what the client expects: {', '.join(DRIFT)}"),
    "delivered": Field("messages", "messages or notifications delivered"),
    "alls": Field(MICROSECONDS, "histogram of the times from SUBS to ALLS"),
}
