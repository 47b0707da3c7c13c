"""Parts of a schema that all kinds have."""

from __future__ import annotations

from weir_operator.kube.schema import Schema, choice, counter, text


def conditions() -> Schema:
    return {
        "type": "array",
        "description": "What is true of the object, and why.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": text("What it is about.", maxLength=316),
                "status": choice("Whether it is so.", "True", "False", "Unknown"),
                "observedGeneration": counter("Generation of the spec it was found for.") | {"minimum": 0},
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When its status last changed.",
                },
                "reason": text("Why, in one word for programs.", maxLength=1024, minLength=1),
                "message": text("Why and what to do, for people.", maxLength=32768),
            },
        },
    }
