"""Panels of the dashboard "Services": SUBS and NSUBS of an SMP router."""

from __future__ import annotations

from panels.queries import S, fleet, lines, number, quantile, rate

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
