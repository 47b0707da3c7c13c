"""The Secrets of a router.

NAME-identity holds the CA behind the address, NAME-store the placement key and the password of Redis. Both are made
once and kept, because losing either loses the address or the queues. They have no owner, so they outlive the router
unless its spec says otherwise. NAME-edge is what the pods get: the online certificate and the store's keys, without the
CA's key. NAME-control has the passwords of the control port, if the spec wants the operator to make them. These two are
ordinary children, and their content is decided here.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, labels
from weir_operator.kinds.routers import identity
from weir_operator.kinds.routers.identity import Online
from weir_operator.kinds.routers.model import Observed, Router, RouterKind, embedded_settings
from weir_operator.kinds.routers.network import published_hosts
from weir_operator.kinds.routers.redis_password import PasswordRotation, new_password
from weir_operator.kinds.secrets import KEY_TYPES, Data, decode, encode
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache
from weir_operator.kube.conditions import Problem
from weir_operator.kube.objects import Key, Manifest

_CONTROL_PASSWORDS = (names.CONTROL_ADMIN, names.CONTROL_USER)
_GIVEN_SECONDS = 4.0  # a Secret named in the spec is not watched, because it carries no label of ours


@dataclass(frozen=True, slots=True)
class Keys:
    """The result of one round. `edge` is the data for the Secret NAME-edge, None if it cannot be made. `control` is the
    data for NAME-control, None if the operator does not make it."""

    edge: Data | None
    control: Data | None
    annotations: Mapping[str, str]
    online: Online | None
    placement_check: str | None
    problem: Problem | None
    events: tuple[tuple[str, str], ...] = ()  # reason, message
    again: float | None = None  # seconds until there is more to do


@dataclass(frozen=True, slots=True)
class _Given:
    read_at: float
    name: str
    found: bool
    data: Data
    has_ca_key: bool


class KeyMaker:
    def __init__(self, kind: RouterKind, api: Api, cache: Cache) -> None:
        self._kind = kind
        self._api = api
        self._cache = cache
        self._given: dict[Key, _Given] = {}
        self._rotation = PasswordRotation(api, cache)

    def forget(self, key: Key) -> None:
        self._given.pop(key, None)

    async def keys(self, key: Key, router: Router, observed: Observed, accepted: str | None) -> Keys:
        """Read the Secrets, make what is missing and may be made, and report what is wrong. While the router is paused,
        nothing is made. `accepted` is a new password that the embedded Redis accepts."""
        paused: bool = router.spec["maintenance"]["paused"]
        edge = self._cache.child(key, "Secret", names.edge(router.name))
        current: Data = edge.facts["data"] if edge else {}
        notes: Mapping[str, str] = edge.facts["annotations"] if edge else {}
        control = self._control(key, router)
        store = await self._store(key, router, current)
        if isinstance(store, Problem):
            kept = dict(current) if identity.read_online(current) else None
            return Keys(kept, control, _renewed(notes), identity.read_online(current), None, store)
        events: list[tuple[str, str]] = []
        fresh_identity: Data | None = None
        online = identity.read_online(current)
        certificate = {k: current[k] for k in (names.CA_CERT, names.SERVER_CERT, names.SERVER_KEY) if k in current}
        renewed = notes.get(names.RENEW)
        problem: Problem | None = None
        for _ in range(2):
            wanted = _wanted(router, renewed)
            found = await self._identity(key, router)
            decision = identity.decide(wanted, found, online, datetime.now(UTC))
            if paused and not isinstance(decision, Problem):
                break
            match decision:
                case Problem() as problem:
                    break
                case identity.Generate():
                    generated = await self._generate(key, router)
                    if isinstance(generated, Problem):
                        problem = generated
                        break
                    fresh_identity = generated
                    events.append(("IdentityCreated", "a new identity was made; back up its Secret"))
                case identity.Issue():
                    issued = await self._issue(router, observed, fresh_identity)
                    if isinstance(issued, Problem):
                        problem = issued
                        break
                    certificate, renewed = issued, wanted.renew
                    if fresh_identity is None:
                        events.append(("CertificateIssued", "the edges get a new online certificate"))
                    break
                case identity.Copy():
                    assert isinstance(found, identity.IdentitySecret) and found.online is not None
                    certificate = dict(found.online)
                    events.append(("CertificateIssued", "the edges get the online certificate that was given"))
                    break
                case identity.Keep():
                    break
        online = identity.read_online(certificate)
        again: float | None = None
        if embedded_settings(router) is None:
            store = {key: value for key, value in store.items() if key == names.PLACEMENT_KEY}
        elif (rotation := await self._rotation.advance(key, router, current, accepted)) is not None:
            store = {**store, names.REDIS_PASSWORD: encode(rotation.for_edges.encode())}
            events += rotation.events
            again = rotation.again
        data = {**certificate, **store} if online is not None else None
        marks = {names.RENEW: renewed} if renewed else {}
        return Keys(data, control, marks, online, placement_check(store), problem, tuple(events), again)

    def _control(self, key: Key, router: Router) -> Data | None:
        """The passwords of the control port: those that NAME-control has, or new ones."""
        wanted = router.spec.get("control")
        if wanted is None or "secretName" in wanted:
            return None
        seen = self._cache.child(key, "Secret", names.control(router.name))
        found: Data = seen.facts["data"] if seen else {}
        return {part: found.get(part) or encode(new_password().encode()) for part in _CONTROL_PASSWORDS}

    # --- the store's keys ---

    async def _store(self, key: Key, router: Router, edge: Data) -> Data | Problem:
        """The placement key and the password of Redis."""
        name = names.store(router.name)
        seen = self._cache.child(key, "Secret", name)
        known = router.status.get("placementCheck")
        data: Data | Problem
        if seen is not None:
            data = seen.facts["data"]
        elif router.spec["maintenance"]["paused"]:
            data = edge
            if not edge and not known:
                return {}
        else:
            data = await self._make_store(key, router, name, edge)
        if isinstance(data, Problem):
            return data
        kept = {k: data[k] for k in (names.PLACEMENT_KEY, names.REDIS_PASSWORD) if k in data}
        if names.PLACEMENT_KEY not in kept or (known and known != placement_check(kept)):
            return Problem(
                "PlacementKeyChanged",
                f"{names.PLACEMENT_KEY} in Secret {name} is not the one the queues were placed with; put it back",
            )
        return kept

    async def _make_store(self, key: Key, router: Router, name: str, edge: Data) -> Data | Problem:
        known = await self._live_status(router, "placementCheck")
        copy = {k: edge[k] for k in (names.PLACEMENT_KEY, names.REDIS_PASSWORD) if k in edge}
        if known and placement_check(copy) != known:
            live = await self._api.get("Secret", router.namespace, name)
            if live is not None:
                return self._adopt(key, router, live, name)
            return Problem(
                "PlacementKeyLost",
                f"Secret {name} is gone and with it the key the queues were placed with; restore it from a backup",
            )
        data = {
            names.PLACEMENT_KEY: encode(secrets.token_hex(32).encode()),
            names.REDIS_PASSWORD: encode(new_password().encode()),
            **copy,
        }
        # A new password needs no rotation, even when the router asks for one already.
        request = router.annotations.get(names.ROTATE_PASSWORD)
        notes = {names.ROTATE_PASSWORD: request} if request and not copy else None
        return await self._create(key, router, name, data, notes)

    # --- the identity ---

    async def _identity(self, key: Key, router: Router) -> identity.IdentitySecret | Problem | None:
        given = router.spec["identity"].get("secretName")
        if given:
            read = await self._read_given(key, router, given)
            return identity.read_identity(read.data, read.has_ca_key, given) if read.found else None
        name = names.identity(router.name)
        seen = self._cache.child(key, "Secret", name)
        if seen is None:
            if not router.status.get("fingerprint"):
                return None
            live = await self._api.get("Secret", router.namespace, name)
            if live is None:
                return None
            refusal = await self._reclaim(key, router, live, name)
            seen = self._cache.child(key, "Secret", name)
            if refusal is not None or seen is None:
                return refusal
        return identity.read_identity(seen.facts["data"], seen.facts["has_ca_key"], name)

    async def _read_given(self, key: Key, router: Router, name: str) -> _Given:
        known = self._given.get(key)
        now = time.monotonic()
        if known is not None and known.name == name and now - known.read_at < _GIVEN_SECONDS:
            return known
        live = await self._api.get("Secret", router.namespace, name)
        data = dict((live or {}).get("data") or {})
        has_ca_key = data.pop(names.CA_KEY, None) is not None
        self._given[key] = _Given(now, name, live is not None, data, has_ca_key)
        return self._given[key]

    async def _live_status(self, router: Router, name: str) -> str | None:
        """A field of the status, read from the API server, because the watch may be behind."""
        if router.just_read:
            return router.status.get(name)
        fresh = await self._api.get(router.kind, router.namespace, router.name)
        found: str | None = ((fresh or {}).get("status") or {}).get(name)
        return found

    async def _generate(self, key: Key, router: Router) -> Data | Problem:
        """Make an identity. The answer holds the CA's key, for issuing the first online certificate."""
        known = await self._live_status(router, "fingerprint")
        if known and router.annotations.get(names.REPLACE_ADDRESS) != known:
            return Problem("IdentityLost", f"the identity behind {known} is gone; restore its Secret from a backup")
        key_type = KEY_TYPES[router.spec["identity"]["keyType"]]
        data = identity.make_identity(key_type, self._kind.authority)
        made = await self._create(key, router, names.identity(router.name), data)
        if isinstance(made, Problem):
            return made
        # When the Secret existed already, its CA is another one. Its key is read when it is needed.
        return data if made[names.CA_CERT] == data[names.CA_CERT] else {}

    async def _issue(self, router: Router, observed: Observed, data: Data | None) -> dict[str, str] | Problem:
        """Issue an online certificate. Only this method reads the CA's key, and it does not keep it."""
        if not data:
            name = router.spec["identity"].get("secretName") or names.identity(router.name)
            live = await self._api.get("Secret", router.namespace, name)
            if live is None:
                return Problem("IdentityMissing", f"there is no Secret {name}")
            data = live.get("data") or {}
        key_type = KEY_TYPES[router.spec["identity"]["keyType"]]
        days = router.spec["certificate"]["lifetimeDays"]
        host = published_hosts(router, observed)[0]
        return identity.issue_online(data or {}, host[:64], key_type, days)

    # --- creating and adopting Secrets ---

    async def _create(
        self, key: Key, router: Router, name: str, data: Mapping[str, str], notes: Mapping[str, str] | None = None
    ) -> Data | Problem:
        """Create a Secret that outlives the router. An existing Secret is adopted, and never overwritten."""
        part = self._kind.component
        manifest = child(
            router, "v1", "Secret", name, part, owned=False, annotations=notes, type="Opaque", data=dict(data)
        )
        try:
            made = await self._api.create(manifest)
        except ApiError as error:
            if error.status != 409:
                raise
            live = await self._api.get("Secret", router.namespace, name)
            if live is None:
                raise
            return self._adopt(key, router, live, name)
        return dict(self._cache.remember(key, "Secret", made).facts["data"])

    async def _reclaim(self, key: Key, router: Router, live: Manifest, name: str) -> Problem | None:
        """Adopt an identity that the watch does not show. It is new, or somebody took its labels off, or it belongs to
        somebody else."""
        data = live.get("data") or {}
        found = identity.read_identity(data, names.CA_KEY in data, name)
        known = router.status.get("fingerprint")
        if isinstance(found, identity.IdentitySecret) and found.fingerprint == known and not _labelled(live, router):
            patch = {"metadata": {"labels": labels(router, self._kind.component)}}
            live = await self._api.merge("Secret", router.namespace, name, patch)
        adopted = self._adopt(key, router, live, name)
        return adopted if isinstance(adopted, Problem) else None

    def _adopt(self, key: Key, router: Router, live: Manifest, name: str) -> Data | Problem:
        if not _labelled(live, router):
            return Problem("NotOurs", f"there is a Secret {name} that is not the operator's; rename the router")
        return dict(self._cache.remember(key, "Secret", live).facts["data"])


def _labelled(live: Manifest, router: Router) -> bool:
    marks: Mapping[str, Any] = live["metadata"].get("labels") or {}
    return marks.get(names.ROUTER) == router.name and marks.get(names.MANAGED_BY) == names.MANAGER


def placement_check(data: Data) -> str | None:
    """A short digest, which tells whether two placement keys are equal and nothing else about them."""
    raw = decode(data, names.PLACEMENT_KEY)
    return sha256(b"weir placement check" + raw).hexdigest()[:16] if raw else None


def _renewed(notes: Mapping[str, str]) -> Mapping[str, str]:
    return {names.RENEW: notes[names.RENEW]} if names.RENEW in notes else {}


def _wanted(router: Router, renewed: str | None) -> identity.Wanted:
    certificate = router.spec["certificate"]
    return identity.Wanted(
        given=router.spec["identity"].get("secretName"),
        known=router.status.get("fingerprint"),
        replaceable=router.annotations.get(names.REPLACE_ADDRESS),
        renew_before_days=certificate["renewBeforeDays"],
        renew=router.annotations.get(names.RENEW),
        renewed=renewed,
    )
