"""The way of notifications, as a funnel: how many are left after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.figure import Figure, Section, Table
from weir.pipeline.report.part import Part
from weir.pipeline.tables.columns import NOTIFICATIONS

_STEPS: Final = {
    "smp": (
        ("messages_flagged", "messages with a notification"),
        ("notifications_sent", "delivered to a notifier"),
    ),
    "ntf": (
        ("notifications_received", "received from SMP routers"),
        ("notifications_kept", "kept for an active token"),
        ("pushes_delivered", "pushes accepted by the provider"),
    ),
}
_LOSSES: Final = {
    "smp": (
        ("notifications_without_subscriber", "no notifier was subscribed; kept until one is"),
        ("notifications_lost", "lost"),
        ("notifications_expired", "expired"),
    ),
    "ntf": (
        ("notifications_refused", "no subscription, or no active token"),
        ("pushes_failed", "pushes failed for good"),
        ("periodic_delivered", "periodic pushes accepted"),
        ("periodic_failed", "periodic pushes failed"),
    ),
}
_PROVIDERS: Final = {
    "apns_prod": "APNs",
    "apns_dev": "APNs for development",
    "apns_test": "APNs' test server",
    "web_push": "Web Push",
}
_ANSWERS: Final = ("delivered", "invalid", "retry", "failed")


def section(part: Part) -> Section | None:
    sums = _sums(part)
    steps = [(label, sums.get(column, 0.0)) for column, label in _STEPS[part.program]]
    if part.public:  # a sum of numbers that were left out is no zero
        steps = [(label, value) for label, value in steps if value]
    if len(steps) < 2 or not steps[0][1]:
        return None
    figures = [_funnel(part, steps, sums)]
    providers = _providers(part)
    if providers:
        figures.append(providers)
    return Section("notifications", "Notifications", tuple(figures))


def _sums(part: Part) -> Mapping[str, float]:
    columns = [column for column, _ in (*_STEPS[part.program], *_LOSSES[part.program])]
    return {column: sum(part.summed(NOTIFICATIONS, column).values()) for column in columns}


def _funnel(part: Part, steps: Sequence[tuple[str, float]], sums: Mapping[str, float]) -> Figure:
    first, last = steps[0][1], steps[-1][1]
    rows = [
        charts.Row(
            label, value, f"{units.count(value)} · {units.share(value / first)}" if place else units.count(value)
        )
        for place, (label, value) in enumerate(steps)
    ]
    losses = [(label, sums[column]) for column, label in _LOSSES[part.program] if sums.get(column)]
    if part.program == "ntf":
        finding = f"{units.share(last / first)} as many pushes as notifications"
        summary = "One push tells of all notifications that wait for its device, so there are fewer pushes. "
    else:
        finding = f"{units.share(last / first)} of the notifications were delivered at once"
        summary = ""
    if not part.public:
        summary += units.sentence([f"{label}: {units.count(value)}" for label, value in losses], "Nothing was lost.")
    return Figure(
        name="funnel",
        finding=finding,
        summary=summary,
        unit="",
        spec=charts.ranked(rows, "c1"),
        table=Table(
            ("Step", "Count", "Of the first"),
            tuple((label, units.exact(value), units.share(value / first)) for label, value in [*steps, *losses]),
        ),
        wide=True,
    )


def _providers(part: Part) -> Figure | None:
    counts: dict[str, float] = {}
    limited: dict[str, float] = {}
    for row in part.within(NOTIFICATIONS):
        for name, count in dict(row.get("pushes") or {}).items():
            counts[name] = counts.get(name, 0.0) + count
        for name, count in dict(row.get("limited") or {}).items():
            limited[name] = limited.get(name, 0.0) + count
    rows: list[tuple[float, tuple[str, ...]]] = []
    for provider, label in _PROVIDERS.items():
        answers = [counts.get(f"{provider}_{answer}", 0.0) for answer in _ANSWERS]
        if any(answers):
            numbers = (*answers, limited.get(provider, 0.0))
            rows.append((answers[0] / sum(answers), (label, *map(units.exact, numbers))))
    if not rows:
        return None
    least, worst = min(rows)
    return Figure(
        name="providers",
        finding=f"{worst[0]} accepted {units.share(least)} of its pushes",
        summary="A device token is invalid when its app was removed. A push to be repeated counts again.",
        table=Table(
            ("Provider", "accepted", "token invalid", "to be repeated", "failed", "too many at once"),
            tuple(row for _, row in rows),
        ),
        wide=True,
    )
