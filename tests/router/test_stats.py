from dataclasses import fields

import pytest

from weir.router.stats import ProxyStats, ServiceStats, ServiceUse, Stats
from weir.router.surface.metrics import OWN_STATS, RELAYS, SERVICES, STATS
from weir.telemetry.rollups.histogram import bucket
from weir.wire.smp.ids_hash import EMPTY

HASH = b"\1" * 16


@pytest.mark.parametrize(
    ("expected", "expected_hash", "count", "ids_hash", "changed"),
    [
        (3, HASH, 3, HASH, {"srvSubOk": 1}),
        (-1, EMPTY, 3, HASH, {"srvSubOk": 1}),
        (1, HASH, 3, HASH, {"srvSubMore": 1, "srvSubMoreTotal": 2}),
        (5, HASH, 3, HASH, {"srvSubFewer": 1, "srvSubFewerTotal": 2}),
        (2**63 - 1, HASH, 3, HASH, {"srvSubFewer": 1, "srvSubFewerTotal": 10**9}),
        (-(2**63), HASH, 3, HASH, {"srvSubMore": 1, "srvSubMoreTotal": 10**9}),
        (3, EMPTY, 3, HASH, {"srvSubDiff": 1}),
        (0, EMPTY, 0, EMPTY, {"srvSubOk": 1}),
    ],
)
def test_drift_is_one_of_four(
    expected: int, expected_hash: bytes, count: int, ids_hash: bytes, changed: dict[str, int]
) -> None:
    stats = ServiceStats()
    kind = stats.drift(expected, expected_hash, count, ids_hash)
    assert f"srvSub{kind.capitalize()}" in changed
    assert {name: getattr(stats, name) for name in ServiceStats.__slots__ if getattr(stats, name)} == changed


def test_totals_name_what_is_counted() -> None:
    stats = Stats()
    stats.msgSent = 3
    stats.rcvServices.srvSubOk = 1
    stats.pMsgFwdsOwn.pRequests = 2
    stats.acknowledged(100.5, 107.25)
    assert stats.totals() == {
        "msgSent": 3,
        "rcvServices_srvSubOk": 1,
        "pMsgFwdsOwn_pRequests": 2,
        "msgRecvAckTimes_10": 1,
        "msgRecvAckTimesSum": 7,
    }


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(-1, 0), (0, 0), (5, 5), (6, 10), (30, 30), (31, 40), (61, 90), (180, 180), (181, 240), (3600, 3600)],
)
def test_times_fall_into_the_reference_buckets(seconds: int, bucket: int) -> None:
    stats = Stats()
    stats.acknowledged(10_000, 10_000 + seconds)
    assert stats.msgRecvAckTimes == {bucket: 1}


def test_times_are_counted_in_both_forms() -> None:
    stats, use = Stats(), ServiceUse("messages")
    stats.acknowledged(100.75, 102.25)
    stats.subscribed_service(0.03)
    stats.folded(3.0, 12, use)
    assert stats.totals() == {
        "msgRecvAckTimes_2": 1,
        "msgRecvAckTimesSum": 2,
        "subsToSoksMs_50": 1,
        "subsToSoksMsSum": 30,
        "subsToAllsMs_5000": 1,
        "subsToAllsMsSum": 3000,
    }
    assert stats.msg_ack.buckets() == {bucket(1.5e6): 1}
    assert stats.subs_soks.buckets() == {bucket(3e4): 1}
    assert stats.subs_alls.buckets() == use.alls.buckets() == {bucket(3e6): 1}
    assert stats.fold_size.buckets() == {bucket(12): 1}


def test_a_message_whose_time_is_not_known() -> None:
    stats = Stats()
    stats.acknowledged(0, 5000.0)
    assert stats.msgRecvAckTimes == {0: 1}
    assert stats.msg_ack.buckets() == {}


def test_sessions_of_one_service_are_counted_together() -> None:
    services = Stats().services
    use = services.of(b"one", "messages")
    assert services.of(b"one", "messages") is use
    assert services.of(b"two", "notifications") is not use


def test_every_counter_of_the_metrics_is_counted_here() -> None:
    counted = set()
    for item in fields(Stats):
        value = getattr(Stats(), item.name)
        parts = fields(value) if isinstance(value, (ProxyStats, ServiceStats)) else ()
        counted |= {f"{item.name}_{part.name}" for part in parts} or {item.name}
    assert {number for metric in (*STATS, *OWN_STATS, *RELAYS, *SERVICES) for _, number in metric.samples} <= counted
