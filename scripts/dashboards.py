#!/usr/bin/env python3
"""Generates the Grafana dashboards in k8s/dashboards from the short list of panels below: dashboards.py [--check].

Every edge's /metrics reports the totals of the fleet, so a fleet panel takes the max() over edges. /metrics/edge and
the operator's /metrics report one process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

OUT = Path(__file__).resolve().parent.parent / "k8s/dashboards"
SELECT = '{namespace=~"$namespace",job=~"$job"}'
WIDTH = 24


class Panel(NamedTuple):
    title: str
    queries: tuple[tuple[str, str], ...]  # (expression, legend)
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    text: str = ""
    stack: bool = False


def fleet(metric: str, labels: str = "") -> str:
    return f"max by (namespace, job{labels and ', ' + labels}) ({metric}{SELECT})"


def rate(metric: str, labels: str = "") -> str:
    return f"max by (namespace, job{labels and ', ' + labels}) (rate({metric}{SELECT}[$__rate_interval]))"


def edge(metric: str) -> str:
    return f"sum by (pod) ({metric}{SELECT})"


def edge_rate(metric: str) -> str:
    return f"sum by (pod) (rate({metric}{SELECT}[$__rate_interval]))"


def quantile(share: float, metric: str) -> str:
    inner = f"max by (namespace, job, le) (rate({metric}_bucket{SELECT}[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


def number(title: str, expression: str, unit: str = "short", text: str = "") -> Panel:
    return Panel(title, ((expression, ""),), unit, "stat", 4, text)


def lines(title: str, *queries: tuple[str, str], unit: str = "short", text: str = "", stack: bool = False) -> Panel:
    return Panel(title, queries, unit, "timeseries", 8, text, stack)


S = "simplex_smp_"

OVERVIEW = (
    number("Edges alive", fleet("weir_edges")),
    number("Clients", fleet(f"{S}clients_total")),
    number("Subscriptions", f"{fleet(f'{S}subscribtion_total')} + {fleet(f'{S}subscribtion_service_subs_total')}"),
    number("Queues", fleet(f"{S}queues_total1")),
    number("Messages waiting", fleet(f"{S}messages_total")),
    number("Services", fleet(f"{S}rcv_services_count")),
    lines(
        "Messages",
        (rate(f"{S}messages_sent"), "sent {{job}}"),
        (rate(f"{S}messages_received"), "received {{job}}"),
        (rate(f"{S}messages_expired"), "expired {{job}}"),
        unit="ops",
    ),
    lines(
        "Messages refused",
        (rate(f"{S}messages_sent_errors", "type"), "{{type}} {{job}}"),
        unit="ops",
        text="quota: the recipient does not receive. auth: the queue does not exist, or the key is wrong.",
    ),
    lines(
        "From delivery to ACK",
        (quantile(0.5, f"{S}delivery_ack_confirmed_time"), "p50 {{job}}"),
        (quantile(0.99, f"{S}delivery_ack_confirmed_time"), "p99 {{job}}"),
        unit="s",
    ),
    lines("Clients", (fleet(f"{S}clients_total"), "{{job}}")),
    lines(
        "Subscriptions",
        (fleet(f"{S}subscribtion_total"), "queues {{job}}"),
        (fleet(f"{S}subscribtion_service_subs_total"), "through services {{job}}"),
        (fleet(f"{S}subscription_ntf_total"), "notifiers {{job}}"),
    ),
    lines(
        "Subscription errors",
        (rate(f"{S}subscribtion_errors", "type"), "{{type}} {{job}}"),
        (rate(f"{S}subscribtion_end"), "ended by another client {{job}}"),
        unit="ops",
    ),
    lines(
        "Queues",
        (fleet(f"{S}queues_total1"), "all {{job}}"),
        (fleet(f"{S}queues_daily"), "active today {{job}}"),
        (fleet(f"{S}queues_weekly"), "active this week {{job}}"),
        (fleet(f"{S}queues_monthly"), "active this month {{job}}"),
    ),
    lines(
        "Queues created and deleted",
        (rate(f"{S}queues_created"), "created {{job}}"),
        (rate(f"{S}queues_secured"), "secured {{job}}"),
        (rate(f"{S}queues_deleted", "type"), "deleted, {{type}} {{job}}"),
        unit="ops",
    ),
    lines(
        "Notifications",
        (rate(f"{S}messages_ntf_successes"), "delivered {{job}}"),
        (rate(f"{S}messages_ntf_errors", "type"), "{{type}} {{job}}"),
        unit="ops",
    ),
    lines(
        "Forwarded for clients (proxy)",
        (rate(f"{S}relay_messages_requests", "source"), "{{source}} {{job}}"),
        (rate(f"{S}relay_messages_errors", "source, type"), "{{type}} {{source}} {{job}}"),
        unit="ops",
    ),
    lines(
        "Relays connected", (fleet("weir_relays"), "{{job}}"), (fleet("weir_forwards"), "forwards in progress {{job}}")
    ),
    lines(
        "Sockets leaked", (fleet(f"{S}sockets_leaked", "port"), "{{job}}"), text="Always 0. Any other value is a bug."
    ),
)

SERVICES = (
    number("Services", fleet(f"{S}rcv_services_count")),
    number("Queues of services", fleet(f"{S}rcv_services_queues_count")),
    number("Connected services", fleet(f"{S}subscribtion_services_total")),
    number("Folds in progress", fleet("weir_fold_running")),
    number("Queues to fold", fleet("weir_fold_ready")),
    number("Queues folded", fleet("weir_fold_delivered")),
    lines(
        "SUBS → SOKS",
        (quantile(0.5, "weir_subs_to_soks_seconds"), "p50 {{job}}"),
        (quantile(0.99, "weir_subs_to_soks_seconds"), "p99 {{job}}"),
        unit="s",
        text="Does not depend on the number of the service's queues.",
    ),
    lines(
        "SUBS → ALLS",
        (quantile(0.5, "weir_subs_to_alls_seconds"), "p50 {{job}}"),
        (quantile(0.99, "weir_subs_to_alls_seconds"), "p99 {{job}}"),
        unit="s",
        text="Grows with the number of waiting messages. A service that acknowledges slowly makes it longer.",
    ),
    lines(
        "Folds",
        (f"{fleet('weir_fold_ready')} - {fleet('weir_fold_delivered')}", "left {{job}}"),
        (fleet("weir_fold_delivered"), "delivered {{job}}"),
        text="Queues of the folds in progress. A fold delivers the first message of each queue.",
    ),
    lines("Messages delivered by folds", (rate(f"{S}rcv_services_sub_msg_count"), "{{job}}"), unit="ops"),
    lines(
        "Drift at SUBS",
        (fleet(f"{S}rcv_services_sub_ok"), "none {{job}}"),
        (fleet(f"{S}rcv_services_sub_more"), "router has more {{job}}"),
        (fleet(f"{S}rcv_services_sub_fewer"), "router has fewer {{job}}"),
        (fleet(f"{S}rcv_services_sub_diff"), "router has others {{job}}"),
        text="The count and hash that the service sent, compared with those of the router.",
    ),
    lines(
        "Drift in queues",
        (fleet(f"{S}rcv_services_sub_more_total"), "more than expected {{job}}"),
        (fleet(f"{S}rcv_services_sub_fewer_total"), "fewer than expected {{job}}"),
    ),
    lines(
        "Associations",
        (rate(f"{S}rcv_services_assoc_new"), "new {{job}}"),
        (rate(f"{S}rcv_services_assoc_updated"), "moved {{job}}"),
        (rate(f"{S}rcv_services_assoc_removed"), "removed {{job}}"),
        (rate(f"{S}rcv_services_assoc_duplicate"), "repeated {{job}}"),
        unit="ops",
    ),
    lines(
        "Service subscriptions",
        (rate(f"{S}rcv_services_sub_count"), "SUBS {{job}}"),
        (rate(f"{S}rcv_services_sub_duplicate"), "repeated {{job}}"),
        (fleet(f"{S}rcv_services_sub_end"), "ended by another client, total {{job}}"),
        unit="ops",
    ),
    lines(
        "Notification services",
        (fleet(f"{S}ntf_services_count"), "known {{job}}"),
        (fleet(f"{S}subscribtion_nts_services_total"), "connected {{job}}"),
    ),
)

N = "simplex_ntf_"

NOTIFICATIONS = (
    number("Edges alive", fleet("weir_edges")),
    number("Tokens", fleet(f"{N}tokens_total")),
    number("Subscriptions", fleet(f"{N}subscriptions_approx_total")),
    number("SMP routers", fleet("weir_ntf_servers")),
    number(
        "SMP routers not subscribed",
        f"{fleet('weir_ntf_servers')} - {fleet('weir_ntf_servers_subscribed')}",
        text="Notifications of their queues wait at these SMP routers, for a day.",
    ),
    number("Pushes waiting", f"sum({fleet('weir_ntf_push_waiting', 'provider')})"),
    lines(
        "Notifications",
        (rate(f"{N}notifications_received"), "received {{job}}"),
        (rate(f"{N}notifications_delivered"), "pushed {{job}}"),
        (rate(f"{N}notifications_failed"), "failed {{job}}"),
        (rate(f"{N}notifications_received_auth"), "without a subscription {{job}}"),
        unit="ops",
        text="A device gets one push for notifications that arrive while a push to it is in flight.",
    ),
    lines(
        "Pushes by outcome",
        (rate("weir_ntf_pushes", "provider, outcome"), "{{provider}} {{outcome}} {{job}}"),
        unit="ops",
        text="invalid: the push service says that the device has gone. retry: sent again later. failed: given up.",
    ),
    lines(
        "From notification to push",
        (quantile(0.5, "weir_ntf_push_seconds"), "p50 {{job}}"),
        (quantile(0.99, "weir_ntf_push_seconds"), "p99 {{job}}"),
        unit="s",
        text="Until the push service has accepted the push. Its way to the device is not measured.",
    ),
    lines("Pushes waiting", (fleet("weir_ntf_push_waiting", "provider"), "{{provider}} {{job}}")),
    lines("Pushes in flight", (fleet("weir_ntf_push_in_flight", "provider"), "{{provider}} {{job}}")),
    lines(
        "Held back by push services",
        (rate("weir_ntf_push_limited", "provider"), "told to wait, {{provider}} {{job}}"),
        (fleet("weir_ntf_push_breaker_open", "provider"), "not asked for now, {{provider}} {{job}}"),
        text="A push service that refuses or fails is left alone for a while. Its pushes wait in Redis.",
    ),
    lines(
        "SMP routers",
        (fleet("weir_ntf_servers"), "known {{job}}"),
        (fleet("weir_ntf_servers_subscribed"), "subscribed {{job}}"),
    ),
    lines("Own SMP routers, subscribed", (fleet("weir_ntf_server_subscribed", "server"), "{{server}} {{job}}")),
    lines("Own SMP routers, subscriptions", (fleet("weir_ntf_server_subscriptions", "server"), "{{server}} {{job}}")),
    lines(
        "Own SMP routers, drift",
        (fleet("weir_ntf_server_drift", "server"), "{{server}} {{job}}"),
        text="How many queues more or fewer the SMP router had at the last subscription.",
    ),
    lines(
        "Own SMP routers, last notification",
        (fleet("weir_ntf_server_last_notification_seconds", "server"), "{{server}} {{job}}"),
        unit="s",
        text="Time since. A busy SMP router that is silent for long has lost its subscription.",
    ),
    lines(
        "Tokens",
        (fleet(f"{N}tokens_total"), "all {{job}}"),
        (fleet(f"{N}tokens_count_daily"), "active today {{job}}"),
        (fleet(f"{N}tokens_count_weekly"), "active this week {{job}}"),
        (fleet(f"{N}tokens_count_monthly"), "active this month {{job}}"),
    ),
    lines(
        "Tokens created and deleted",
        (rate(f"{N}tokens_created"), "created {{job}}"),
        (rate(f"{N}tokens_verified"), "verified {{job}}"),
        (rate(f"{N}tokens_replaced"), "replaced {{job}}"),
        (rate(f"{N}tokens_deleted"), "deleted {{job}}"),
        unit="ops",
    ),
    lines(
        "Subscriptions created and deleted",
        (rate(f"{N}subscriptions_created"), "created {{job}}"),
        (rate(f"{N}subscriptions_deleted"), "deleted {{job}}"),
        unit="ops",
    ),
    lines(
        "Verification of tokens",
        (rate(f"{N}notifications_verification_queued"), "queued {{job}}"),
        (rate(f"{N}notifications_verification_delivered"), "delivered {{job}}"),
        (rate(f"{N}notifications_verification_failed"), "failed {{job}}"),
        (rate(f"{N}notifications_verification_invalid_tkn"), "invalid token {{job}}"),
        unit="ops",
    ),
    lines(
        "Periodic pushes",
        (rate(f"{N}notifications_periodic_delivered"), "delivered {{job}}"),
        (rate(f"{N}notifications_periodic_failed"), "failed {{job}}"),
        unit="ops",
    ),
)

EDGES = (
    lines("Ready", (edge("weir_edge_ready"), "{{pod}}")),
    lines("Clients", (edge("weir_edge_clients"), "{{pod}}"), stack=True),
    lines("Subscriptions", (edge("weir_edge_subscriptions"), "{{pod}}"), stack=True),
    lines("Handshakes in progress", (edge("weir_edge_handshakes"), "{{pod}}")),
    lines("Sockets accepted", (edge_rate("weir_edge_sockets_accepted"), "{{pod}}"), unit="ops"),
    lines(
        "Connections ended by edges",
        (rate("weir_connections_ended", "reason"), "{{reason}} {{job}}"),
        unit="ops",
        text="refused: no room for more clients, or the edge stops. crowded_out: too many handshakes at once. "
        "timed_out: a handshake took too long. failed: TLS or versions did not fit. stalled: a client did not read.",
    ),
    lines(
        "Bytes waiting for clients",
        (edge("weir_edge_outgoing_bytes"), "{{pod}}"),
        unit="bytes",
        text="Limited per client. Above the limit, an edge keeps only ids; bodies stay in Redis.",
    ),
    lines("Queues waiting for a slow reader", (edge("weir_edge_deferred"), "{{pod}}")),
    lines("Messages waiting for their ACK", (edge("weir_edge_in_flight"), "{{pod}}")),
    lines("Cached queue credentials", (edge("weir_edge_record_cache"), "{{pod}}")),
    lines("Memory", (edge("weir_edge_rss_bytes"), "{{pod}}"), unit="bytes"),
    lines("CPU", (edge_rate("weir_edge_cpu_seconds"), "{{pod}}"), unit="percentunit"),
    lines("Certificate, days left", (edge("weir_edge_certificate_days"), "{{pod}}"), unit="d"),
    lines("Uptime", (edge("weir_edge_uptime_seconds"), "{{pod}}"), unit="s"),
)

REDIS = (
    number("Redis answers", fleet("weir_redis_up")),
    number("Memory", fleet("weir_redis_memory_used_bytes"), "bytes"),
    number("Keys", fleet("weir_redis_keys")),
    number("Replicas", fleet("weir_redis_replicas")),
    number("Append-only file", fleet("weir_redis_aof_bytes"), "bytes"),
    number("Clients", fleet("weir_redis_connected_clients")),
    lines(
        "Memory",
        (fleet("weir_redis_memory_used_bytes"), "used {{job}}"),
        (f"{fleet('weir_redis_memory_max_bytes')} > 0", "limit {{job}}"),
        unit="bytes",
        text="About 700 bytes per queue. A waiting message takes its size and 15 % more.",
    ),
    lines(
        "Memory, share of the limit",
        (f"{fleet('weir_redis_memory_used_bytes')} / ({fleet('weir_redis_memory_max_bytes')} > 0)", "{{job}}"),
        unit="percentunit",
        text="When Redis is full, senders get errors, and no queue can be created.",
    ),
    lines("Commands", (rate("weir_redis_commands"), "{{job}}"), unit="ops"),
    lines(
        "Commands that failed",
        (
            f"sum by (namespace, job, kind) (rate(weir_redis_errors_total{SELECT}[$__rate_interval]))",
            "{{kind}} {{job}}",
        ),
        unit="ops",
        text="By the error code of Redis, or timeout, disconnected, not_durable. Clients got ERR INTERNAL.",
    ),
    lines(
        "Errors in the log",
        (
            f"sum by (namespace, job, logger) (rate(weir_errors_logged_total{SELECT}[$__rate_interval]))",
            "{{logger}} {{job}}",
        ),
        unit="ops",
        text="By the part of the program. weir.redis.failures: at most one a minute for each kind of failed command.",
    ),
    lines(
        "Damaged queues",
        (rate("weir_damaged_queues"), "{{job}}"),
        unit="ops",
        text="Must be 0: queues whose keys hold something else. The sweeper leaves them out and counts each per round.",
    ),
    lines(
        "CPU",
        (rate("weir_redis_cpu_seconds"), "{{job}}"),
        unit="percentunit",
        text="A Redis server uses one core at most.",
    ),
    lines("Append-only file", (fleet("weir_redis_aof_bytes"), "{{job}}"), unit="bytes"),
    lines(
        "Keys evicted",
        (rate("weir_redis_evicted_keys"), "{{job}}"),
        unit="ops",
        text="Must be 0: an evicted key is a lost queue or message. Set maxmemory-policy noeviction.",
    ),
    lines(
        "Queues and messages",
        (fleet(f"{S}queues_total1"), "queues {{job}}"),
        (fleet(f"{S}messages_total"), "messages {{job}}"),
    ),
)

OPERATOR_SELECT = '{namespace=~"$namespace"}'


def operator(metric: str, labels: str, window: bool = False) -> str:
    inner = f"{metric}{OPERATOR_SELECT}"
    return f"sum by ({labels}) ({f'rate({inner}[$__rate_interval])' if window else inner})"


OPERATOR = (
    number(
        "Leaders", 'sum(weir_operator_leader{namespace=~"$namespace"})', text="Exactly one, for any number of replicas."
    ),
    number("Objects ready", 'sum(weir_operator_objects{namespace=~"$namespace",ready="true"})'),
    number("Objects not ready", 'sum(weir_operator_objects{namespace=~"$namespace",ready="false"})'),
    number(
        "Next certificate expiry",
        'min(weir_operator_certificate_expiry_seconds{namespace=~"$namespace"})',
        "s",
    ),
    lines(
        "Reconciles",
        (operator("weir_operator_reconciles_total", "kind, result", True), "{{kind}} {{result}}"),
        unit="ops",
    ),
    lines(
        "Reconcile time",
        (
            f"histogram_quantile(0.5, {operator('weir_operator_reconcile_seconds_bucket', 'le', True)})",
            "p50",
        ),
        (
            f"histogram_quantile(0.99, {operator('weir_operator_reconcile_seconds_bucket', 'le', True)})",
            "p99",
        ),
        unit="s",
    ),
    lines(
        "API requests",
        (operator("weir_operator_api_requests_total", "verb, code", True), "{{verb}} {{code}}"),
        unit="ops",
    ),
    lines(
        "Repaired child objects", (operator("weir_operator_drift_repairs_total", "kind", True), "{{kind}}"), unit="ops"
    ),
    lines(
        "Certificates",
        (operator("weir_operator_certificate_expiry_seconds", "exported_namespace, name"), "{{name}}"),
        unit="s",
    ),
    lines(
        "Background jobs that failed",
        (operator("weir_operator_job_failures_total", "pod", True), "{{pod}}"),
        unit="ops",
        text="Must be 0. The operator starts its work again; its log has the error.",
    ),
    lines("Objects waiting to be reconciled", (operator("weir_operator_queue_depth", "pod"), "{{pod}}")),
    lines("Objects", (operator("weir_operator_objects", "kind, ready"), "{{kind}} ready={{ready}}")),
)


def panel(spec: Panel, number_: int, x: int, y: int) -> dict[str, Any]:
    stat = spec.kind == "stat"
    custom = {} if stat else {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
    if spec.stack:
        custom["stacking"] = {"mode": "normal"}
    made: dict[str, Any] = {
        "id": number_,
        "type": spec.kind,
        "title": spec.title,
        "description": spec.text,
        "gridPos": {"x": x, "y": y, "w": spec.width, "h": 4 if stat else 8},
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": spec.unit, "min": 0, "custom": custom}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend or "__auto"}
            for index, (expression, legend) in enumerate(spec.queries)
        ],
    }
    if stat:
        made["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}
    else:
        made["options"] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return made


def variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard(name: str, title: str, panels: tuple[Panel, ...], source: str) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
    variables.append(variable("namespace", f"label_values({source}, namespace)"))
    if source != "weir_operator_leader":
        variables.append(variable("job", f'label_values({source}{{namespace=~"$namespace"}}, job)'))
    placed = []
    x = y = height = 0
    for index, spec in enumerate(panels):
        tall = 4 if spec.kind == "stat" else 8
        if x + spec.width > WIDTH or (height and tall != height):
            x, y = 0, y + height
        placed.append(panel(spec, index + 1, x, y))
        x, height = x + spec.width, tall
    return {
        "uid": f"weir-{name}",
        "title": f"Weir / {title}",
        "tags": ["weir"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [{"type": "dashboards", "tags": ["weir"], "title": "Weir", "asDropdown": True, "includeVars": True}],
        "templating": {"list": variables},
        "panels": placed,
    }


DASHBOARDS = {
    "overview": ("Overview", OVERVIEW, "weir_edges"),
    "services": ("Services", SERVICES, "weir_edges"),
    "notifications": ("Notifications", NOTIFICATIONS, "weir_ntf_servers"),
    "edges": ("Edges", EDGES, "weir_edge_ready"),
    "redis": ("Redis", REDIS, "weir_edges"),
    "operator": ("Operator", OPERATOR, "weir_operator_leader"),
}


def render() -> dict[Path, str]:
    return {
        OUT / f"{name}.json": json.dumps(dashboard(name, *rest), indent=1, ensure_ascii=False) + "\n"
        for name, rest in DASHBOARDS.items()
    }


def main() -> int:
    stale = [file for file, text in render().items() if not file.exists() or file.read_text() != text]
    if "--check" in sys.argv:
        for file in stale:
            print(f"{file.name} is out of date: run scripts/dashboards.py", file=sys.stderr)
        return 1 if stale else 0
    OUT.mkdir(parents=True, exist_ok=True)
    for file, text in render().items():
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
