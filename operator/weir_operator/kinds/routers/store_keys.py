"""NAME-store: the keys without which nobody finds or reads what a router has in Redis, and the password of Redis.

The status has a short digest of each key. So a key that is lost or exchanged is reported, and never used over data that
was stored with another one. NAME-edge has copies of the keys, from which a deleted NAME-store is made again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from weir_operator.kinds import names
from weir_operator.kinds.routers.kept import KeptSecrets
from weir_operator.kinds.routers.model import Router
from weir_operator.kinds.routers.redis_password import new_password
from weir_operator.kinds.secrets import Data, decode, encode
from weir_operator.kube.conditions import Problem
from weir_operator.kube.objects import Key


@dataclass(frozen=True, slots=True)
class StoreKey:
    """One of the keys in NAME-store."""

    key: str  # in the Secret
    check: str  # the field of the status that has its digest
    salt: bytes
    reason: str  # the reasons of its problems begin with this word
    loss: str  # what the key is for, in the message about its loss
    exchange: str  # the same, in the message about another key

    def digest(self, data: Data) -> str | None:
        """A short digest, which tells whether two keys are equal and nothing else about them."""
        raw = decode(data, self.key)
        return sha256(self.salt + raw).hexdigest()[:16] if raw else None


_PLACEMENT = StoreKey(
    names.PLACEMENT_KEY,
    "placementCheck",
    b"weir placement check",
    "PlacementKey",
    "the key the queues were placed with",
    "the one the queues were placed with",
)
_STORAGE = StoreKey(
    names.STORAGE_KEY,
    "storageCheck",
    b"weir storage check",
    "StorageKey",
    "the key the tokens are encrypted with",
    "the one the tokens are encrypted with",
)


STORE_KEYS: Final = {one.key: one for one in (_PLACEMENT, _STORAGE)}


class StoreKeys:
    """`keys` are those of the kind."""

    def __init__(self, keys: tuple[str, ...], kept: KeptSecrets) -> None:
        self._keys = tuple(STORE_KEYS[key] for key in keys)
        self._names = keys
        self._kept = kept

    def checks(self, data: Data) -> dict[str, str]:
        """The digests, by the fields of the status."""
        found = {one.check: one.digest(data) for one in self._keys}
        return {check: digest for check, digest in found.items() if digest is not None}

    async def read(self, key: Key, router: Router, edge: Data) -> Data | Problem:
        """The keys and the password of Redis. `edge` is the data of NAME-edge."""
        name = names.store(router.name)
        facts = self._kept.facts(key, name)
        paused = router.spec["maintenance"]["paused"]
        data: Data | Problem
        if facts is not None:
            data = facts["data"] if paused else await self._complete(key, router, name, facts["data"])
        elif paused:
            data = edge
            if not edge and not any(router.status.get(one.check) for one in self._keys):
                return {}
        else:
            data = await self._make(key, router, name, edge)
        if isinstance(data, Problem):
            return data
        kept = {one: data[one] for one in (*self._names, names.REDIS_PASSWORD) if one in data}
        for one in self._keys:
            known = router.status.get(one.check)
            if one.key not in kept or (known and known != one.digest(kept)):
                text = f"{one.key} in Secret {name} is not {one.exchange}; put it back"
                return Problem(f"{one.reason}Changed", text)
        return kept

    async def _make(self, key: Key, router: Router, name: str, edge: Data) -> Data | Problem:
        copy = {one: edge[one] for one in (*self._names, names.REDIS_PASSWORD) if one in edge}
        for one in self._keys:
            known = await self._kept.live_status(router, one.check)
            if not known or one.digest(copy) == known:
                continue
            live = await self._kept.live(router, name)
            if live is not None:
                return self._kept.adopt(key, router, live, name)
            text = f"Secret {name} is gone and with it {one.loss}; restore it from a backup"
            return Problem(f"{one.reason}Lost", text)
        data = {
            **{one: _new_key() for one in self._names},
            names.REDIS_PASSWORD: encode(new_password().encode()),
            **copy,
        }
        # A new password needs no rotation, even when the router asks for one already.
        request = router.annotations.get(names.ROTATE_PASSWORD)
        notes = {names.ROTATE_PASSWORD: request} if request and not copy else None
        return await self._kept.create(key, router, name, data, notes)

    async def _complete(self, key: Key, router: Router, name: str, data: Data) -> Data:
        """Add the keys of which the status has no digest: NAME-store may be older than the operator's use of them."""
        missing = [one for one in self._keys if one.key not in data and not router.status.get(one.check)]
        # Without its first key, NAME-store is no older Secret but a damaged one.
        if not missing or self._keys[0] in missing:
            return data
        patch: Mapping[str, object] = {"data": {one.key: _new_key() for one in missing}}
        return dict((await self._kept.merge(key, router, name, patch))["data"])


def _new_key() -> str:
    return encode(secrets.token_hex(32).encode())
