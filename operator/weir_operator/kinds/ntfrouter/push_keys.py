"""The keys that a notification router shows to push services.

Apple's key is given, and only checked here. The key of Web Push (VAPID) is given, or made once and kept in NAME-vapid.
Its public half is in the query of the address: a device makes its Web Push subscription for this key, and a push
service accepts no other for that subscription. So a lost key is reported, like a lost identity, and old keys are kept
beside a new one.

NAME-vapid has the keys in one file. The first signs, and a pod tries the others when a push service refuses the first.
A rotation has two steps, so that every pod knows a new key before the first device does:

    file        address
    old         old       a rotation is requested by annotation
    old, new    old       for OVERLAP: the kubelet copies the file into the pods
    new, old    new

The Secret's annotation ADDED, which holds the time of the first step, says that the second is still to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from weir.crypto import p256
from weir.crypto.pem import UnusableFile
from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.config import vapid_source
from weir_operator.kinds.routers.kept import KeptSecrets
from weir_operator.kinds.routers.model import Own, Router
from weir_operator.kinds.routers.redis_password import OVERLAP
from weir_operator.kinds.secrets import Data, decode, encode
from weir_operator.kube.conditions import Problem, timestamp
from weir_operator.kube.objects import Key

STATUS: Final = "vapidKey"
# Keys in NAME-vapid. A device that has not connected during so many rotations has to subscribe again.
_MOST = 4
_SOON = 1.0

Keys = tuple[p256.PrivateKey, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A change of NAME-vapid, and the event that reports it."""

    keys: Keys = field(repr=False)
    annotations: Mapping[str, str | None]
    event: tuple[str, str]  # reason, message


async def push_keys(kept: KeptSecrets, key: Key, router: Router) -> Own:
    """Check the keys of the spec, and make what is missing and may be made."""
    push = router.spec["push"]
    services, problems, given = [], [], []
    own = Own()
    if "apns" in push:
        services.append("APNs")
        given.append(push["apns"]["secretName"])
        problems.append(await _apns_problem(kept, key, router))
    if push["webPush"]["enabled"]:
        services.append("Web Push")
        own = await _web_push(kept, key, router)
        problems.append(own.problem)
    for service in (push.get("apns", {}), push["webPush"]):
        if "ca" in service:
            name = service["ca"]["name"]
            given.append(name)
            value = await _given_value(kept, key, router, name, service["ca"]["key"])
            problems.append(value if isinstance(value, Problem) else None)
    if not services:
        text = "the spec names no push service: set push.apns, or switch push.webPush on"
        problems.append(Problem("NoPushService", text))
    return replace(
        own,
        problem=next(filter(None, problems), None),
        message=f"{' and '.join(services)}: the keys are there",
        given=own.given or bool(given),
    )


async def _given_value(kept: KeptSecrets, key: Key, router: Router, name: str, part: str) -> bytes | Problem:
    """A value of a Secret that the spec names."""
    secret = await kept.given(key, router, name)
    if not secret.found:
        return Problem("SecretMissing", f"there is no Secret {name}")
    value = decode(secret.data, part)
    return value if value is not None else Problem("SecretMissing", f"Secret {name} has no {part}")


async def _apns_problem(kept: KeptSecrets, key: Key, router: Router) -> Problem | None:
    apns = router.spec["push"]["apns"]
    value = await _given_value(kept, key, router, apns["secretName"], apns["key"])
    if isinstance(value, Problem):
        return value
    try:
        p256.key_from_pem(value, f"{apns['key']} of Secret {apns['secretName']}")
    except UnusableFile as error:
        return Problem("ApnsKeyInvalid", str(error))
    return None


async def _web_push(kept: KeptSecrets, key: Key, router: Router) -> Own:
    name, part = vapid_source(router)
    known: str | None = router.status.get(STATUS)
    own = replace(_published(known), given="secretName" in router.spec["push"]["webPush"])
    if own.given:
        value = await _given_value(kept, key, router, name, part)
    else:
        made, events = await _made_value(kept, key, router, name, part)
        if made is None:
            return own
        value, own = made, replace(own, events=events)
    if isinstance(value, Problem):
        return replace(own, problem=value)
    try:
        keys = p256.keys_from_pem(value, f"{part} of Secret {name}")
    except UnusableFile as error:
        return replace(own, problem=Problem("VapidKeyInvalid", str(error)))
    if known and known not in map(p256.public_text, keys) and router.annotations.get(names.REPLACE_ADDRESS) != known:
        text = (
            f"{part} of Secret {name} does not have the key {known}, which devices know; put it back below the new"
            f" one, or set {names.REPLACE_ADDRESS}={known} to give up the devices' Web Push subscriptions"
        )
        return replace(own, problem=Problem("VapidKeyChanged", text))
    if own.given or router.spec["maintenance"]["paused"]:
        return replace(_published(p256.public_text(keys[0])), given=own.given, events=own.events)
    return await _rotate(kept, key, router, keys, own.events)


def _published(public: str | None) -> Own:
    return Own(query=f"?vapid={public}", status={STATUS: public}) if public else Own()


async def _made_value(
    kept: KeptSecrets, key: Key, router: Router, name: str, part: str
) -> tuple[bytes | Problem | None, tuple[tuple[str, str], ...]]:
    """The content of NAME-vapid, which is made when there is none. None: nothing is made while the router is paused."""
    facts = kept.facts(key, name)
    events: tuple[tuple[str, str], ...] = ()
    data: Data | Problem
    if facts is not None:
        data = facts["data"]
    elif router.spec["maintenance"]["paused"]:
        return None, ()
    else:
        known = await kept.live_status(router, STATUS)
        live = await kept.live(router, name) if known else None
        if live is not None:
            data = kept.adopt(key, router, live, name)
        elif known and router.annotations.get(names.REPLACE_ADDRESS) != known:
            text = (
                f"Secret {name} is gone and with it the key {known}, which devices know; restore it from a backup, or"
                f" set {names.REPLACE_ADDRESS}={known} to give up the devices' Web Push subscriptions"
            )
            data = Problem("VapidKeyLost", text)
        else:
            # A new key needs no rotation, even when the router asks for one already.
            request = router.annotations.get(names.ROTATE_VAPID)
            notes = {names.ROTATE_VAPID: request} if request else None
            data = await kept.create(key, router, name, {part: encode(p256.keys_to_pem(p256.generate()))}, notes)
            events = (("VapidKeyCreated", "a key for Web Push was made; back up its Secret"),)
    if isinstance(data, Problem):
        return data, ()
    value = decode(data, part)
    return (Problem("VapidKeyInvalid", f"Secret {name} has no {part}") if value is None else value), events


def next_step(keys: Keys, notes: Mapping[str, str], request: str | None, now: datetime) -> Step | None:
    if names.VAPID_ADDED not in notes:
        if request is None or request == notes.get(names.ROTATE_VAPID):
            return None
        event = ("VapidKeyAdded", "Web Push gets a new key; the address keeps the old one until all edges know both")
        marks: dict[str, str | None] = {names.ROTATE_VAPID: request, names.VAPID_ADDED: timestamp(now)}
        return Step((keys[0], p256.generate(), *keys[1:])[:_MOST], marks, event)
    if now < _end(notes):
        return None
    event = ("VapidKeyRotated", "the address has the new key of Web Push; devices with an old one still get pushes")
    # Somebody may have taken the new key out of the file meanwhile.
    turned = (keys[1], keys[0], *keys[2:]) if len(keys) > 1 else keys
    return Step(turned, {names.VAPID_ADDED: None}, event)


def _end(notes: Mapping[str, str]) -> datetime:
    """The time of the second step."""
    try:
        return datetime.fromisoformat(notes[names.VAPID_ADDED]) + OVERLAP
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


async def _rotate(kept: KeptSecrets, key: Key, router: Router, keys: Keys, events: tuple[tuple[str, str], ...]) -> Own:
    """Make the next step of a rotation if there is one."""
    name, part = vapid_source(router)
    facts = kept.facts(key, name)
    notes: Mapping[str, str] = facts["annotations"] if facts else {}
    now = datetime.now(UTC)
    step = next_step(keys, notes, router.annotations.get(names.ROTATE_VAPID), now)
    if step is not None:
        pem = p256.keys_to_pem(*step.keys)
        written = await kept.change(key, router, name, part, encode(pem), step.annotations)
        if written is not None:
            keys, notes, events = step.keys, written["annotations"], (*events, step.event)
    again = max((_end(notes) - now).total_seconds(), _SOON) if names.VAPID_ADDED in notes else None
    return replace(_published(p256.public_text(keys[0])), events=events, again=again)
