"""/metrics: the reference's names with their labels, numbers added up, and a form that Prometheus reads."""

import re

from prometheus_client.parser import text_string_to_metric_families

from weir.router.surface.metrics import render_fleet
from weir.telemetry.metrics import render_edge

STATS = {
    "qCreated": 7,
    "qDeletedNew": 2,
    "msgSent": 11,
    "msgRecv": 9,
    "msgRecvGet": 1,
    "msgRecvAckTimes_0": 4,
    "msgRecvAckTimes_5": 3,
    "msgRecvAckTimes_90": 2,
    "msgRecvAckTimesSum": 195,
    "pRelays_pRequests": 5,
    "pMsgFwdsOwn_pErrorsConnect": 6,
    "rcvServices_srvSubMore": 3,
    "ntfServices_srvAssocNew": 8,
    "subsToSoksMs_5": 2,
    "subsToSoksMs_200": 1,
    "subsToSoksMsSum": 158,
}
COUNTS = {"queues": 100, "messages": 12, "notifications": 7, "notifiers": 4, "rcv_services": 2, "queues_day": 50}
EDGES = {
    "one": {"clients": 3, "sockets_accepted": 10, "sockets_closed": 6, "handshakes": 1, "folds": 1, "pending_max": 4},
    "two": {"clients": 5, "sockets_accepted": 5, "sockets_closed": 0, "subscriptions": 8, "pending_max": 9},
}
REDIS = {"up": 1, "memory_used_bytes": 5000}

# Every family of the reference's exporter, by name and type.
REFERENCE = """
queues_created counter · queues_secured counter · queues_deleted counter · queues_blocked counter
queues_deleted_batch counter · queues_total1 gauge · queues_total2 gauge · queues_daily gauge · queues_weekly gauge
queues_monthly gauge · queues_notify_daily gauge · queues_notify_weekly gauge · queues_notify_monthly gauge
subscribtion_successes counter · subscribtion_successes_batch counter · subscribtion_end counter
subscribtion_end_batch counter · subscribtion_errors counter · messages_sent counter · messages_sent_errors counter
messages_received counter · messages_expired counter · messages_total gauge · messages_notify_sent counter
messages_notify_received counter · messages_notify_get_sent counter · messages_notify_get_received counter
messages_notify_get_errors counter · queues_notify_created counter · queues_notify_new_created counter
queues_notify_deleted counter · queues_notify_deleted_batch counter · queues_notify_total1 gauge
queues_notify_total2 gauge · messages_ntf_successes counter · messages_ntf_successes_batch counter
messages_ntf_errors counter · subscription_ntf_requests counter · subscription_ntf_requests_batch counter
subscribtion_ntf_errors counter · relay_sessions_requests counter · relay_sessions_successes counter
relay_sessions_errors counter · relay_messages_requests counter · relay_messages_successes counter
relay_messages_errors counter · relay_messages_received counter · rcv_services_count gauge
rcv_services_queues_count gauge · ntf_services_count gauge · ntf_services_queues_count gauge
rcv_services_sub_msg_count counter · rcv_services_sub_duplicate_count counter · names_reqs counter
names_success counter · names_not_found counter · names_resolver_errs counter · names_disabled counter · info gauge
sockets_accepted gauge · sockets_closed gauge · sockets_active gauge · sockets_leaked gauge · threads_total gauge
clients_total gauge · delivered_total gauge · delivered_clients_total gauge
delivery_ack_confirmed_time histogram · delivery_ack_confirmed_count counter · delivery_ack_pending_count gauge
delivery_ack_time_max gauge · subscribtion_total gauge · subscribtion_clients_total gauge
subscribtion_services_total gauge · subscribtion_service_subs_total gauge · subscription_ntf_total gauge
subscription_ntf_clients_total gauge · subscribtion_nts_services_total gauge
subscription_ntf_service_subs_total gauge · loaded_queues_queue_count gauge · loaded_queues_ntf_count gauge
loaded_queues_open_journal_count gauge · loaded_queues_queue_lock_count gauge · loaded_queues_ntf_lock_count gauge
"""
SERVICE = """
assoc_new counter · assoc_duplicate counter · assoc_updated counter · assoc_removed counter · sub_count counter
sub_duplicate counter · sub_queues gauge · sub_end gauge · sub_ok gauge · sub_more gauge · sub_fewer gauge
sub_diff gauge · sub_more_total gauge · sub_fewer_total gauge
"""


def fleet() -> str:
    return render_fleet(STATS, COUNTS, EDGES, REDIS, "5223", "0.1.0")


def sample(text: str, series: str) -> float:
    match = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert match, f"no {series} in\n{text}"
    return float(match[1])


def test_every_family_of_the_reference_is_there_with_its_type() -> None:
    wanted = {tuple(pair.split()) for pair in re.split(r" · |\n", REFERENCE.strip())}
    services = {tuple(pair.split()) for pair in re.split(r" · |\n", SERVICE.strip())}
    wanted |= {(f"{side}_services_{name}", kind) for side in ("rcv", "ntf") for name, kind in services}
    found = set(re.findall(r"^# TYPE simplex_smp_(\S+) (\S+)$", fleet(), re.MULTILINE))
    assert found == wanted


def test_prometheus_reads_it() -> None:
    for text in (fleet(), render_edge({"clients": 3}, {"msgSent": 2}, ready=True, uptime=5, version="0.1.0")):
        families = list(text_string_to_metric_families(text))
        assert len(families) == len(re.findall(r"^# TYPE", text, re.MULTILINE))
        assert all(family.documentation for family in families)


def test_counters_come_from_the_fleets_stats() -> None:
    text = fleet()
    assert sample(text, "simplex_smp_queues_created") == 7
    assert sample(text, 'simplex_smp_queues_deleted{type="new"}') == 2
    assert sample(text, "simplex_smp_messages_sent") == 11
    assert sample(text, 'simplex_smp_relay_sessions_requests{source="all"}') == 5
    assert sample(text, 'simplex_smp_relay_messages_errors{source="own",type="connect"}') == 6
    assert sample(text, "simplex_smp_rcv_services_sub_more") == 3
    assert sample(text, "simplex_smp_ntf_services_assoc_new") == 8


def test_gauges_add_up_across_edges() -> None:
    text = fleet()
    assert sample(text, "simplex_smp_clients_total") == 8
    assert sample(text, "simplex_smp_subscribtion_total") == 8
    assert sample(text, 'simplex_smp_sockets_accepted{port="5223"}') == 15
    assert sample(text, 'simplex_smp_sockets_active{port="5223"}') == 9
    assert sample(text, 'simplex_smp_sockets_leaked{port="5223"}') == 0
    assert sample(text, "weir_edges") == 2
    assert sample(text, "weir_fold_running") == 1
    assert sample(text, "simplex_smp_delivery_ack_time_max") == 9  # a maximum, not a sum
    assert sample(text, "simplex_smp_queues_total1") == sample(text, "simplex_smp_queues_total2") == 100
    assert sample(text, "simplex_smp_queues_daily") == 50
    # In spite of the names, the reference counts notifications in the first and notifiers in the second.
    assert sample(text, "simplex_smp_queues_notify_total1") == 7
    assert sample(text, "simplex_smp_queues_notify_total2") == 4


def test_ack_times_are_a_histogram() -> None:
    text = fleet()
    name = "simplex_smp_delivery_ack_confirmed_time"
    assert [sample(text, f'{name}_bucket{{le="{le}"}}') for le in ("0", "5", "30", "90", "+Inf")] == [4, 7, 7, 9, 10]
    assert sample(text, f"{name}_sum") == 195
    assert sample(text, f"{name}_count") == 10
    periods = [
        sample(text, f'simplex_smp_delivery_ack_confirmed_count{{period="{period}"}}')
        for period in ("0-60", "60-300", "300-1200", "1200-3600", "3600+")
    ]
    assert periods == [7, 2, 0, 0, 0]


def test_times_from_subs_are_histograms_in_seconds() -> None:
    text = fleet()
    name = "weir_subs_to_soks_seconds"
    assert [sample(text, f'{name}_bucket{{le="{le}"}}') for le in ("0.005", "0.2", "+Inf")] == [2, 3, 3]
    assert sample(text, f"{name}_sum") == 0.158
    assert sample(text, f"{name}_count") == 3
    assert sample(text, "weir_subs_to_alls_seconds_count") == 0


def test_redis_as_the_edges_see_it() -> None:
    assert sample(fleet(), "weir_redis_up") == 1
    assert sample(fleet(), "weir_redis_memory_used_bytes") == 5000


def test_an_empty_fleet_has_every_series_at_zero() -> None:
    text = render_fleet({}, {}, {}, {}, "5223", "0.1.0")
    values = {line.split()[-1] for line in text.splitlines() if not line.startswith("#")}
    assert values == {"0", "1"}  # 1: simplex_smp_info
