"""Panels of the dashboard "Overview": what clients of an SMP router see."""

from __future__ import annotations

from panels.queries import S, fleet, lines, number, quantile, rate

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
