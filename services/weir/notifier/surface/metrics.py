"""The text at /metrics: the reference's `simplex_ntf_*` names, fleet-wide, and Weir's own.

Inputs are plain numbers by name: `stats` as counted by every edge since the first start and added up in the store,
`counts` of what is stored, `edges` with each live edge's own gauges, and the published state of the operator's own SMP
servers.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from weir.notifier.surface.servers import ServerInfo
from weir.telemetry.metrics import (
    ENDED_CONNECTIONS,
    REDIS,
    Metric,
    Numbers,
    family,
    gauge,
    histogram,
    sum_edges,
)
from weir.wire.ntf.types import PushProvider

PROVIDERS = tuple(provider.name.lower() for provider in PushProvider if provider is not PushProvider.APNS_NULL)
OUTCOMES = ("delivered", "invalid", "retry", "failed")


def _one(name: str, kind: str, text: str, number: str) -> Metric:
    return Metric(f"simplex_ntf_{name}", kind, text, (("", number),))


# Counters of the fleet: the names of the numbers are the reference's stats.
STATS: tuple[Metric, ...] = (
    _one("tokens_created", "counter", "Tokens created.", "tknCreated"),
    _one("tokens_verified", "counter", "Tokens verified.", "tknVerified"),
    _one("tokens_deleted", "counter", "Tokens deleted.", "tknDeleted"),
    _one("tokens_replaced", "counter", "Tokens that got another device token.", "tknReplaced"),
    _one("subscriptions_created", "counter", "Subscriptions created.", "subCreated"),
    _one("subscriptions_deleted", "counter", "Subscriptions deleted.", "subDeleted"),
    _one("notifications_received", "counter", "Notifications received from SMP servers.", "ntfReceived"),
    _one(
        "notifications_received_auth",
        "counter",
        "Notifications received without a subscription or an active token.",
        "ntfReceivedAuth",
    ),
    _one("notifications_delivered", "counter", "Pushes with messages delivered.", "ntfDelivered"),
    _one("notifications_failed", "counter", "Pushes with messages failed.", "ntfFailed"),
    _one("notifications_periodic_delivered", "counter", "Periodic pushes delivered.", "ntfCronDelivered"),
    _one("notifications_periodic_failed", "counter", "Periodic pushes failed.", "ntfCronFailed"),
    _one("notifications_verification_queued", "counter", "Verification pushes queued.", "ntfVrfQueued"),
    _one("notifications_verification_delivered", "counter", "Verification pushes delivered.", "ntfVrfDelivered"),
    _one("notifications_verification_failed", "counter", "Verification pushes failed.", "ntfVrfFailed"),
    _one(
        "notifications_verification_invalid_tkn",
        "counter",
        "Verification pushes to device tokens that the provider does not know.",
        "ntfVrfInvalidTkn",
    ),
)

# Present contents of the store.
COUNTS: tuple[Metric, ...] = (
    _one("tokens_total", "gauge", "Tokens stored.", "tokens"),
    _one("tokens_count_daily", "gauge", "Tokens active today.", "tokens_day"),
    _one("tokens_count_weekly", "gauge", "Tokens active this week.", "tokens_week"),
    _one("tokens_count_monthly", "gauge", "Tokens active this month.", "tokens_month"),
    _one("subscriptions_approx_total", "gauge", "Subscriptions stored.", "subscriptions"),
    _one("subscriptions_count_daily", "gauge", "Subscriptions active today.", "subscriptions_day"),
    _one("subscriptions_count_weekly", "gauge", "Subscriptions active this week.", "subscriptions_week"),
    _one("subscriptions_count_monthly", "gauge", "Subscriptions active this month.", "subscriptions_month"),
    _one("notifications_total", "gauge", "Last notifications stored.", "notifications"),
)

_OWN_STATS = (
    ("received", "Notifications received", "ntfReceivedOwn"),
    ("received_auth", "Notifications received without a subscription", "ntfReceivedAuthOwn"),
    ("delivered", "Pushes delivered", "ntfDeliveredOwn"),
    ("failed", "Pushes failed", "ntfFailedOwn"),
)

# Present numbers of all edges, added up.
_WORKERS = (
    ("smp_subscribers", "SMP servers whose queues an edge subscribes to"),
    ("smp_agent_clients", "Sessions with SMP servers"),
    ("smp_agent_sub_workers", "SMP servers that are being subscribed"),
)


def render_fleet(
    stats: Numbers,
    counts: Numbers,
    edges: Mapping[str, Numbers],
    redis: Mapping[str, float],
    servers: Collection[ServerInfo],
    version: str,
) -> str:
    """The whole fleet, the same from every edge."""
    total = sum_edges(edges.values())
    lines: list[str] = []
    for metrics, numbers in ((STATS, stats), (COUNTS, counts)):
        for metric in metrics:
            lines += family(metric, numbers)
    for name, text, number in _OWN_STATS:
        lines += _by_server(
            f"simplex_ntf_notifications_{name}_own", "counter", f"{text}, by own server.", _own(stats, number)
        )
    lines += _subscriptions(total, servers)
    lines += _workers(total)
    lines += gauge(
        "simplex_ntf_smp_sessions_count",
        "Sessions with SMP servers.",
        total.get("smp_clients_own", 0) + total.get("smp_clients_other", 0),
    )
    lines += gauge("simplex_ntf_apns_push_queue_length", "Pushes in progress.", _pushes(total, "in_flight"))
    lines += gauge("simplex_ntf_threads_total", "Processes that serve clients.", len(edges))
    lines += gauge("simplex_ntf_info", "This software.", 1, f'{{version="{version}",rts_options=""}}')
    lines += gauge("weir_edges", "Edges alive.", len(edges))
    lines += gauge("weir_handshakes", "Handshakes under way.", total.get("handshakes", 0))
    lines += gauge("weir_ntf_servers", "SMP servers that an edge subscribes to.", total.get("smp_servers", 0))
    lines += gauge(
        "weir_ntf_servers_subscribed",
        "SMP servers whose queues are subscribed.",
        total.get("smp_servers_subscribed", 0),
    )
    lines += _own_servers(servers)
    lines += _push_metrics(stats, total)
    lines += family(ENDED_CONNECTIONS, stats)
    for metric in REDIS:
        lines += family(metric, redis)
    return "\n".join(lines) + "\n"


def _own(stats: Numbers, number: str) -> dict[str, int]:
    """Counters by host: `<number>_<host>`."""
    return {name[len(number) + 1 :]: count for name, count in sorted(stats.items()) if name.startswith(number + "_")}


def _by_server(name: str, kind: str, text: str, numbers: Mapping[str, float]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    return lines + [f'{name}{{server="{host}"}} {value:g}' for host, value in numbers.items()]


def _subscriptions(total: Numbers, servers: Collection[ServerInfo]) -> list[str]:
    lines = []
    for prefix, kind, what in (
        ("smp_service_subscription", "service", "through services"),
        ("smp_subscription", "queues", "one by one"),
    ):
        for status in ("active", "pending"):
            name = f"simplex_ntf_{prefix}_{status}"
            for whose in ("own", "other"):
                lines += gauge(
                    f"{name}_server_count_{whose}",
                    f"SMP servers ({whose}) with {status} subscriptions {what}.",
                    total.get(f"smp_{kind}_{status}_servers_{whose}", 0),
                )
            lines += gauge(
                f"{name}_sub_count_other",
                f"Subscriptions {what} that are {status}, other servers.",
                total.get(f"smp_{kind}_{status}_subs_other", 0),
            )
            by_host = {server.name: server.of(kind, status) for server in servers}
            lines += _by_server(
                f"{name}_sub_count_own", "gauge", f"Subscriptions {what} that are {status}, by own server.", by_host
            )
    return lines


def _workers(total: Numbers) -> list[str]:
    lines = []
    for name, text in _WORKERS:
        for whose in ("own", "other"):
            if name == "smp_agent_sub_workers":
                value = sum(total.get(f"smp_{kind}_pending_servers_{whose}", 0) for kind in ("service", "queues"))
            else:
                value = total.get(f"smp_clients_{whose}", 0)
            lines += gauge(f"simplex_ntf_{name}_count_{whose}", f"{text} ({whose}).", value)
    return lines


def _own_servers(servers: Collection[ServerInfo]) -> list[str]:
    now = time.time()
    last = {server.name: max(0.0, now - server.last) for server in servers if server.last is not None}
    return [
        *_by_server(
            "weir_ntf_server_subscribed",
            "gauge",
            "1 when all subscriptions of the own server are made.",
            {server.name: int(server.subscribed) for server in servers},
        ),
        *_by_server(
            "weir_ntf_server_subscriptions",
            "gauge",
            "Active subscriptions of the own server.",
            {server.name: server.count for server in servers},
        ),
        *_by_server(
            "weir_ntf_server_drift",
            "gauge",
            "Difference between the queues that the own server and this router count.",
            {server.name: abs(server.drift) for server in servers},
        ),
        *_by_server(
            "weir_ntf_server_last_notification_seconds",
            "gauge",
            "Time since the last notification of the own server.",
            last,
        ),
    ]


def _pushes(total: Numbers, what: str) -> int:
    return sum(total.get(f"push_{what}_{provider}", 0) for provider in PROVIDERS)


def _push_metrics(stats: Numbers, total: Numbers) -> list[str]:
    pushes = Metric(
        "weir_ntf_pushes",
        "counter",
        "Pushes by provider and outcome.",
        tuple(
            (f'{{provider="{provider}",outcome="{outcome}"}}', f"pushes_{provider}_{outcome}")
            for provider in PROVIDERS
            for outcome in OUTCOMES
        ),
    )
    lines = family(pushes, stats)
    lines += histogram("weir_ntf_push_seconds", "From sending a push to the provider's answer.", "pushMs", stats)
    for name, kind, text in (
        ("waiting", "gauge", "Pushes that are due and wait in Redis."),
        ("in_flight", "gauge", "Pushes in progress."),
        ("breaker_open", "gauge", "Servers of the provider that get no pushes for now, because pushes to them fail."),
    ):
        samples = tuple((f'{{provider="{provider}"}}', f"push_{name}_{provider}") for provider in PROVIDERS)
        lines += family(Metric(f"weir_ntf_push_{name}", kind, text, samples), total)
    limited = tuple((f'{{provider="{provider}"}}', f"pushLimited_{provider}") for provider in PROVIDERS)
    lines += family(Metric("weir_ntf_push_limited", "counter", "Pushes refused because of their rate.", limited), stats)
    return lines
