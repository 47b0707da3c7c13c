"""The Secrets of a router.

NAME-identity holds the CA behind the address, NAME-store the store's keys and the password of Redis. Both are made once
and kept, because losing either loses the address or the data. They have no owner, so they outlive the router unless its
spec says otherwise. NAME-edge is what the pods get: the online certificate and the store's keys, without the CA's key.
NAME-control has the passwords of the control port, if the spec wants the operator to make them. These two are ordinary
children, and their content is decided here. A kind may have further Secrets of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from weir_operator.kinds import names
from weir_operator.kinds.routers import identity
from weir_operator.kinds.routers.identity import Online
from weir_operator.kinds.routers.kept import KeptSecrets, labelled
from weir_operator.kinds.routers.model import Observed, Own, Router, RouterKind, embedded_settings
from weir_operator.kinds.routers.network import published_hosts
from weir_operator.kinds.routers.redis_password import PasswordRotation, new_password
from weir_operator.kinds.routers.store_keys import StoreKeys
from weir_operator.kinds.secrets import KEY_TYPES, Data, encode
from weir_operator.kube.api import Api
from weir_operator.kube.cache import Cache
from weir_operator.kube.conditions import Problem
from weir_operator.kube.objects import Key, Manifest

_CONTROL_PASSWORDS = (names.CONTROL_ADMIN, names.CONTROL_USER)


@dataclass(frozen=True, slots=True)
class Keys:
    """The result of one round. `edge` is the data for the Secret NAME-edge, None if it cannot be made. `control` is the
    data for NAME-control, None if the operator does not make it."""

    edge: Data | None
    control: Data | None
    annotations: Mapping[str, str]
    online: Online | None
    checks: Mapping[str, str]  # digests of the store's keys, by the fields of the status
    problem: Problem | None
    own: Own
    events: tuple[tuple[str, str], ...] = ()  # reason, message
    again: float | None = None  # seconds until there is more to do


class KeyMaker:
    def __init__(self, kind: RouterKind, api: Api, cache: Cache) -> None:
        self._kind = kind
        self._cache = cache
        self._kept = KeptSecrets(kind.component, api, cache)
        self._store = StoreKeys(kind.store_keys, self._kept)
        self._rotation = PasswordRotation(self._kept)

    def forget(self, key: Key) -> None:
        self._kept.forget(key)

    async def keys(self, key: Key, router: Router, observed: Observed, accepted: str | None) -> Keys:
        """Read the Secrets, make what is missing and may be made, and report what is wrong. While the router is paused,
        nothing is made. `accepted` is a new password that the embedded Redis accepts."""
        paused: bool = router.spec["maintenance"]["paused"]
        edge = self._cache.child(key, "Secret", names.edge(router.name))
        current: Data = edge.facts["data"] if edge else {}
        notes: Mapping[str, str] = edge.facts["annotations"] if edge else {}
        control = self._control(key, router)
        own = await self._kind.own_keys(self._kept, key, router) if self._kind.own_keys else Own()
        store = await self._store.read(key, router, current)
        if isinstance(store, Problem):
            kept = dict(current) if identity.read_online(current) else None
            return Keys(kept, control, _renewed(notes), identity.read_online(current), {}, store, own, own.events)
        events: list[tuple[str, str]] = [*own.events]
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
        again = own.again
        if embedded_settings(router) is None:
            store = {part: value for part, value in store.items() if part != names.REDIS_PASSWORD}
        elif (rotation := await self._rotation.advance(key, router, current, accepted)) is not None:
            store = {**store, names.REDIS_PASSWORD: encode(rotation.for_edges.encode())}
            events += rotation.events
            again = min((one for one in (own.again, rotation.again) if one is not None), default=None)
        data = {**certificate, **store} if online is not None else None
        marks = {names.RENEW: renewed} if renewed else {}
        return Keys(data, control, marks, online, self._store.checks(store), problem, own, tuple(events), again)

    def _control(self, key: Key, router: Router) -> Data | None:
        """The passwords of the control port: those that NAME-control has, or new ones."""
        wanted = router.spec.get("control")
        if wanted is None or "secretName" in wanted:
            return None
        seen = self._cache.child(key, "Secret", names.control(router.name))
        found: Data = seen.facts["data"] if seen else {}
        return {part: found.get(part) or encode(new_password().encode()) for part in _CONTROL_PASSWORDS}

    # --- the identity ---

    async def _identity(self, key: Key, router: Router) -> identity.IdentitySecret | Problem | None:
        given = router.spec["identity"].get("secretName")
        if given:
            read = await self._kept.given(key, router, given)
            return identity.read_identity(read.data, read.has_ca_key, given) if read.found else None
        name = names.identity(router.name)
        facts = self._kept.facts(key, name)
        if facts is None:
            if not router.status.get("fingerprint"):
                return None
            live = await self._kept.live(router, name)
            if live is None:
                return None
            refusal = await self._reclaim(key, router, live, name)
            facts = self._kept.facts(key, name)
            if refusal is not None or facts is None:
                return refusal
        return identity.read_identity(facts["data"], facts["has_ca_key"], name)

    async def _generate(self, key: Key, router: Router) -> Data | Problem:
        """Make an identity. The answer holds the CA's key, for issuing the first online certificate."""
        known = await self._kept.live_status(router, "fingerprint")
        if known and router.annotations.get(names.REPLACE_ADDRESS) != known:
            return Problem("IdentityLost", f"the identity behind {known} is gone; restore its Secret from a backup")
        key_type = KEY_TYPES[router.spec["identity"]["keyType"]]
        data = identity.make_identity(key_type, self._kind.authority)
        made = await self._kept.create(key, router, names.identity(router.name), data)
        if isinstance(made, Problem):
            return made
        # When the Secret existed already, its CA is another one. Its key is read when it is needed.
        return data if made[names.CA_CERT] == data[names.CA_CERT] else {}

    async def _issue(self, router: Router, observed: Observed, data: Data | None) -> dict[str, str] | Problem:
        """Issue an online certificate. Only this method reads the CA's key, and it does not keep it."""
        if not data:
            name = router.spec["identity"].get("secretName") or names.identity(router.name)
            live = await self._kept.live(router, name)
            if live is None:
                return Problem("IdentityMissing", f"there is no Secret {name}")
            data = live.get("data") or {}
        key_type = KEY_TYPES[router.spec["identity"]["keyType"]]
        days = router.spec["certificate"]["lifetimeDays"]
        host = published_hosts(router, observed)[0]
        return identity.issue_online(data or {}, host[:64], key_type, days)

    async def _reclaim(self, key: Key, router: Router, live: Manifest, name: str) -> Problem | None:
        """Adopt an identity that the watch does not show. It is new, or somebody took its labels off, or it belongs to
        somebody else."""
        data = live.get("data") or {}
        found = identity.read_identity(data, names.CA_KEY in data, name)
        known = router.status.get("fingerprint")
        if isinstance(found, identity.IdentitySecret) and found.fingerprint == known and not labelled(live, router):
            live = await self._kept.label(router, name)
        adopted = self._kept.adopt(key, router, live, name)
        return adopted if isinstance(adopted, Problem) else None


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
