"""The objects that the watches have reported: custom objects, and the children that belong to each.

Reading from the cache asks nothing of the API server. The cache is also fed with the answers to our own writes, so the
next reconciliation does not wait for the watch to report them. This is why it is not an index of kopf's: kopf changes
an index by watch events only, and cannot tell that an event is the echo of a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weir_operator.kube import drift
from weir_operator.kube.objects import ChildKey, CustomObject, Key

Facts = Mapping[str, Any]


@dataclass(slots=True)
class Seen:
    """A child as last seen, in the few bytes that matter."""

    uid: str
    version: int
    content: bytes
    owners: tuple[str, ...]
    deleting: bool
    facts: Facts
    # (digest of what was desired, content that resulted). Set when the server keeps a child different from what was
    # applied. The child is not applied again while both stay the same.
    settled: tuple[str, bytes] | None = None


class Cache:
    """`read` parses a custom object, `owner_of` finds a child's owner by its labels, `facts` extracts from a child
    what decisions need."""

    def __init__(
        self,
        read: Callable[[Mapping[str, Any], str], CustomObject],
        owner_of: Callable[[Mapping[str, Any]], Key | None],
        facts: Callable[[str, Mapping[str, Any]], Facts],
    ) -> None:
        self.objects: dict[Key, CustomObject] = {}
        self._read = read
        self.owner_of = owner_of
        self._facts = facts
        self._children: dict[Key, dict[ChildKey, Seen]] = {}
        self._owners: dict[str, Key] = {}  # by uid: a child stays one when its labels are taken off

    def object_event(self, kind: str, body: Mapping[str, Any], gone: bool) -> Key:
        """Record a custom object that was seen, or that is gone."""
        found = self._read(body, kind)
        key = Key(kind, found.namespace, found.name)
        if gone:
            self.objects.pop(key, None)
            return key
        known = self.objects.get(key)
        if known is None or known.uid != found.uid or int(known.resource_version) <= int(found.resource_version):
            self.objects[key] = found
        return key

    def child_event(self, kind: str, body: Mapping[str, Any], gone: bool) -> Key | None:
        """Record a child that was seen, or that is gone. Return its owner, or None when nothing is new."""
        uid = body["metadata"]["uid"]
        owner = self._owners.get(uid) or self.owner_of(body)
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
        if known is not None and known.uid == uid and int(body["metadata"]["resourceVersion"]) <= known.version:
            # The echo of our own write, or an event older than it.
            return None
        self.remember(owner, kind, body)
        return owner

    def remember(self, owner: Key, kind: str, body: Mapping[str, Any]) -> Seen:
        """Record a child, from an event or from the answer to a write."""
        children = self._children.setdefault(owner, {})
        at = (kind, body["metadata"]["name"])
        new = self._seen(body, kind)
        known = children.get(at)
        if known is not None:
            new.settled = known.settled
        children[at] = new
        self._owners[new.uid] = owner
        return new

    def _seen(self, body: Mapping[str, Any], kind: str) -> Seen:
        meta = body["metadata"]
        return Seen(
            uid=meta["uid"],
            version=int(meta["resourceVersion"]),
            content=drift.pack({**body, "kind": kind}),
            owners=tuple(owner["uid"] for owner in meta.get("ownerReferences") or ()),
            deleting=meta.get("deletionTimestamp") is not None,
            facts=self._facts(kind, body),
        )

    def drop_missing(self, kind: str, namespace: str | None, there: set[str], version: int) -> set[Key]:
        """Forget children that a list of that version no longer has. Return their owners."""
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

    def of_kind(self, kind: str) -> Iterator[tuple[Key, CustomObject]]:
        for key, found in list(self.objects.items()):
            if key.kind == kind:
                yield key, found
