"""The metrics: the reference's names, and Weir's own."""

import re

from weir.notifier.stats import Stats
from weir.notifier.subscriber.state import ServerState, numbers
from weir.notifier.surface.metrics import OUTCOMES, PROVIDERS, STATS, render_fleet
from weir.notifier.surface.servers import own_servers
from weir.wire.ntf.types import PushProvider

OWN_OTHER = ("own", "other")
REFERENCE = {
    *(f"tokens_{name}" for name in ("created", "verified", "deleted", "replaced", "total")),
    *(f"tokens_count_{period}" for period in ("daily", "weekly", "monthly")),
    *("subscriptions_created", "subscriptions_deleted", "subscriptions_approx_total"),
    *(f"subscriptions_count_{period}" for period in ("daily", "weekly", "monthly")),
    *(
        f"smp_{service}subscription_{status}_{what}_count_{whose}"
        for service in ("service_", "")
        for status in ("active", "pending")
        for what in ("server", "sub")
        for whose in OWN_OTHER
    ),
    *(f"notifications_{name}" for name in ("received", "received_auth", "delivered", "failed")),
    *(f"notifications_{name}_own" for name in ("received", "received_auth", "delivered", "failed")),
    *("notifications_periodic_delivered", "notifications_periodic_failed", "notifications_total"),
    *(f"notifications_verification_{name}" for name in ("queued", "delivered", "failed", "invalid_tkn")),
    *(
        f"{name}_count_{whose}"
        for name in ("smp_subscribers", "smp_agent_clients", "smp_agent_sub_workers")
        for whose in OWN_OTHER
    ),
    *("smp_sessions_count", "apns_push_queue_length", "info", "threads_total"),
}


def names(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def test_the_references_names() -> None:
    found = {name.removeprefix("simplex_ntf_") for name in names(render_fleet({}, {}, {}, {}, (), "1"))}
    assert {name for name in found if not name.startswith("weir_")} == REFERENCE


def test_every_counter_is_counted_somewhere() -> None:
    counted = set(Stats.__dataclass_fields__) | {"ntfReceived", "ntfReceivedAuth"}
    assert {number for metric in STATS for _, number in metric.samples} <= counted


def test_own_servers_are_named_and_others_are_counted() -> None:
    own = ServerState(
        name="smp.example.org", needed=True, connected=True, since=1.0, service=True, service_active=7, drift=-2
    )
    own.last_notification = 5.0
    other = ServerState(needed=True, connected=True, since=1.0, queues_active=3, queues_pending=1)
    edges = {"edge": numbers([own, other])}
    stats = {"ntfReceivedOwn_smp.example.org": 4}
    text = render_fleet(stats, {}, edges, {}, own_servers([own.published(), other.published()]), "1")
    lines = text.splitlines()
    assert 'simplex_ntf_notifications_received_own{server="smp.example.org"} 4' in lines
    assert 'simplex_ntf_smp_service_subscription_active_sub_count_own{server="smp.example.org"} 7' in lines
    assert "simplex_ntf_smp_subscription_active_sub_count_other 3" in lines
    assert "simplex_ntf_smp_subscription_pending_sub_count_other 1" in lines
    assert "simplex_ntf_smp_sessions_count 2" in lines
    assert 'weir_ntf_server_subscribed{server="smp.example.org"} 1' in lines
    assert 'weir_ntf_server_subscriptions{server="smp.example.org"} 7' in lines
    assert 'weir_ntf_server_drift{server="smp.example.org"} 2' in lines
    assert any(line.startswith('weir_ntf_server_last_notification_seconds{server="smp.example.org"}') for line in lines)
    assert "weir_ntf_servers 2" in lines and "weir_ntf_servers_subscribed 2" in lines


def test_pushes_by_provider_and_outcome() -> None:
    stats = Stats()
    stats.pushed(PushProvider.WEB_PUSH, "delivered", 0.004)
    text = render_fleet(stats.totals(), {}, {"e": {"push_waiting_web_push": 5}}, {}, (), "1")
    assert 'weir_ntf_pushes{provider="web_push",outcome="delivered"} 1' in text
    assert 'weir_ntf_push_seconds_bucket{le="0.005"} 1' in text and "weir_ntf_push_seconds_count 1" in text
    assert 'weir_ntf_push_waiting{provider="web_push"} 5' in text
    for provider in PROVIDERS:
        for outcome in OUTCOMES:
            assert f'weir_ntf_pushes{{provider="{provider}",outcome="{outcome}"}}' in text
