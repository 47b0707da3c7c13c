"""The public report: counts of whole days that say nothing about a single client.

A number is rounded up to a multiple of 8, Laplace noise is added (ε 0.3, sensitivity 8), and the sum is rounded to a
multiple of 8. So it hardly changes what is published whether one client was there, with up to 8 messages of a kind on a
day. Numbers below 16 are left out, and so are those that the noise brings below 16: a missing number says that there
were few, and nothing else. Histograms are published bucket by bucket in the same way, and quantiles are made of the
published buckets.

A report is made again and again, and fresh noise would average away. So noise is no new random number: it is derived,
with HMAC-SHA-256, from a secret and from what the number is of: router, table, column, day. The bin itself is part of
that as well: if late records change the number, the new one gets noise of its own, and the difference of two reports is
not the difference of the numbers.

Nothing else is published: no hours, no services, no edges, no errors, nothing about Redis or machines, and no number of
clients at a time.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from math import copysign, log
from typing import Any, Final

from weir.pipeline.report.gold import Gold, Row, hour
from weir.pipeline.report.part import Span
from weir.pipeline.tables.columns import ACTIVE_QUEUES, LATENCY, NOTIFICATIONS, TRAFFIC
from weir.telemetry.rollups.histogram import PER_OCTAVE, coarsen

BIN: Final = 8
SENSITIVITY: Final = 8
EPSILON: Final = 0.3
LEAST: Final = 16
SECRET_BYTES: Final = 32

COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    TRAFFIC.name: ("messages_sent", "messages_received", "queues_created", "queues_deleted"),
    NOTIFICATIONS.name: ("messages_flagged", "notifications_sent", "notifications_received", "pushes_delivered"),
}
"""The columns that are published, by table."""
HISTOGRAMS: Final = ("send_msg", "send_stored", "nmsg_push")
_DAY_SECONDS: Final = 86_400.0
_UNIFORM_BITS: Final = 53
_DAILY: Final = "day"
_WIDE: Final = PER_OCTAVE // 2
"""Buckets are added up to half octaves first: a tail of many small buckets would be left out."""


class Noise:
    """Noise that is the same for the same number, and unknown without the secret."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SECRET_BYTES:
            raise ValueError(f"the secret has less than {SECRET_BYTES} bytes")
        self._secret = secret

    def published(self, value: float | None, *of: object) -> int | None:
        """The number to publish. `of` says what the number is of. None: nothing is published."""
        if value is None or value < LEAST:
            return None
        up = -(-int(value) // BIN) * BIN
        noisy = up + self._laplace("\0".join(map(str, (*of, up))))
        binned = round(noisy / BIN) * BIN
        return binned if binned >= LEAST else None

    def _laplace(self, name: str) -> float:
        digest = hmac.digest(self._secret, name.encode(), "sha256")
        uniform = (int.from_bytes(digest[:8], "big") >> (64 - _UNIFORM_BITS)) + 0.5
        centred = uniform / 2**_UNIFORM_BITS - 0.5
        return -copysign(SENSITIVITY / EPSILON, centred) * log(1 - 2 * abs(centred))


def published(gold: Gold, span: Span, noise: Noise) -> Gold:
    """The rows of the span's days with the numbers that may be published, and no other."""

    def rows(name: str, **values: object) -> list[Row]:
        return [
            row
            for row in gold.get(name, ())
            if span.start <= hour(row["at"]) < span.end and all(row[key] == value for key, value in values.items())
        ]

    found: dict[str, list[Row]] = {
        name: [_counts(name, row, columns, noise) for row in rows(name, grain=_DAILY)]
        for name, columns in COUNTS.items()
    }
    found[LATENCY.name] = [
        _histogram(row, noise) for row in rows(LATENCY.name, grain=_DAILY) if row["histogram"] in HISTOGRAMS
    ]
    found[ACTIVE_QUEUES.name] = [
        {**_named(row, "what", "period"), "active": active}
        for row in rows(ACTIVE_QUEUES.name, period=_DAILY)
        if (active := noise.published(row["active"], *_of(ACTIVE_QUEUES.name, row), row["what"])) is not None
    ]
    return found


def _of(name: str, row: Row) -> tuple[object, ...]:
    return (row["router"], row["program"], name, row["day"].isoformat())


def _named(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in ("router", "program", "at", "day", *names)}


def _counts(name: str, row: Row, columns: tuple[str, ...], noise: Noise) -> Row:
    """A day with any record counts as a whole day: how long a router was up is not published."""
    seen = name != TRAFFIC.name or bool(row["seconds_observed"])
    head = _named(row, "grain") | {"seconds_observed": _DAY_SECONDS * seen, "seconds_missing": 0.0}
    return head | {column: noise.published(row[column], *_of(name, row), column) for column in columns}


def _histogram(row: Row, noise: Noise) -> Row:
    wide = coarsen({int(index): int(count) for index, count in dict(row["buckets"] or {}).items()}, _WIDE)
    buckets = {
        index: count
        for index, each in wide.items()
        if (count := noise.published(each, *_of(LATENCY.name, row), row["histogram"], index)) is not None
    }
    return {**_named(row, "grain", "histogram"), "buckets": buckets}
