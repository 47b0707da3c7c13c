"""Pods and containers as every router has them: identity, security, placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds.routers.model import Observed, Router

USER = 10001


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


def pod(router: Router, observed: Observed, **more: Any) -> dict[str, Any]:
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
    """Quantities as text. Users may write numbers, but the API server answers with text."""
    return {
        part: {name: str(quantity) for name, quantity in amounts.items()} for part, amounts in given.items() if amounts
    }
