"""Compare a child with its desired state.

`covers` tells whether a child needs to be applied. `replacement` is the whole object to write when server-side apply
cannot remove what somebody added: apply merges lists, so a foreign container or port would stay in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from weir_operator.kube.objects import Manifest

# Annotations that Kubernetes itself writes into children.
_FOREIGN_ANNOTATIONS = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/", "autoscaling.alpha.kubernetes.io/")
_SERVER_META = frozenset(
    (
        "managedFields",
        "resourceVersion",
        "uid",
        "generation",
        "creationTimestamp",
        "selfLink",
        "finalizers",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
    )
)


def content(body: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an object that clients write: no status, no metadata of the server, and secret data as digests."""
    found = {key: value for key, value in body.items() if key not in ("status", "metadata", "apiVersion")}
    meta = {key: value for key, value in body["metadata"].items() if key not in _SERVER_META}
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if not k.startswith(_FOREIGN_ANNOTATIONS)}
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    found["metadata"] = meta
    if body.get("kind") == "Secret" and body.get("data"):
        found["data"] = {key: sha256(str(value).encode()).hexdigest() for key, value in body["data"].items()}
    return found


def pack(body: Mapping[str, Any]) -> bytes:
    return json.dumps(content(body), sort_keys=True, separators=(",", ":")).encode()


def unpack(packed: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(packed)
    return found


def digest(body: Mapping[str, Any]) -> str:
    return sha256(pack(body)).hexdigest()


def covers(observed: Any, desired: Any) -> bool:
    """Whether everything desired is there. Maps may hold more, such as defaults of the server. Lists may not."""
    if isinstance(desired, Mapping):
        if not isinstance(observed, Mapping):
            return not desired and observed is None
        return all(covers(observed.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        if observed is None:
            return not desired
        if not isinstance(observed, list) or len(observed) != len(desired):
            return False
        return all(covers(one, other) for one, other in zip(observed, desired, strict=True))
    if desired is None:
        return observed is None
    return bool(observed == desired)


def enforced(desired: Any, live: Any) -> Any:
    """`live` with everything desired in it, and with no list longer than desired."""
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        return {
            key: enforced(desired[key], live[key])
            if key in desired and key in live
            else desired.get(key, live.get(key))
            for key in [*live, *(key for key in desired if key not in live)]
        }
    if isinstance(desired, list) and isinstance(live, list):
        return [_item(one, place, live) for place, one in enumerate(desired)]
    return desired


def _item(desired: Any, place: int, live: list[Any]) -> Any:
    """A list's item with the defaults of its live counterpart. That is the item of the same name, or else the item at
    the same place."""
    if not isinstance(desired, Mapping):
        return desired
    name = desired.get("name") or desired.get("uid")
    if name is not None:
        twins = [one for one in live if isinstance(one, Mapping) and name in (one.get("name"), one.get("uid"))]
    else:
        twins = live[place : place + 1]
    return enforced(desired, twins[0]) if twins else dict(desired)


def replacement(desired: Manifest, live: Manifest) -> Manifest:
    """The whole object to write in place of `live`. Its resourceVersion makes a write in between a conflict."""
    made: Manifest = enforced(desired, live)
    made.pop("status", None)
    return made
