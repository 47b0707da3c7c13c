"""Parts of a schema that all kinds have."""

from __future__ import annotations

from weir_operator.kube.schema import Schema, choice, counter, text


def conditions() -> Schema:
    return {
        "type": "array",
        "description": "Conditions of the object.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": text("Type of the condition.", maxLength=316),
                "status": choice("Whether the condition is true.", "True", "False", "Unknown"),
                "observedGeneration": counter("Generation of the spec that the condition describes.") | {"minimum": 0},
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Time of the last change of the status.",
                },
                "reason": text("Reason in one word, for programs.", maxLength=1024, minLength=1),
                "message": text("Reason and remedy, for people.", maxLength=32768),
            },
        },
    }
