"""Conditions of a status, and the problems that make them false."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Condition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something does not work: a reason in one word, and a message for people."""

    reason: str
    message: str


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it, in whole seconds."""
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def condition(kind: str, status: bool | None, reason: str, message: str) -> Condition:
    """One condition without its times; a status of None is Unknown."""
    text = "Unknown" if status is None else str(status)
    return {"type": kind, "status": text, "reason": reason, "message": message}


def with_times(conditions: list[Condition], old: Mapping[str, Any], generation: int, now: datetime) -> list[Condition]:
    """Add generation and lastTransitionTime. The time of an old condition stays while its status stays."""
    before = {one["type"]: one for one in old.get("conditions") or ()}
    dated = []
    for one in conditions:
        was = before.get(one["type"])
        since = was["lastTransitionTime"] if was and was["status"] == one["status"] else timestamp(now)
        dated.append({**one, "observedGeneration": generation, "lastTransitionTime": since})
    return dated
