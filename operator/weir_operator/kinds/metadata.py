"""Metadata that every child has: labels, owner reference, name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import names
from weir_operator.kube.objects import CustomObject, Manifest


def selector(owner: CustomObject, part: str) -> dict[str, str]:
    """Labels that select the pods of one part of a router."""
    return {
        "app.kubernetes.io/name": "weir",
        "app.kubernetes.io/instance": owner.name,
        "app.kubernetes.io/component": part,
    }


def labels(owner: CustomObject, part: str) -> dict[str, str]:
    return {
        **selector(owner, part),
        names.MANAGED_BY: names.MANAGER,
        names.OWNER_KIND: names.owner_label(owner.kind),
        names.name_label(owner.kind): owner.name,
    }


def owner_reference(owner: CustomObject) -> dict[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def child(
    owner: CustomObject,
    api_version: str,
    kind: str,
    name: str,
    part: str,
    *,
    owned: bool = True,
    annotations: Mapping[str, str] | None = None,
    **content: Any,
) -> Manifest:
    """A child. `owned`: Kubernetes deletes it together with its owner."""
    meta: dict[str, Any] = {"name": name, "namespace": owner.namespace, "labels": labels(owner, part)}
    if annotations:
        meta["annotations"] = dict(annotations)
    if owned:
        meta["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **content}
