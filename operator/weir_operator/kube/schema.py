"""Short functions that make OpenAPI schemas, so that a kind's schema reads as a list of its settings."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def text(doc: str, **more: Any) -> Schema:
    more.setdefault("maxLength", 1024)
    return {"type": "string", "description": doc, **more}


def choice(doc: str, *options: str, **more: Any) -> Schema:
    return {"type": "string", "description": doc, "enum": list(options), **more}


def integer(doc: str, low: int, high: int, **more: Any) -> Schema:
    return {"type": "integer", "format": "int32", "description": doc, "minimum": low, "maximum": high, **more}


def counter(doc: str) -> Schema:
    return {"type": "integer", "format": "int64", "description": doc}


def flag(doc: str, default: bool | None = None) -> Schema:
    schema: Schema = {"type": "boolean", "description": doc}
    if default is not None:
        schema["default"] = default
    return schema


def duration(doc: str, default: str) -> Schema:
    return text(doc, pattern=r"^[0-9]+(ms|s|m|h|d)$", maxLength=16, default=default)


def names(doc: str, **more: Any) -> Schema:
    """An object name of Kubernetes."""
    return text(doc, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", maxLength=253, minLength=1, **more)


def items(doc: str, of: Schema, most: int, kind: str = "atomic", **more: Any) -> Schema:
    return {
        "type": "array",
        "description": doc,
        "items": of,
        "maxItems": most,
        "x-kubernetes-list-type": kind,
        **more,
    }


def mapping(doc: str, most: int = 64, **more: Any) -> Schema:
    return {
        "type": "object",
        "description": doc,
        "additionalProperties": {"type": "string", "maxLength": 4096},
        "maxProperties": most,
        **more,
    }


def anything(doc: str, kind: str = "object") -> Schema:
    """A piece of Kubernetes' own types, passed through and checked by the API server when the child is applied."""
    schema: Schema = {"type": kind, "description": doc}
    if kind == "array":
        schema |= {"items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "maxItems": 64}
        schema["x-kubernetes-list-type"] = "atomic"
    else:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def group(
    doc: str, /, *rules: Schema, required: tuple[str, ...] = (), default: bool = True, **properties: Schema
) -> Schema:
    """An object. With `default`, the server fills it in with its own defaults when the user writes nothing."""
    schema: Schema = {"type": "object", "description": doc, "properties": properties}
    if required:
        schema["required"] = list(required)
    if default:
        # Written out in full, because the API server checks a default against the rules before it fills in the rest.
        schema["default"] = {name: part["default"] for name, part in properties.items() if "default" in part}
    if rules:
        schema["x-kubernetes-validations"] = list(rules)
    return schema


def rule(cel: str, message: str, field: str | None = None) -> Schema:
    """A CEL rule. `field` names the faulty field when that is not the object that carries the rule."""
    found: Schema = {"rule": cel, "message": message, "reason": "FieldValueInvalid"}
    if field is not None:
        found["fieldPath"] = field
    return found
