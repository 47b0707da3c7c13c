"""Kubernetes objects as values: manifests, kinds and their paths in the API, and custom objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Manifest = dict[str, Any]
ChildKey = tuple[str, str]  # kind, name


class Key(NamedTuple):
    """Names one custom object."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, and where the API server keeps its objects."""

    name: str
    api_version: str
    plural: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Path of one object, or of a list. Without a namespace the list covers all namespaces."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{where}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(frozen=True, slots=True)
class CustomObject:
    """An object of one of the operator's own kinds. Its spec has the schema's defaults filled in."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    spec: Mapping[str, Any]
    status: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    resource_version: str = ""
    deleting: bool = False
    just_read: bool = False  # read from an answer of the API server, not from a watch that may be behind


def custom_object(body: Mapping[str, Any], kind: str, spec: Mapping[str, Any]) -> CustomObject:
    """The object in `body`, with `spec` in place of the spec that the body has."""
    meta = body["metadata"]
    return CustomObject(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        spec=spec,
        status=body.get("status") or {},
        annotations=meta.get("annotations") or {},
        finalizers=tuple(meta.get("finalizers") or ()),
        resource_version=meta.get("resourceVersion", ""),
        deleting=meta.get("deletionTimestamp") is not None,
    )
