"""Panels of the dashboard "Notifications": a notification router."""

from __future__ import annotations

from panels.queries import fleet, lines, number, quantile, rate

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
