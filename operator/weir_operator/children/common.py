"""Metadata, labels and pod settings that every child has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator import names
from weir_operator.model import Manifest, Observed, Router

USER = 10001


def component(router: Router) -> str:
    return "edge" if router.smp else "ntf"


def selector(router: Router, part: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "weir",
        "app.kubernetes.io/instance": router.name,
        "app.kubernetes.io/component": part,
    }


def labels(router: Router, part: str) -> dict[str, str]:
    return {
        **selector(router, part),
        names.MANAGED_BY: names.MANAGER,
        names.OWNER_KIND: names.owner_label(router.kind),
        names.name_label(router.kind): router.name,
    }


def owner_reference(router: Router) -> dict[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": router.kind,
        "name": router.name,
        "uid": router.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def child(
    router: Router,
    api_version: str,
    kind: str,
    name: str,
    part: str,
    *,
    owned: bool = True,
    annotations: Mapping[str, str] | None = None,
    **content: Any,
) -> Manifest:
    meta: dict[str, Any] = {"name": name, "namespace": router.namespace, "labels": labels(router, part)}
    if annotations:
        meta["annotations"] = dict(annotations)
    if owned:
        meta["ownerReferences"] = [owner_reference(router)]
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **content}


def pod_security() -> dict[str, Any]:
    """The restricted Pod Security level, in full."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }


def container(router: Router, observed: Observed, name: str, command: list[str], **more: Any) -> dict[str, Any]:
    spec = router.spec
    made: dict[str, Any] = {
        "name": name,
        "image": spec.get("image") or observed.defaults.image,
        "command": command,
        "securityContext": container_security(),
        **more,
    }
    policy = spec.get("imagePullPolicy") or observed.defaults.pull_policy
    if policy:
        made["imagePullPolicy"] = policy
    return made


def pod(router: Router, observed: Observed, part: str, **more: Any) -> dict[str, Any]:
    """A pod's spec without containers: identity, security and placement."""
    placement = router.spec["placement"]
    spec: dict[str, Any] = {
        "serviceAccountName": router.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        **more,
    }
    secrets = router.spec.get("imagePullSecrets") or list(observed.defaults.pull_secrets)
    if secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in secrets]
    for key in ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName"):
        if placement.get(key):
            spec[key] = placement[key]
    return spec


def resources(given: Mapping[str, Any]) -> dict[str, Any]:
    """Quantities as the API server writes them back, as far as users write them otherwise."""
    return {
        part: {name: str(quantity) for name, quantity in amounts.items()} for part, amounts in given.items() if amounts
    }
