"""Two simulated weeks of an SMP router and a notification router, as their edges would have published them.

Everything comes from a seed. The days have a rhythm, weekends are quieter, and the number of queues grows by about one
per cent a day. On the last day but two Redis is slow for three hours in the afternoon: times rise, some commands fail,
and fewer messages are sent. Four days before the end the SMP router's edges are restarted one after the other, as in an
upgrade. In the first week no record of six hours has survived. One service repeatedly loses track of its queues.

A record stands for ten minutes instead of one, so that somebody who wants to see a report need not wait for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import cos, erf, floor, log2, pi, sqrt
from random import Random
from typing import Final

from weir.telemetry.rollups.histogram import PER_OCTAVE
from weir.telemetry.rollups.record import Rollup, ServiceRollup

DAYS: Final = 14
STEP: Final = timedelta(minutes=10)
SMP_ROUTER: Final = "smp.example.org"
NTF_ROUTER: Final = "ntf.example.org"
SMP_EDGES: Final = 4
NTF_EDGES: Final = 2

_GIB: Final = 2**30
_QUEUES: Final = 182_000
_GROWTH: Final = 2_100
"""Queues more each day."""
_TOKENS: Final = 21_000
_GAP: Final = (3.1, 3.35)  # days since the start
_UPGRADE: Final = 10.4
_SLOW: Final = (11 + 13 / 24, 11 + 16 / 24)
_WIDTH: Final = 0.55  # of a histogram, as the logarithm of its values


def records(end: datetime, *, days: int = DAYS, step: timedelta = STEP, seed: int = 1) -> Iterator[Rollup]:
    """The records of both routers in the order of their times, until `end`."""
    start = end - timedelta(days=days)
    fleets = [_Fleet("smp", SMP_EDGES, seed), _Fleet("ntf", NTF_EDGES, seed)]
    for n in range(timedelta(days=days) // step):
        moment = _Moment.at(start + n * step, n * step / timedelta(days=1), step)
        for fleet in fleets:
            yield from fleet.publish(moment)


@dataclass(frozen=True, slots=True)
class _Moment:
    """An interval, and how busy and how slow everything is in it."""

    start: datetime
    day: float
    step: timedelta
    busy: float
    slow: bool
    lost: bool

    @staticmethod
    def at(start: datetime, day: float, step: timedelta) -> _Moment:
        hour = start.hour + start.minute / 60
        rhythm = 1.05 - 0.62 * cos((hour - 4) * pi / 12) - 0.22 * cos((hour - 7) * pi / 6)
        weekend = 0.68 if start.weekday() >= 5 else 1.0
        slow = _SLOW[0] <= day < _SLOW[1]
        lost = _GAP[0] <= day < _GAP[1]
        return _Moment(start, day, step, rhythm * weekend * (1 + 0.011 * day), slow, lost)


class _Fleet:
    """The edges of one router, with their names and the numbers of their records."""

    def __init__(self, program: str, edges: int, seed: int) -> None:
        self._program = program
        self._rng = Random(f"{seed} {program}")
        self._edges = [self._name() for _ in range(edges)]
        self._sequences = [0] * edges
        self._upgraded = 0

    def _name(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def publish(self, moment: _Moment) -> Iterator[Rollup]:
        if self._program == "smp" and self._upgraded < len(self._edges) and moment.day >= self._due():
            self._edges[self._upgraded] = self._name()
            self._sequences[self._upgraded] = 0
            self._upgraded += 1
        for n, edge in enumerate(self._edges):
            self._sequences[n] += 1
            rollup = self._smp(moment, n, edge) if self._program == "smp" else self._ntf(moment, n, edge)
            if not moment.lost:
                yield rollup

    def _due(self) -> float:
        """The next edge is restarted ten minutes after the one before."""
        return _UPGRADE + self._upgraded / 144

    def _count(self, mean: float) -> int:
        """A count that lies around its mean as counts do."""
        return max(0, round(self._rng.gauss(mean, sqrt(max(0.0, mean)) + mean * 0.02)))

    def _times(self, count: int, typical: float, moment: _Moment, slowed: float = 1.0) -> dict[int, int]:
        """A histogram of `count` values around `typical` µs."""
        middle = log2(typical * (slowed if moment.slow else 1.0)) * PER_OCTAVE
        found: dict[int, int] = {}
        for step, share in _SHAPE.items():
            whole = floor(count * share + self._rng.random())
            if whole:
                found[floor(middle) + step] = whole
        return found

    def _smp(self, m: _Moment, n: int, edge: str) -> Rollup:
        seconds = m.step.total_seconds()
        sent = self._count(60 * m.busy * seconds * (0.55 if m.slow else 1))
        received = self._count(sent * 0.985)
        created, deleted = self._count(0.013 * m.busy * seconds), self._count(0.007 * m.busy * seconds)
        failed = self._count(0.12 * sent) if m.slow else 0
        flagged = self._count(sent * 0.71)
        kept = self._count(flagged * 0.06)
        subs = self._count(4 * m.busy * seconds)
        commands = {
            "SEND.OK": sent,
            "SEND.QUOTA": self._count(sent * 0.0016),
            "SEND.AUTH": self._count(sent * 0.0011),
            "SEND.INTERNAL": failed,
            "ACK.OK": received,
            "ACK.NO_MSG": self._count(received * 0.0002),
            "SUB.OK": subs,
            "SUB.AUTH": self._count(subs * 0.02),
            "NEW.OK": created,
            "DEL.OK": deleted,
            "PING.OK": self._count(5 * m.busy * seconds),
        }
        events = {
            "msgSent": sent,
            "msgRecv": received,
            "msgSentQuota": commands["SEND.QUOTA"],
            "msgSentNtf": flagged,
            "msgNtfs": flagged - kept,
            "msgNtfNoSub": kept,
            "msgExpired": self._count(0.8),
            "qCreated": created,
            "qDeletedAll": deleted,
            "redis_timeout": failed,
        }
        gauges = self._edge(m, sent * 2_400.0 + 0.03 * 1e6 * seconds, 640 * m.busy, 118 + 3 * m.busy)
        gauges |= {"subscriptions": 9_000, "service_queues": 1_100, "ntf_service_queues": 30_000}
        if n == 0:
            gauges |= self._stored_smp(m)
        times = {
            "send_stored": self._times(sent, 1_450, m, 14),
            "send_msg": self._times(round(sent * 0.62), 3_900, m, 11),
            "msg_ack": self._times(received, 46_000, m),
            "redis_rtt": self._times(sent + received, 310, m, 18),
            "subs_alls": self._times(1, 180_000, m, 4) if n < 2 else {},
        }
        return Rollup(
            *self._head(SMP_ROUTER, m, n, edge),
            commands=commands,
            events=events,
            gauges=gauges,
            histograms=times,
            services=self._services(m, n, sent),
        )

    def _head(self, router: str, m: _Moment, n: int, edge: str) -> tuple[str, str, str, int, int, int]:
        start = round(m.start.timestamp() * 1000) + 700 * n
        return router, self._program, edge, self._sequences[n], start, m.step // timedelta(milliseconds=1)

    def _edge(self, m: _Moment, cpu: float, connections: float, mebibytes: float) -> dict[str, int]:
        return {
            "connections": self._count(connections),
            "cpu_us": self._count(cpu),
            "rss_bytes": round(mebibytes * 2**20),
            "loop_delay_max_us": self._count(6_000 * m.busy * (9 if m.slow else 1)),
        }

    def _stored_smp(self, m: _Moment) -> dict[str, int]:
        queues = round(_QUEUES + _GROWTH * m.day)
        messages = self._count(queues * 0.44)
        return {
            "fleet_queues": queues,
            "fleet_messages": messages,
            "fleet_notifiers": round(queues * 0.61),
            "redis_used_bytes": round(queues * 2_150 + messages * 16_900 + self._rng.gauss(0, 4e6)),
            "redis_max_bytes": 3 * _GIB,
            "redis_keys": queues + messages,
            **_active(m, "fleet_active_queues", queues * 0.34),
            **_active(m, "fleet_active_ntf", queues * 0.19),
        }

    def _services(self, m: _Moment, n: int, sent: int) -> tuple[ServiceRollup, ...]:
        """Each service has its session on an edge of its own. It connects again now and then."""
        found = []
        for place, (label, role, queues, drifts) in enumerate(_SERVICES):
            if place % SMP_EDGES != n:
                continue
            again = self._rng.random() < 0.04
            wrong = again and self._rng.random() < drifts
            drift = {"fewer" if wrong else "ok": 1} if again else {}
            alls = self._times(1, 30.0 * queues, m, 4) if again else {}
            delivered = self._count(sent * queues / _QUEUES)
            found.append(ServiceRollup(label, role, 1, queues, drift, delivered, alls))
        return tuple(found)

    def _ntf(self, m: _Moment, n: int, edge: str) -> Rollup:
        seconds = m.step.total_seconds()
        received = self._count(75 * m.busy * seconds * (0.6 if m.slow else 1))
        refused = self._count(received * 0.03)
        pushes = self._count((received - refused) * 0.66)
        invalid, failed, retried = (self._count(pushes * share) for share in (0.0012, 0.0005, 0.004))
        web = round(pushes * 0.12)
        new = self._count(0.0016 * m.busy * seconds)
        gauges = self._edge(m, received * 1_900.0 + 0.02 * 1e6 * seconds, 14 * m.busy, 96 + m.busy)
        gauges |= {"smp_servers_owned": 6, "smp_servers_active": 6}
        if n == 0:
            gauges |= self._stored_ntf(m)
        return Rollup(
            *self._head(NTF_ROUTER, m, n, edge),
            commands={
                "TNEW.OK": new,
                "TVFY.OK": new,
                "SNEW.OK": 5 * new,
                "TCHK.OK": 4 * new,
                "SCHK.AUTH": self._count(new * 0.3),
                "PING.OK": self._count(0.02 * seconds),
            },
            events={
                "ntfReceived": received,
                "ntfReceivedAuth": refused,
                "ntfDelivered": pushes,
                "ntfFailed": failed + invalid,
                "tknCreated": new,
                "subCreated": 5 * new,
                "pushes_apns_prod_delivered": pushes - web,
                "pushes_apns_prod_invalid": invalid,
                "pushes_apns_prod_retry": retried,
                "pushes_web_push_delivered": web,
                "pushes_web_push_failed": failed,
            },
            gauges=gauges,
            histograms={"nmsg_push": self._times(pushes, 88_000, m), "redis_rtt": self._times(received, 330, m, 18)},
        )

    def _stored_ntf(self, m: _Moment) -> dict[str, int]:
        tokens = round(_TOKENS + 130 * m.day)
        return {
            "fleet_tokens": tokens,
            "fleet_subscriptions": tokens * 7,
            "ntf_queue_waiting": self._count(3 * m.busy),
            "redis_used_bytes": round(tokens * 7 * 1_180 + self._rng.gauss(0, 5e5)),
            "redis_max_bytes": _GIB,
            "redis_keys": tokens * 8,
            **_active(m, "fleet_active_tokens", tokens * 0.55),
            **_active(m, "fleet_active_subscriptions", tokens * 2.4),
        }


_SERVICES: Final = (
    ("Help desk", "messages", 3_400, 0.0),
    ("Web shop", "messages", 820, 0.35),
    ("Alerts", "notifications", 61_000, 0.0),
)
"""Label, role, queues, and how often a SUBS expects other queues than are stored."""


def _shape() -> dict[int, float]:
    """The shares of the buckets around the middle one: the logarithms of values are normal, with a longer tail."""

    def below(bucket: float) -> float:
        return (1 + erf(bucket / (_WIDTH * PER_OCTAVE * 1.443 * sqrt(2)))) / 2

    shares = {step: below(step + 0.5) - below(step - 0.5) for step in range(-14, 19)}
    shares |= {step: shares.get(step, 0.0) + 0.0006 for step in range(12, 26)}
    total = sum(shares.values())
    return {step: share / total for step, share in shares.items()}


_SHAPE: Final[Mapping[int, float]] = _shape()


def _active(m: _Moment, name: str, of_a_day: float) -> dict[str, int]:
    """How many have been in use since the day, the week and the month began. They fill up quickly, then slowly."""
    at = m.start.astimezone(UTC)
    today = (at.hour * 60 + at.minute) / 1440
    passed = {"day": today, "week": at.weekday() + today, "month": at.day - 1 + today}
    return {f"{name}_{each}": round(of_a_day * (1.6 - 0.6 / sqrt(0.35 + days))) for each, days in passed.items()}
