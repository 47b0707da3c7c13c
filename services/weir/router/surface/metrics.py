"""The text at /metrics: the reference's `simplex_smp_*` names, fleet-wide, and Weir's own.

Inputs are plain numbers by name: `stats` as counted by every edge since the first start and added up in the store,
`counts` of what is stored, `edges` with each live edge's own gauges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.telemetry.metrics import ENDED_CONNECTIONS, REDIS, Metric, Numbers, family, gauge, histogram, sum_edges


def _one(name: str, kind: str, text: str, number: str) -> Metric:
    return Metric(f"simplex_smp_{name}", kind, text, (("", number),))


def _by(name: str, kind: str, text: str, **numbers: str) -> Metric:
    return Metric(f"simplex_smp_{name}", kind, text, tuple((f'{{type="{k}"}}', v) for k, v in numbers.items()))


# Counters of the fleet: the names of the numbers are the reference's stats.
STATS: tuple[Metric, ...] = (
    _one("queues_created", "counter", "Queues created.", "qCreated"),
    _one("queues_secured", "counter", "Queues secured.", "qSecured"),
    _by(
        "queues_deleted",
        "counter",
        "Queues deleted.",
        all="qDeletedAll",
        new="qDeletedNew",
        secured="qDeletedSecured",
    ),
    _one("queues_blocked", "counter", "Queues blocked.", "qBlocked"),
    _one("queues_deleted_batch", "counter", "Blocks with several deletions.", "qDeletedAllB"),
    _one("subscribtion_successes", "counter", "Subscriptions that found a message.", "qSub"),
    _one("subscribtion_successes_batch", "counter", "Blocks with several subscriptions.", "qSubAllB"),
    _one("subscribtion_end", "counter", "Subscriptions ended by another client.", "qSubEnd"),
    _one("subscribtion_end_batch", "counter", "Blocks with such ends.", "qSubEndB"),
    _by(
        "subscribtion_errors",
        "counter",
        "Subscriptions refused.",
        auth="qSubAuth",
        duplicate="qSubDuplicate",
        prohibited="qSubProhibited",
    ),
    _one("messages_sent", "counter", "Messages sent.", "msgSent"),
    _by(
        "messages_sent_errors",
        "counter",
        "Messages refused.",
        auth="msgSentAuth",
        quota="msgSentQuota",
        large="msgSentLarge",
        block="msgSentBlock",
    ),
    _one("messages_received", "counter", "Messages received and acknowledged.", "msgRecv"),
    _one("messages_expired", "counter", "Messages expired.", "msgExpired"),
    _one("messages_notify_sent", "counter", "Messages sent with the notification flag.", "msgSentNtf"),
    _one("messages_notify_received", "counter", "Messages received with the notification flag.", "msgRecvNtf"),
    _one("messages_notify_get_sent", "counter", "Messages fetched with GET.", "msgGet"),
    _one("messages_notify_get_received", "counter", "Messages fetched with GET and acknowledged.", "msgRecvGet"),
    _by(
        "messages_notify_get_errors",
        "counter",
        "GET without a message, or refused.",
        nomsg="msgGetNoMsg",
        auth="msgGetAuth",
        duplicate="msgGetDuplicate",
        prohibited="msgGetProhibited",
    ),
    _one("queues_notify_created", "counter", "Notifier credentials created.", "ntfCreated"),
    _one("queues_notify_new_created", "counter", "Queues created with notifier credentials.", "ntfNewCreated"),
    _one("queues_notify_deleted", "counter", "Notifier credentials deleted.", "ntfDeleted"),
    _one("queues_notify_deleted_batch", "counter", "Blocks with several such deletions.", "ntfDeletedB"),
    _one("messages_ntf_successes", "counter", "Notifications delivered to notifiers.", "msgNtfs"),
    _one("messages_ntf_successes_batch", "counter", "Blocks of notifications delivered.", "msgNtfsB"),
    _by(
        "messages_ntf_errors",
        "counter",
        "Notifications not delivered.",
        nosub="msgNtfNoSub",
        lost="msgNtfLost",
        expired="msgNtfExpired",
    ),
    _one("subscription_ntf_requests", "counter", "Notifier subscriptions.", "ntfSub"),
    _one("subscription_ntf_requests_batch", "counter", "Blocks with several notifier subscriptions.", "ntfSubB"),
    _by(
        "subscribtion_ntf_errors",
        "counter",
        "Notifier subscriptions refused.",
        auth="ntfSubAuth",
        duplicate="ntfSubDuplicate",
    ),
    _one("relay_messages_received", "counter", "Forwarded messages received from proxies.", "pMsgFwdsRecv"),
    _one("rcv_services_sub_msg_count", "counter", "Messages delivered by folds.", "rcvServicesSubMsg"),
    _one(
        "rcv_services_sub_duplicate_count",
        "counter",
        "Queues a fold found already subscribed.",
        "rcvServicesSubDuplicate",
    ),
)

# Weir's own counters of the fleet.
OWN_STATS: tuple[Metric, ...] = (
    Metric("weir_damaged_queues", "counter", "Queues that the sweeper left out, in each round.", (("", "qDamaged"),)),
)

# Present contents of the store.
COUNTS: tuple[Metric, ...] = (
    _one("queues_total1", "gauge", "Queues stored.", "queues"),
    _one("queues_total2", "gauge", "Queues stored.", "queues"),
    _one("queues_daily", "gauge", "Queues active today.", "queues_day"),
    _one("queues_weekly", "gauge", "Queues active this week.", "queues_week"),
    _one("queues_monthly", "gauge", "Queues active this month.", "queues_month"),
    _one("queues_notify_daily", "gauge", "Queues with notifications active today.", "notifiers_day"),
    _one("queues_notify_weekly", "gauge", "Queues with notifications active this week.", "notifiers_week"),
    _one("queues_notify_monthly", "gauge", "Queues with notifications active this month.", "notifiers_month"),
    _one("messages_total", "gauge", "Messages stored.", "messages"),
    _one("queues_notify_total1", "gauge", "Notifications that wait for a notifier.", "notifications"),
    _one("queues_notify_total2", "gauge", "Queues with notifier credentials.", "notifiers"),
    _one("rcv_services_count", "gauge", "Receive services.", "rcv_services"),
    _one("rcv_services_queues_count", "gauge", "Queues of receive services.", "rcv_service_queues"),
    _one("ntf_services_count", "gauge", "Notification services.", "ntf_services"),
    _one("ntf_services_queues_count", "gauge", "Queues of notification services.", "ntf_service_queues"),
)

# Present numbers of all edges, added up.
GAUGES: tuple[Metric, ...] = (
    _one("clients_total", "gauge", "Clients connected.", "clients"),
    _one("delivered_total", "gauge", "Subscriptions with a message that waits for its ACK.", "in_flight"),
    _one("delivered_clients_total", "gauge", "Clients with such subscriptions.", "in_flight_clients"),
    _one("subscribtion_total", "gauge", "Queues subscribed one by one.", "subscriptions"),
    _one("subscribtion_clients_total", "gauge", "Clients with subscriptions.", "subscribed_clients"),
    _one("subscribtion_services_total", "gauge", "Receive services subscribed.", "service_subscriptions"),
    _one("subscribtion_service_subs_total", "gauge", "Queues subscribed through services.", "service_queues"),
    _one("subscription_ntf_total", "gauge", "Notifiers subscribed one by one.", "ntf_subscriptions"),
    _one("subscription_ntf_clients_total", "gauge", "Clients with notifier subscriptions.", "ntf_clients"),
    _one("subscribtion_nts_services_total", "gauge", "Notification services subscribed.", "ntf_services"),
    _one(
        "subscription_ntf_service_subs_total",
        "gauge",
        "Notifiers subscribed through services.",
        "ntf_service_queues",
    ),
    _one("loaded_queues_queue_count", "gauge", "Queue credentials in the edges' memory.", "record_cache"),
)

_SERVICE_STATS = (
    ("assoc_new", "counter", "Queues newly associated", "srvAssocNew"),
    ("assoc_duplicate", "counter", "Queues associated again", "srvAssocDuplicate"),
    ("assoc_updated", "counter", "Queues moved from another service", "srvAssocUpdated"),
    ("assoc_removed", "counter", "Queues taken out", "srvAssocRemoved"),
    ("sub_count", "counter", "Service subscriptions", "srvSubCount"),
    ("sub_duplicate", "counter", "Service subscriptions repeated in a session", "srvSubDuplicate"),
    ("sub_queues", "gauge", "Queues subscribed through them", "srvSubQueues"),
    ("sub_end", "gauge", "Service subscriptions ended by another client", "srvSubEnd"),
    ("sub_ok", "gauge", "Service subscriptions without drift", "srvSubOk"),
    ("sub_more", "gauge", "Service subscriptions with more queues here than the client expects", "srvSubMore"),
    ("sub_fewer", "gauge", "Service subscriptions with fewer queues here than the client expects", "srvSubFewer"),
    ("sub_diff", "gauge", "Service subscriptions with as many but other queues", "srvSubDiff"),
    ("sub_more_total", "gauge", "Queues the clients did not expect", "srvSubMoreTotal"),
    ("sub_fewer_total", "gauge", "Queues the clients missed", "srvSubFewerTotal"),
)
SERVICES = tuple(
    _one(f"{side}_services_{name}", kind, f"{text} ({side}).", f"{side}Services_{stat}")
    for side in ("rcv", "ntf")
    for name, kind, text, stat in _SERVICE_STATS
)


def _relay(name: str, text: str, what: str) -> Iterator[Metric]:
    sources = (("all", what), ("own", what + "Own"))
    for suffix, stat in (("requests", "pRequests"), ("successes", "pSuccesses")):
        samples = tuple((f'{{source="{source}"}}', f"{outer}_{stat}") for source, outer in sources)
        yield Metric(f"simplex_smp_relay_{name}_{suffix}", "counter", f"{text}: {suffix}.", samples)
    errors = (("connect", "pErrorsConnect"), ("compat", "pErrorsCompat"), ("other", "pErrorsOther"))
    yield Metric(
        f"simplex_smp_relay_{name}_errors",
        "counter",
        f"{text}: errors.",
        tuple(
            (f'{{source="{source}",type="{kind}"}}', f"{outer}_{stat}")
            for source, outer in sources
            for kind, stat in errors
        ),
    )


RELAYS = (
    *_relay("sessions", "Sessions with relays", "pRelays"),
    *_relay("messages", "Messages forwarded to relays", "pMsgFwds"),
)

# Weir's own numbers of the whole fleet, from the edges' gauges.
FLEET: tuple[tuple[str, str, str], ...] = (
    ("weir_fold_running", "Folds (SUBS to ALLS) under way.", "folds"),
    ("weir_fold_ready", "Queues with a message when those folds began.", "fold_ready"),
    ("weir_fold_delivered", "Messages those folds have delivered.", "fold_delivered"),
    ("weir_deferred", "Queues whose message waits for room in a client's outgoing queue.", "deferred"),
    ("weir_outgoing_bytes", "Bytes waiting to be sent to clients.", "outgoing_bytes"),
    ("weir_handshakes", "Handshakes under way.", "handshakes"),
    ("weir_relays", "Relays connected.", "relays"),
    ("weir_forwards", "Forwards under way.", "forwards"),
)

# From SUBS on, counted in milliseconds.
SUBS_TIMES = (
    ("weir_subs_to_soks_seconds", "From SUBS or NSUBS to SOKS.", "subsToSoksMs"),
    ("weir_subs_to_alls_seconds", "From SUBS to ALLS.", "subsToAllsMs"),
)

# Metrics of the reference for parts that Weir does not have (journals, locks, name resolution). They are 0, so that
# dashboards show no gaps.
NOT_HERE = (
    ("loaded_queues_ntf_count", "gauge"),
    ("loaded_queues_open_journal_count", "gauge"),
    ("loaded_queues_queue_lock_count", "gauge"),
    ("loaded_queues_ntf_lock_count", "gauge"),
    ("names_reqs", "counter"),
    ("names_success", "counter"),
    ("names_not_found", "counter"),
    ("names_resolver_errs", "counter"),
    ("names_disabled", "counter"),
)

_PENDING = (
    ("0-60", "pending_60"),
    ("60-300", "pending_300"),
    ("300-1200", "pending_1200"),
    ("1200-3600", "pending_3600"),
    ("3600+", "pending_more"),
)
_PERIODS = (("0-60", 0, 60), ("60-300", 60, 300), ("300-1200", 300, 1200), ("1200-3600", 1200, 3600))
_ACK_TIMES = "msgRecvAckTimes_"


def render_fleet(
    stats: Numbers, counts: Numbers, edges: Mapping[str, Numbers], redis: Mapping[str, float], ports: str, version: str
) -> str:
    """The whole fleet, the same from every edge. `ports` is the label the sockets get."""
    total = sum_edges(edges.values())
    lines: list[str] = []
    for metrics, numbers in (
        (STATS, stats),
        (RELAYS, stats),
        (SERVICES, stats),
        (OWN_STATS, stats),
        (COUNTS, counts),
        (GAUGES, total),
    ):
        for metric in metrics:
            lines += family(metric, numbers)
    for name, kind in NOT_HERE:
        lines += family(_one(name, kind, "Not in this implementation.", ""), {})
    lines += _acknowledged(stats)
    lines += _pending(total)
    accepted, closed, active = (total.get(name, 0) for name in ("sockets_accepted", "sockets_closed", "clients"))
    active += total.get("handshakes", 0)
    for name, text, value in (
        ("accepted", "Sockets accepted by the live edges.", accepted),
        ("closed", "Sockets closed.", closed),
        ("active", "Sockets open.", active),
        ("leaked", "Sockets neither open nor closed.", max(0, accepted - closed - active)),
    ):
        lines += gauge(f"simplex_smp_sockets_{name}", text, value, f'{{port="{ports}"}}')
    lines += gauge("simplex_smp_threads_total", "Processes that serve clients.", len(edges))
    lines += gauge("simplex_smp_info", "This software.", 1, f'{{version="{version}",rts_options=""}}')
    lines += gauge("weir_edges", "Edges alive.", len(edges))
    for name, text, number in FLEET:
        lines += gauge(name, text, total.get(number, 0))
    for name, text, number in SUBS_TIMES:
        lines += histogram(name, text, number, stats)
    lines += family(ENDED_CONNECTIONS, stats)
    for metric in REDIS:
        lines += family(metric, redis)
    return "\n".join(lines) + "\n"


def _acknowledged(stats: Numbers) -> list[str]:
    """Times from delivery to ACK, as a histogram and in the reference's periods."""
    name = "simplex_smp_delivery_ack_confirmed_time"
    buckets = sorted((int(k[len(_ACK_TIMES) :]), v) for k, v in stats.items() if k.startswith(_ACK_TIMES))
    count = stats.get("msgRecv", 0) + stats.get("msgRecvGet", 0)
    lines = [f"# HELP {name} Seconds from delivery to ACK.", f"# TYPE {name} histogram"]
    below = before = 0
    for seconds, hits in buckets:
        if seconds - 60 > before:  # as the reference does: quantiles must not be spread over an empty stretch
            lines.append(f'{name}_bucket{{le="{seconds - 60}"}} {below}')
        below += hits
        before = seconds
        lines.append(f'{name}_bucket{{le="{seconds}"}} {below}')
    count = max(count, below)
    lines += [f'{name}_bucket{{le="+Inf"}} {count}', f"{name}_sum {stats.get('msgRecvAckTimesSum', 0)}"]
    lines.append(f"{name}_count {count}")
    name = "simplex_smp_delivery_ack_confirmed_count"
    lines += [f"# HELP {name} Messages acknowledged, by seconds it took.", f"# TYPE {name} counter"]
    for label, low, high in _PERIODS:
        lines.append(f'{name}{{period="{label}"}} {sum(hits for seconds, hits in buckets if low <= seconds < high)}')
    lines.append(f'{name}{{period="3600+"}} {sum(hits for seconds, hits in buckets if seconds >= 3600)}')
    return lines


def _pending(total: Numbers) -> list[str]:
    name = "simplex_smp_delivery_ack_pending_count"
    lines = [f"# HELP {name} Messages delivered and not acknowledged, by seconds.", f"# TYPE {name} gauge"]
    lines += [f'{name}{{period="{label}"}} {total.get(number, 0)}' for label, number in _PENDING]
    return lines + gauge(
        "simplex_smp_delivery_ack_time_max", "The longest a message waits for its ACK now.", total.get("pending_max", 0)
    )
