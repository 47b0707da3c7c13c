"""The three CustomResourceDefinitions, put together."""

from __future__ import annotations

from typing import Any

from weir_operator import names
from weir_operator.schema import ntfrouter, parts, smprouter, smpservice
from weir_operator.schema.types import Schema

_READY = '.status.conditions[?(@.type=="Ready")]'
_SPECS = {
    names.SMP_ROUTER: smprouter.spec,
    names.NTF_ROUTER: ntfrouter.spec,
    names.SMP_SERVICE: smpservice.spec,
}
_STATUSES = {
    names.SMP_ROUTER: smprouter.status,
    names.NTF_ROUTER: ntfrouter.status,
    names.SMP_SERVICE: smpservice.status,
}
_ABOUT = {
    names.SMP_ROUTER: "An SMPRouter is one SMP address: edges that clients connect to, and the Redis behind them.",
    names.NTF_ROUTER: "An NTFRouter is one NTF address: pods that turn waiting messages into push notifications.",
    names.SMP_SERVICE: "An SMPService is a client service that an SMPRouter knows by its certificates.",
}
_SHORT = {names.SMP_ROUTER: "smpr", names.NTF_ROUTER: "ntfr", names.SMP_SERVICE: "smps"}


def _column(name: str, path: str, kind: str = "string", wide: bool = False) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path} | ({"priority": 1} if wide else {})


_ROUTER_COLUMNS = (
    _column("Ready", _READY + ".status"),
    _column("Edges", ".status.edges.summary"),
    _column("Address", ".status.address"),
    _column("Certificate", ".status.certificate.daysLeft", "integer"),
)
_COLUMNS = {
    names.SMP_ROUTER: (
        *_ROUTER_COLUMNS,
        _column("Connections", ".status.connections", "integer"),
        _column("Queues", ".status.queues", "integer"),
        _column("Reason", _READY + ".reason", wide=True),
        _column("Durability", ".spec.redis.durability", wide=True),
        _column("Age", ".metadata.creationTimestamp", "date"),
    ),
    names.NTF_ROUTER: (
        *_ROUTER_COLUMNS,
        _column("Reason", _READY + ".reason", wide=True),
        _column("Age", ".metadata.creationTimestamp", "date"),
    ),
    names.SMP_SERVICE: (
        _column("Ready", _READY + ".status"),
        _column("Label", ".spec.label"),
        _column("Router", ".spec.router"),
        _column("Role", ".spec.role"),
        _column("Queues", ".status.queues", "integer"),
        _column("Connected", ".status.connected", "boolean"),
        _column("Drift", ".status.drift", wide=True),
        _column("Last SUBS", ".status.lastSubscribed", "date", wide=True),
        _column("Age", ".metadata.creationTimestamp", "date"),
    ),
}


def spec_schema(kind: str) -> Schema:
    return _SPECS[kind]()


def crd(kind: str) -> dict[str, Any]:
    plural = names.PLURALS[kind]
    spec = spec_schema(kind)
    root: Schema = {
        "type": "object",
        "description": _ABOUT[kind],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": _STATUSES[kind](),
        },
        "required": ["spec"],
        "x-kubernetes-validations": [parts.NAME_RULE],
    }
    subresources: dict[str, Any] = {"status": {}}
    if kind != names.SMP_SERVICE:
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
                "kind": kind,
                "listKind": kind + "List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [_SHORT[kind]],
                "categories": ["weir"],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                    "subresources": subresources,
                    "additionalPrinterColumns": list(_COLUMNS[kind]),
                }
            ],
        },
    }


CRDS = tuple(_SPECS)
