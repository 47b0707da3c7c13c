"""Rows of gold, made up from a seed: a router with a daily rhythm, weekends and growth, and what a test adds."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import cos, pi
from random import Random
from typing import Any

from weir.telemetry.rollups.histogram import bucket, quantile

Row = dict[str, Any]
Rows = dict[str, list[Row]]
START = datetime(2026, 9, 7, tzinfo=UTC)  # a Monday
_DAY = 24


class Given:
    """A few weeks of one router. Hours from `start` have numbers; `gap`s have none; `incident`s have errors."""

    def __init__(
        self,
        days: int = 14,
        *,
        router: str = "main",
        program: str = "smp",
        gaps: Iterable[range] = (),
        incidents: Iterable[range] = (),
        scale: float = 1.0,
        seed: int = 1,
        start: datetime = START,
    ) -> None:
        self.router, self.program, self.days, self.scale, self.start = router, program, days, scale, start
        self._gaps = {hour for each in gaps for hour in each}
        self._incidents = {hour for each in incidents for hour in each}
        self._rng = Random(f"{seed} {router} {program}")
        self._noise = Random(f"{seed} {router} {program} memory")

    def rows(self) -> Rows:
        rows: Rows = {f"gold/{name}": [] for name in _TABLES}
        for day in range(self.days):
            hours = [self._hour(day * _DAY + n) for n in range(_DAY)]
            for hour in hours:
                _append(rows, hour)
            _append(rows, self._day(day, [hour for hour in hours if hour]))
        rows["gold/gaps"] += self._gap_rows()
        return rows

    def head(self, grain: str, hour: int) -> Row:
        at = self.start + timedelta(hours=hour)
        return {"router": self.router, "program": self.program, "grain": grain, "at": at, "day": at.date()}

    def rhythm(self, hour: int) -> float:
        at = self.start + timedelta(hours=hour)
        weekend = 0.7 if at.weekday() >= 5 else 1.0
        return weekend * (1 - 0.6 * cos((at.hour - 4) * pi / 12)) * (1 + hour / _DAY * 0.004)

    def _hour(self, hour: int) -> dict[str, list[Row]]:
        if hour in self._gaps:
            return {"traffic": [self.head("hour", hour) | _nothing()]}
        rng, bad = self._rng, hour in self._incidents
        busy = self.rhythm(hour) * self.scale * rng.lognormvariate(0, 0.05)
        sent = round(9_000 * busy * (0.6 if bad else 1))
        counts = {"sent": sent, "received": round(sent * 0.98), "flagged": round(sent * 0.7)}
        errors = {"AUTH": rng.randrange(20, 60), "QUOTA": rng.randrange(5, 15), "INTERNAL": 900 if bad else 0}
        clients = 4_000 * busy
        slow = 12 if bad else 1
        times = {
            name: _histogram(rng, round(each * busy), typical * slow)
            for name, (each, typical) in _TIMES[self.program].items()
        }
        return self._tables("hour", hour, counts, errors, clients, times, [busy])

    def _day(self, day: int, hours: list[dict[str, list[Row]]]) -> dict[str, list[Row]]:
        seen = [hour for hour in hours if "commands" in hour]
        if not seen:
            return {"traffic": [self.head("day", day * _DAY) | _nothing(86_400)]}
        counts = {name: sum(hour["counts"][0][name] for hour in seen) for name in ("sent", "received", "flagged")}
        errors = {name: sum(hour["counts"][0][name] for hour in seen) for name in ("AUTH", "QUOTA", "INTERNAL")}
        clients = sum(hour["traffic"][0]["connections"] for hour in seen) / len(seen)
        times: dict[str, dict[int, int]] = {}
        for hour in seen:
            for row in hour["latency"]:
                into = times.setdefault(row["histogram"], {})
                for index, count in row["buckets"].items():
                    into[index] = into.get(index, 0) + count
        busy = [hour["counts"][0]["busy"] for hour in seen]
        return self._tables("day", day * _DAY, counts, errors, clients, times, busy)

    def _tables(
        self,
        grain: str,
        hour: int,
        counts: dict[str, int],
        errors: dict[str, int],
        clients: float,
        times: dict[str, dict[int, int]],
        busy: list[float],
    ) -> dict[str, list[Row]]:
        head = self.head(grain, hour)
        length, smp = 3_600 * len(busy), self.program == "smp"
        sent, received, flagged = counts["sent"], counts["received"], counts["flagged"]
        queues = round((200_000 + hour * 90) * self.scale * self._noise.uniform(0.995, 1.005))
        missing = 0.0 if grain == "hour" else (24 - len(busy)) * 3_600.0 * 4
        traffic = head | {
            "seconds_observed": float(length * 4),
            "seconds_missing": missing,
            "edges": 4,
            "commands_total": sent + received + sum(errors.values()),
            "errors_total": sum(errors.values()),
            "messages_sent": sent if smp else 0,
            "messages_received": received if smp else 0,
            "queues_created": round(sent / 100),
            "queues_deleted": round(sent / 130),
            "tokens_created": round(sent / 200),
            "connections": clients,
            "connections_max": round(clients * 1.2),
        }
        outcomes = {("SEND", "OK"): sent, ("ACK", "OK"): received, ("SEND", "QUOTA"): errors["QUOTA"]}
        outcomes |= {("SUB", "AUTH"): errors["AUTH"], ("SEND", "INTERNAL"): errors["INTERNAL"]}
        day = head["at"].toordinal()
        rows = {
            "counts": [counts | errors | {"busy": sum(busy)}],
            "traffic": [traffic],
            "commands": [
                head | {"command": command, "outcome": outcome, "count": count}
                for (command, outcome), count in outcomes.items()
                if count
            ],
            "latency": [head | _latency(name, buckets) for name, buckets in times.items() if buckets],
            "capacity": [
                head
                | {
                    "edges": 4,
                    "redis_used_bytes": round(queues * 15_000 * self._noise.uniform(0.98, 1.02)),
                    "redis_max_bytes": 8 * 2**30,
                    "queues": queues if smp else None,
                    "tokens": None if smp else queues // 10,
                    "token_subscriptions": None if smp else queues,
                    "cpu_share": 0.18 * max(busy),
                    "edge_rss_bytes_max": 180 * 2**20,
                }
            ],
            "notifications": [
                head
                | {
                    "messages_flagged": flagged if smp else 0,
                    "notifications_sent": round(flagged * 0.9) if smp else 0,
                    "notifications_without_subscriber": round(flagged * 0.1) if smp else 0,
                    "notifications_lost": 0,
                    "notifications_expired": 3 if smp else 0,
                    "notifications_received": 0 if smp else sent,
                    "notifications_refused": 0 if smp else round(sent * 0.05),
                    "notifications_kept": 0 if smp else sent - round(sent * 0.05),
                    "pushes_delivered": 0 if smp else round(sent * 0.6),
                    "pushes_failed": 0 if smp else 5,
                    "periodic_delivered": 0,
                    "periodic_failed": 0,
                    "pushes": None if smp else {"apns_prod_delivered": round(sent * 0.6), "apns_prod_invalid": 5},
                    "limited": None,
                }
            ],
            "services": [
                head
                | {
                    "label": label,
                    "role": "messages",
                    "queues": size,
                    "sessions": 1,
                    "drift_ok": 2 * len(busy),
                    "drift_more": 0,
                    "drift_fewer": 1 if label == "desk" and day % 5 == 0 else 0,
                    "drift_diff": 0,
                    "delivered": sent // 20,
                    "alls": 2 * len(busy),
                    "alls_p50": None,
                    "alls_p90": None,
                    "alls_p99": None,
                }
                for label, size in (("desk", 4_000), ("shop", 900))
                if smp
            ],
        }
        if grain == "day":
            rows["active_queues"] = self._active(head, queues if smp else queues // 10)
        return rows

    def _active(self, head: Row, stored: int) -> list[Row]:
        at = head["at"]
        passed = {"day": 0, "week": at.weekday(), "month": at.day - 1}
        return [
            {"router": self.router, "program": self.program, "what": "queues" if self.program == "smp" else "tokens"}
            | {"period": period, "at": at - timedelta(days=days), "day": at.date()}
            | {"active": round(stored * (0.4 + 0.02 * days))}
            for period, days in passed.items()
        ]

    def _gap_rows(self) -> list[Row]:
        found: list[Row] = []
        for hour in sorted(self._gaps):
            at = self.start + timedelta(hours=hour)
            head = {"router": self.router, "program": self.program, "edge": "a1b2c3d4e5", "day": at.date()}
            head |= {"first_missing": hour * 60 + 1, "last_missing": hour * 60 + 60}
            found.append(head | {"start": at, "end": at + timedelta(hours=1), "reason": "trimmed"})
        return found


_TABLES = (
    *("traffic", "commands", "latency", "services", "active_queues", "capacity", "notifications", "gaps"),
    "critical_path",
)
_DRAWN = 40
_TIMES = {
    "smp": {"send_stored": (400, 1_500.0), "send_msg": (300, 4_000.0), "redis_rtt": (500, 300.0)},
    "ntf": {"nmsg_push": (300, 90_000.0), "redis_rtt": (500, 300.0)},
}


def _nothing(missing: float = 3_600.0) -> Row:
    names = ("commands_total", "errors_total", "messages_sent", "messages_received", "queues_created")
    names += ("queues_deleted", "tokens_created", "connections", "connections_max", "edges")
    return {"seconds_observed": 0.0, "seconds_missing": missing, **dict.fromkeys(names)}


def _append(rows: Rows, tables: dict[str, list[Row]]) -> None:
    for name, found in tables.items():
        if name != "counts":
            rows[f"gold/{name}"] += found


def _histogram(rng: Random, count: int, typical: float) -> dict[int, int]:
    """About `count` values, from a few drawn ones."""
    buckets: dict[int, int] = {}
    for _ in range(_DRAWN):
        index = bucket(rng.lognormvariate(0, 0.5) * typical)
        buckets[index] = buckets.get(index, 0) + max(1, count // _DRAWN)
    return buckets


def _latency(name: str, buckets: dict[int, int]) -> Row:
    count = sum(buckets.values())
    row: Row = {"histogram": name, "unit": "µs", "count": count, "buckets": buckets}
    quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
    return row | {key: quantile(buckets, q) if count >= 100 else None for key, q in quantiles.items()}


def joined(*several: Rows) -> Rows:
    """The rows of several routers together."""
    return {name: [row for rows in several for row in rows[name]] for name in several[0]}
