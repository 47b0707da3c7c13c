"""Bring the children of a custom object into the desired state.

A child that is missing or differs is applied. A child that is no longer desired is deleted. An object of the same
name that belongs to somebody else is left alone and reported as a problem.
"""

from __future__ import annotations

from collections.abc import Callable

from weir_operator.kube import drift
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache, Seen
from weir_operator.kube.conditions import Problem
from weir_operator.kube.objects import ChildKey, Key, Manifest

# Kinds without a required field that could conflict: applying one would take over somebody else's object unnoticed.
_WITHOUT_CONFLICTS = frozenset(("ServiceAccount", "ConfigMap", "Secret"))


class Applied:
    """The changes that one reconciliation made."""

    def __init__(self) -> None:
        self.made: list[ChildKey] = []
        self.changed: list[ChildKey] = []
        self.removed: list[ChildKey] = []
        self.problems: list[Problem] = []


class Applier:
    """`pruned` are the kinds whose unwanted children are deleted; `on_repair` is called with the kind of each child
    that somebody else changed or deleted and that is back."""

    def __init__(self, api: Api, cache: Cache, pruned: frozenset[str], on_repair: Callable[[str], None]) -> None:
        self._api = api
        self._cache = cache
        self._pruned = pruned
        self._on_repair = on_repair
        # Digest of what was last applied: a child that differs from the same digest was changed by somebody else.
        self._applied: dict[tuple[Key, ChildKey], str] = {}

    def forget(self, key: Key) -> None:
        for at in [at for at in self._applied if at[0] == key]:
            del self._applied[at]

    async def apply_all(self, key: Key, uid: str, desired: list[Manifest], *, prune: bool) -> Applied:
        """Apply all children. When the server refuses one, the others are applied still."""
        done = Applied()
        for manifest in desired:
            at = (manifest["kind"], manifest["metadata"]["name"])
            try:
                await self._apply_one(key, at, manifest, done)
            except ApiError as error:
                if error.status >= 500 or error.status in (401, 429):
                    raise
                done.problems.append(_refusal(error, key, at))
        if prune and not done.problems:
            await self._prune(key, uid, {(m["kind"], m["metadata"]["name"]) for m in desired}, done)
        return done

    async def _apply_one(self, key: Key, at: ChildKey, manifest: Manifest, done: Applied) -> None:
        known = self._cache.child(key, *at)
        wanted = drift.content(manifest)
        mark = drift.digest(manifest)
        if known is not None and (known.deleting or _fits(known, wanted, mark)):
            self._applied.setdefault((key, at), mark)
            return
        if known is None and at[0] in _WITHOUT_CONFLICTS:
            live = await self._api.get(at[0], key.namespace, at[1])
            if live is not None and self._cache.owner_of(live) != key and not _owned(live, manifest):
                raise ApiError(409, "Conflict", "", "GET")
        found = await self._apply(manifest, known)
        seen = self._cache.remember(key, at[0], found)
        if not drift.covers(drift.unpack(seen.content), wanted):
            found = await self._api.replace(drift.replacement(manifest, found))
            seen = self._cache.remember(key, at[0], found)
            if not drift.covers(drift.unpack(seen.content), wanted):
                # The server or an admission webhook writes the child differently. Accept the result.
                seen.settled = (mark, seen.content)
        if self._applied.get((key, at)) == mark:
            self._on_repair(at[0])
            done.changed.append(at)
        elif known is None:
            done.made.append(at)
        self._applied[key, at] = mark

    async def _apply(self, manifest: Manifest, known: Seen | None) -> Manifest:
        """Apply a child. A child that is not known is applied without force: fields that belong to somebody else's
        object of that name are then a conflict."""
        try:
            return await self._api.apply(manifest, force=known is not None)
        except ApiError as error:
            # The server merges lists by key. A port whose number somebody changed would be in the list twice, which is
            # invalid. The child is replaced then.
            if known is None or error.status != 422:
                raise
            meta = manifest["metadata"]
            live = await self._api.get(manifest["kind"], meta["namespace"], meta["name"])
            if live is None or drift.covers(drift.content(live), drift.content(manifest)):
                raise
            return await self._api.replace(drift.replacement(manifest, live))

    async def _prune(self, key: Key, uid: str, wanted: set[ChildKey], done: Applied) -> None:
        for at, seen in list(self._cache.children(key).items()):
            if at in wanted or at[0] not in self._pruned or uid not in seen.owners or seen.deleting:
                continue
            await self._api.delete(at[0], key.namespace, at[1], seen.uid)
            self._applied.pop((key, at), None)
            done.removed.append(at)


def _fits(known: Seen, wanted: dict[str, object], mark: str) -> bool:
    return known.settled == (mark, known.content) or drift.covers(drift.unpack(known.content), wanted)


def _owned(live: Manifest, manifest: Manifest) -> bool:
    """Whether an owner reference says so. It stays when somebody takes the labels off."""
    ours = {owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()}
    return any(owner["uid"] in ours for owner in live["metadata"].get("ownerReferences") or ())


def _refusal(error: ApiError, key: Key, at: ChildKey) -> Problem:
    kind, name = at
    if error.status == 409:
        text = f"there is a {kind} {name} that is not the operator's; rename the {key.kind} or remove the {kind}"
        return Problem("NotOurs", text)
    if error.status == 403:
        return Problem("Forbidden", f"{kind} {name}: {error.message}")
    return Problem("ApplyFailed", f"{kind} {name}: {error.message}")
