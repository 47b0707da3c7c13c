"""All kinds, by name: their definitions, and what is common to those that are routers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import ntfrouter, smprouter
from weir_operator.kinds.definition import Definition
from weir_operator.kinds.ntfrouter.schema import DEFINITION as NTF_ROUTER
from weir_operator.kinds.routers.model import RouterKind
from weir_operator.kinds.smprouter.schema import DEFINITION as SMP_ROUTER
from weir_operator.kinds.smpservice.schema import DEFINITION as SMP_SERVICE
from weir_operator.kube.defaults import with_defaults
from weir_operator.kube.objects import CustomObject, custom_object
from weir_operator.kube.schema import Schema

DEFINITIONS: Mapping[str, Definition] = {one.kind: one for one in (SMP_ROUTER, NTF_ROUTER, SMP_SERVICE)}
ROUTER_KINDS: Mapping[str, RouterKind] = {one.name: one for one in (smprouter.KIND, ntfrouter.KIND)}

_SPECS: Mapping[str, Schema] = {kind: definition.spec() for kind, definition in DEFINITIONS.items()}


def read(body: Mapping[str, Any], kind: str) -> CustomObject:
    """An object with its defaults: it may have been stored before its schema had them."""
    return custom_object(body, kind, with_defaults(_SPECS[kind], body.get("spec") or {}))
