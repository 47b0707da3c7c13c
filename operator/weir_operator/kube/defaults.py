"""Fill in the defaults of a schema as the API server does it.

An object may have been stored before its schema had a default, and specs in tests never went through a server.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from weir_operator.kube.schema import Schema


def with_defaults(schema: Schema, value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `value` with every default of the schema filled in, top down."""
    filled: dict[str, Any] = dict(copy.deepcopy(value))
    _fill(schema, filled)
    return filled


def _fill(schema: Schema, value: Any) -> None:
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name not in value and "default" in part:
                value[name] = copy.deepcopy(part["default"])
            if name in value:
                _fill(part, value[name])
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            _fill(schema["items"], item)
