"""Children put in place: applied when they are missing or differ, left alone when they are somebody else's."""

from __future__ import annotations

from weir_operator import drift
from weir_operator.api import Api, ApiError
from weir_operator.cache import Cache, Key, Seen, owner_of
from weir_operator.identity import Problem
from weir_operator.kinds import CHILD_KINDS, OPTIONAL_KINDS, UNGUARDED
from weir_operator.metrics import DRIFT_REPAIRS
from weir_operator.model import ChildKey, Manifest

# Every router has a ServiceAccount and its ConfigMaps: nothing in a spec makes them unwanted.
_PRUNED = frozenset((*CHILD_KINDS, *OPTIONAL_KINDS.values())) - {"ServiceAccount", "ConfigMap"}


class Applied:
    """What one round did."""

    def __init__(self) -> None:
        self.made: list[ChildKey] = []
        self.changed: list[ChildKey] = []
        self.removed: list[ChildKey] = []
        self.problems: list[Problem] = []


class Applier:
    def __init__(self, api: Api, cache: Cache) -> None:
        self._api = api
        self._cache = cache
        self._wanted: dict[tuple[Key, ChildKey], str] = {}  # what was last applied, to tell repair from change

    def forget(self, key: Key) -> None:
        for at in [at for at in self._wanted if at[0] == key]:
            del self._wanted[at]

    async def bring(self, key: Key, uid: str, desired: list[Manifest], *, prune: bool) -> Applied:
        """One child's refusal does not keep the others from being applied."""
        done = Applied()
        for manifest in desired:
            at = (manifest["kind"], manifest["metadata"]["name"])
            try:
                await self._one(key, at, manifest, done)
            except ApiError as error:
                if error.status >= 500 or error.status in (401, 429):
                    raise
                done.problems.append(_refusal(error, at))
        if prune and not done.problems:
            await self._prune(key, uid, {(m["kind"], m["metadata"]["name"]) for m in desired}, done)
        return done

    async def _one(self, key: Key, at: ChildKey, manifest: Manifest, done: Applied) -> None:
        known = self._cache.child(key, *at)
        wanted = drift.content(manifest)
        mark = drift.digest(manifest)
        if known is not None and (known.deleting or _fits(known, wanted, mark)):
            self._wanted.setdefault((key, at), mark)
            return
        if known is None and at[0] in UNGUARDED:
            live = await self._api.get(at[0], key.namespace, at[1])
            if live is not None and owner_of(live) != key and not _owned(live, manifest):
                raise ApiError(409, "Conflict", "", "GET")
        # The first time without force: fields of somebody else's object of that name are then a conflict.
        found = await self._apply(manifest, known)
        seen = self._cache.remember(key, at[0], found)
        if not drift.covers(drift.unpack(seen.content), wanted):
            found = await self._api.replace(drift.replacement(manifest, found))
            seen = self._cache.remember(key, at[0], found)
            if not drift.covers(drift.unpack(seen.content), wanted):
                # Written differently by the server, or by an admission webhook: it is what we can get.
                seen.settled = (mark, seen.content)
        if self._wanted.get((key, at)) == mark:
            DRIFT_REPAIRS.labels(at[0]).inc()
            done.changed.append(at)
        elif known is None:
            done.made.append(at)
        self._wanted[key, at] = mark

    async def _apply(self, manifest: Manifest, known: Seen | None) -> Manifest:
        try:
            return await self._api.apply(manifest, force=known is not None)
        except ApiError as error:
            # Lists are merged by key: a port whose number somebody changed would be there twice. Then it is replaced.
            if known is None or error.status != 422:
                raise
            meta = manifest["metadata"]
            live = await self._api.get(manifest["kind"], meta["namespace"], meta["name"])
            if live is None or drift.covers(drift.content(live), drift.content(manifest)):
                raise
            return await self._api.replace(drift.replacement(manifest, live))

    async def _prune(self, key: Key, uid: str, wanted: set[ChildKey], done: Applied) -> None:
        for at, seen in list(self._cache.children(key).items()):
            if at in wanted or at[0] not in _PRUNED or uid not in seen.owners or seen.deleting:
                continue
            await self._api.delete(at[0], key.namespace, at[1], seen.uid)
            self._wanted.pop((key, at), None)
            done.removed.append(at)


def _fits(known: Seen, wanted: dict[str, object], mark: str) -> bool:
    return known.settled == (mark, known.content) or drift.covers(drift.unpack(known.content), wanted)


def _owned(live: Manifest, manifest: Manifest) -> bool:
    """By reference, even when somebody has taken the labels off."""
    ours = {owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()}
    return any(owner["uid"] in ours for owner in live["metadata"].get("ownerReferences") or ())


def _refusal(error: ApiError, at: ChildKey) -> Problem:
    kind, name = at
    if error.status == 409:
        return Problem(
            "NotOurs", f"there is a {kind} {name} that is not the operator's; rename the router or remove it"
        )
    if error.status == 403:
        return Problem("Forbidden", f"{kind} {name}: {error.message}")
    return Problem("ApplyFailed", f"{kind} {name}: {error.message}")
