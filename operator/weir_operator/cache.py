"""What the watches have told: our objects and their children, by owner. Nothing is asked of the API to look here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from weir_operator import drift, names
from weir_operator.kinds import facts
from weir_operator.model import ChildKey, Router, body_to_router
from weir_operator.schema import spec_schema, with_defaults


class Key(NamedTuple):
    """One of our own objects."""

    kind: str
    namespace: str
    name: str


@dataclass(slots=True)
class Seen:
    """A child as last seen, in the few bytes that matter."""

    uid: str
    version: int
    content: bytes
    owners: tuple[str, ...]
    deleting: bool
    facts: Mapping[str, Any]
    # Applied, and still not all that was wanted: what was wanted, and what came of it. Not tried again while both hold.
    settled: tuple[str, bytes] | None = None


_SCHEMAS = {kind: spec_schema(kind) for kind in names.PLURALS}
_BY_LABEL = {names.owner_label(kind): kind for kind in names.PLURALS}


def read(body: Mapping[str, Any], kind: str) -> Router:
    """With its defaults: an object may have been stored before its schema had them."""
    found = body_to_router(body, kind)
    return replace(found, spec=with_defaults(_SCHEMAS[kind], found.spec))


def owner_of(body: Mapping[str, Any]) -> Key | None:
    """Whose child this is, by its labels; None when it is nobody's of ours."""
    meta = body["metadata"]
    marks = meta.get("labels") or {}
    kind = _BY_LABEL.get(marks.get(names.OWNER_KIND, ""))
    name = marks.get(names.name_label(kind or ""))
    if kind is None or not name or marks.get(names.MANAGED_BY) != names.MANAGER:
        return None
    return Key(kind, meta["namespace"], name)


def seen(body: Mapping[str, Any], kind: str) -> Seen:
    meta = body["metadata"]
    return Seen(
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        content=drift.pack({**body, "kind": kind}),
        owners=tuple(owner["uid"] for owner in meta.get("ownerReferences") or ()),
        deleting=meta.get("deletionTimestamp") is not None,
        facts=facts(kind, body),
    )


class Cache:
    def __init__(self) -> None:
        self.objects: dict[Key, Router] = {}
        self._children: dict[Key, dict[ChildKey, Seen]] = {}
        self._owners: dict[str, Key] = {}  # by uid: a child stays one when its labels are taken off

    def object_event(self, kind: str, body: Mapping[str, Any], gone: bool) -> Key:
        """One of our own kinds was seen or is gone."""
        found = read(body, kind)
        key = Key(kind, found.namespace, found.name)
        if gone:
            self.objects.pop(key, None)
            return key
        known = self.objects.get(key)
        if known is None or known.uid != found.uid or int(known.resource_version) <= int(found.resource_version):
            self.objects[key] = found
        return key

    def child_event(self, kind: str, body: Mapping[str, Any], gone: bool) -> Key | None:
        """A labelled object was seen or is gone; its owner, or None when there is nothing new in it."""
        uid = body["metadata"]["uid"]
        owner = self._owners.get(uid) or owner_of(body)
        if owner is None:
            return None
        at = (kind, body["metadata"]["name"])
        children = self._children.setdefault(owner, {})
        known = children.get(at)
        if gone:
            self._owners.pop(uid, None)
            if known is None or known.uid == uid:
                children.pop(at, None)
                if not children:
                    del self._children[owner]
            return owner
        # An echo of our own write, or older than it.
        if known is not None and known.uid == uid and self._old(known, body):
            return None
        self.remember(owner, kind, body)
        return owner

    @staticmethod
    def _old(known: Seen, body: Mapping[str, Any]) -> bool:
        return int(body["metadata"]["resourceVersion"]) <= known.version

    def remember(self, owner: Key, kind: str, body: Mapping[str, Any]) -> Seen:
        """Also called with the answer to a write, so that the next look does not wait for the watch."""
        children = self._children.setdefault(owner, {})
        at = (kind, body["metadata"]["name"])
        new = seen(body, kind)
        known = children.get(at)
        if known is not None:
            new.settled = known.settled
        children[at] = new
        self._owners[new.uid] = owner
        return new

    def drop_missing(self, kind: str, namespace: str | None, there: set[str], version: int) -> set[Key]:
        """Forgets children that a list of that version no longer had; whose they were."""
        owners = set()
        for owner, children in list(self._children.items()):
            if namespace is not None and owner.namespace != namespace:
                continue
            for at, known in list(children.items()):
                if at[0] == kind and known.uid not in there and known.version <= version:
                    del children[at]
                    self._owners.pop(known.uid, None)
                    owners.add(owner)
        return owners

    def child(self, owner: Key, kind: str, name: str) -> Seen | None:
        return self._children.get(owner, {}).get((kind, name))

    def children(self, owner: Key) -> Mapping[ChildKey, Seen]:
        return self._children.get(owner, {})

    def of_kind(self, kind: str) -> Iterator[tuple[Key, Router]]:
        for key, found in list(self.objects.items()):
            if key.kind == kind:
                yield key, found
