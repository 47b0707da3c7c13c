"""The password of the embedded Redis, and its rotation without a moment at which Redis refuses an edge.

`redis-password` in NAME-store has one password a line. Redis accepts all of them, and `weir redis` follows changes of
its file. NAME-edge has the one password that edges connect with; an edge reads its file for each connection.

    NAME-store   NAME-edge
    old          old         a rotation is requested by annotation
    old, new     old         until Redis accepts the new password
    old, new     new         NAME-edge is written
    new, old     new         for OVERLAP: the kubelet copies the new password into the pods
    new          new

Two lines with the annotation SWITCHED, which holds the time of the switch, are the fourth state. So the Secrets alone
say what the next step is, and another operator can make it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.routers.kept import KeptSecrets
from weir_operator.kinds.routers.model import Router
from weir_operator.kinds.secrets import Data, decode, encode
from weir_operator.kube.conditions import timestamp
from weir_operator.kube.objects import Key

# The kubelet copies a changed Secret into pods within about a minute.
OVERLAP = timedelta(minutes=10)
_SOON = 1.0


@dataclass(frozen=True, slots=True)
class Stored:
    """The passwords in NAME-store."""

    lines: tuple[str, ...] = field(repr=False)
    switched: datetime | None  # the edges have had the first line since then
    request: str | None  # the last request for a rotation that was begun

    @property
    def untried(self) -> str | None:
        """The new password, as long as Redis may not accept it yet."""
        return self.lines[1] if len(self.lines) > 1 and self.switched is None else None


@dataclass(frozen=True, slots=True)
class Step:
    """A change of NAME-store, and the event that reports it."""

    lines: tuple[str, ...] = field(repr=False)
    annotations: Mapping[str, str | None]
    event: tuple[str, str]  # reason, message


@dataclass(frozen=True, slots=True)
class Rotation:
    """The result of one round."""

    for_edges: str = field(repr=False)
    events: tuple[tuple[str, str], ...] = ()
    again: float | None = None  # seconds until the next step


def new_password() -> str:
    return secrets.token_urlsafe(24)


def passwords(data: Data) -> tuple[str, ...]:
    """The passwords in a Secret, the one to connect with first."""
    raw = decode(data, names.REDIS_PASSWORD) or b""
    return tuple(filter(None, (line.strip() for line in raw.decode(errors="replace").splitlines())))


def stored(facts: Mapping[str, Any]) -> Stored:
    notes: Mapping[str, str] = facts["annotations"]
    try:
        switched = datetime.fromisoformat(notes[names.PASSWORD_SWITCHED])
    except (KeyError, ValueError):
        switched = None
    return Stored(passwords(facts["data"]), switched, notes.get(names.ROTATE_PASSWORD))


def for_edges(store: Stored, edge: str | None, accepted: str | None) -> str:
    """The password for NAME-edge, which has `edge` now. `accepted` is the new password once Redis accepts it."""
    new = store.untried
    return new if new is not None and new in (edge, accepted) else store.lines[0]


def next_step(store: Stored, edge: str | None, request: str | None, now: datetime) -> Step | None:
    first, *others = store.lines
    if not others:
        if request is None or request == store.request:
            return None
        notes: dict[str, str | None] = {names.ROTATE_PASSWORD: request, names.PASSWORD_SWITCHED: None}
        event = ("RedisPasswordAdded", "Redis gets a new password beside its old one")
        return Step((first, new_password()), notes, event)
    if store.switched is None:
        if edge != others[0]:
            return None
        event = ("RedisPasswordSwitched", "the edges get the new password of Redis; the old one is still accepted")
        return Step((others[0], first), {names.PASSWORD_SWITCHED: timestamp(now)}, event)
    if edge != first or now < store.switched + OVERLAP:
        return None
    event = ("RedisPasswordRotated", "the old password of Redis is no longer accepted")
    return Step((first,), {names.PASSWORD_SWITCHED: None}, event)


class PasswordRotation:
    """Makes the steps."""

    def __init__(self, kept: KeptSecrets) -> None:
        self._kept = kept

    async def advance(self, key: Key, router: Router, edge: Data, accepted: str | None) -> Rotation | None:
        """Make the next step if there is one. None: NAME-store is not there, or holds no password."""
        name = names.store(router.name)
        facts = self._kept.facts(key, name)
        if facts is None:
            return None
        store = stored(facts)
        if not store.lines:
            return None
        current = next(iter(passwords(edge)), None)
        now = datetime.now(UTC)
        events: tuple[tuple[str, str], ...] = ()
        if not router.spec["maintenance"]["paused"]:
            step = next_step(store, current, router.annotations.get(names.ROTATE_PASSWORD), now)
            if step is not None:
                value = encode("\n".join(step.lines).encode())
                part = names.REDIS_PASSWORD
                written = await self._kept.change(key, router, name, part, value, step.annotations)
                if written is not None:
                    store, events = stored(written), (step.event,)
        chosen = for_edges(store, current, accepted)
        again = None
        if store.switched is not None and len(store.lines) > 1:
            again = max((store.switched + OVERLAP - now).total_seconds(), _SOON)
        elif chosen == store.untried:
            again = _SOON
        return Rotation(chosen, events, again)
