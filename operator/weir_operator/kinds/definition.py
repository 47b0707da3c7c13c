"""The declaration of a kind, and the CustomResourceDefinition that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weir_operator.kinds import names
from weir_operator.kube.schema import Schema, rule

READY = '.status.conditions[?(@.type=="Ready")]'

NAME_RULE = rule(
    "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "metadata.name must be a DNS label of at most 40 characters that starts with a letter: children are named after it",
)

Column = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Definition:
    """One kind: names, schemas and the columns of `kubectl get`."""

    kind: str
    short_name: str
    description: str
    spec: Callable[[], Schema]
    status: Callable[[], Schema]
    columns: tuple[Column, ...]
    scalable: bool  # `kubectl scale` works


def column(name: str, path: str, kind: str = "string", wide: bool = False) -> Column:
    """A column of `kubectl get`, with `wide` only of `kubectl get -o wide`."""
    return {"name": name, "type": kind, "jsonPath": path} | ({"priority": 1} if wide else {})


def crd(definition: Definition) -> dict[str, Any]:
    plural = names.PLURALS[definition.kind]
    root: Schema = {
        "type": "object",
        "description": definition.description,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": definition.spec(),
            "status": definition.status(),
        },
        "required": ["spec"],
        "x-kubernetes-validations": [NAME_RULE],
    }
    subresources: dict[str, Any] = {"status": {}}
    if definition.scalable:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{names.GROUP}", "labels": {"app.kubernetes.io/name": "weir"}},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": definition.kind,
                "listKind": definition.kind + "List",
                "plural": plural,
                "singular": definition.kind.lower(),
                "shortNames": [definition.short_name],
                "categories": ["weir"],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                    "subresources": subresources,
                    "additionalPrinterColumns": list(definition.columns),
                }
            ],
        },
    }
