"""Records of a small fleet, made up from a seed: what the tests of the tables and of the report feed to the model."""

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

from weir.telemetry.rollups.histogram import bucket
from weir.telemetry.rollups.record import Rollup, ServiceRollup, decode, encode

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def records(
    minutes: int, edges: int = 2, *, start: datetime = MONDAY, seed: int = 1, every: int = 1, program: str = "smp"
) -> Iterator[Rollup]:
    """One record for each edge and each `every`-th minute, as a reader of the stream sees it."""
    make = _smp if program == "smp" else _ntf
    first = round(start.timestamp() * 1000)
    for n in range(edges):
        rng, edge = Random(f"{seed} {program} {n}"), f"{program}{seed}{n}"
        offset = rng.randrange(60_000)
        for k in range(0, minutes, every):
            at = first + k * 60_000 + offset
            yield decode(encode(make(rng, Rollup("main", program, edge, k // every + 1, at, 60_000), n == 0)))


def _histogram(rng: Random, count: int, typical: float) -> dict[int, int]:
    buckets: dict[int, int] = {}
    for _ in range(count):
        index = bucket(rng.lognormvariate(0, 0.6) * typical)
        buckets[index] = buckets.get(index, 0) + 1
    return buckets


def _fleet(rng: Random, at: int, names: dict[str, int]) -> dict[str, int]:
    """Numbers that one edge publishes for the fleet. Those of a period grow until it ends."""
    today = datetime.fromtimestamp(at / 1000, UTC)
    days = {"day": 0, "week": today.weekday(), "month": today.day - 1}
    used = (today.hour * 60 + today.minute) / 1440
    gauges = {"redis_used_bytes": 10**8 + at // 10**6 % 10**6, "redis_max_bytes": 2 * 10**9, "redis_keys": 4000}
    for name, size in names.items():
        gauges |= {
            f"fleet_active_{name}_{period}": round(size * (1 + passed + used)) for period, passed in days.items()
        }
    return gauges


def _smp(rng: Random, r: Rollup, speaks: bool) -> Rollup:
    sent = rng.randrange(5, 60)
    gauges = {"connections": rng.randrange(50, 90), "subscriptions": 200, "rss_bytes": 7 * 10**7 + rng.randrange(10**6)}
    gauges |= {"cpu_us": sent * 9000, "loop_delay_max_us": rng.randrange(500, 9000), "service_queues": 70 * speaks}
    if speaks:
        gauges |= _fleet(rng, r.start, {"queues": 300, "ntf": 90})
        gauges |= {"fleet_queues": 1000 + r.sequence, "fleet_messages": rng.randrange(99), "fleet_notifiers": 120}
    services = (
        ServiceRollup("desk", "messages", 1, 70, {"ok": 1}, sent, _histogram(rng, 3, 40_000)),
        ServiceRollup("tiny", "messages", 1, 49, {"more": 1}, 1),
    )
    return Rollup(
        *(r.router, r.program, r.edge, r.sequence, r.start, r.duration),
        commands={"SEND.OK": sent, "SEND.QUOTA": rng.randrange(3), "ACK.OK": sent, "SUB.AUTH": rng.randrange(2)},
        events={"msgSent": sent, "msgRecv": sent, "qCreated": 2, "msgSentNtf": sent // 2, "msgNtfs": sent // 3},
        gauges=gauges,
        histograms={"send_stored": _histogram(rng, sent, 1500), "subs_alls": _histogram(rng, speaks, 40_000)},
        services=services if speaks else (),
    )


def _ntf(rng: Random, r: Rollup, speaks: bool) -> Rollup:
    received = rng.randrange(5, 40)
    gauges = {"connections": rng.randrange(9), "smp_servers_owned": 3, "smp_servers_active": 2, "cpu_us": 50_000}
    if speaks:
        gauges |= _fleet(rng, r.start, {"tokens": 80, "subscriptions": 200})
        gauges |= {"fleet_tokens": 90, "fleet_subscriptions": 250, "ntf_queue_waiting": rng.randrange(4)}
    return Rollup(
        *(r.router, r.program, r.edge, r.sequence, r.start, r.duration),
        commands={"TNEW.OK": 1, "SCHK.AUTH": 1},
        events={
            "ntfReceived": received,
            "ntfReceivedAuth": 2,
            "ntfDelivered": received - 3,
            "ntfFailed": 1,
            "pushes_apns_prod_delivered": received - 3,
            "pushes_web_push_retry": 1,
            "pushLimited_web_push": 1,
        },
        gauges=gauges,
        histograms={"nmsg_push": _histogram(rng, received, 90_000), "redis_rtt": _histogram(rng, 20, 300)},
    )
