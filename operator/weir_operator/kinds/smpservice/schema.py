"""SMPService: an identity of a client service that a router knows."""

from __future__ import annotations

from weir_operator.kinds.definition import READY, Definition, column
from weir_operator.kinds.routers import schema as parts
from weir_operator.kinds.schema import conditions
from weir_operator.kube.schema import Schema, choice, counter, duration, group, items, names, rule, text

FINGERPRINT = r"^[A-Za-z0-9_-]{43}=?$"


def spec() -> Schema:
    return group(
        "The service, and the certificates with which it may identify itself.",
        rule(
            "size(self.fingerprints) > 0 || has(self.keyPair)",
            "fingerprints must name at least one certificate, or keyPair must ask for one",
            ".fingerprints",
        ),
        rule("self.router == oldSelf.router", "router cannot be changed", ".router"),
        rule("self.role == oldSelf.role", "role cannot be changed: a router refuses a service in another one", ".role"),
        required=("router", "role"),
        default=False,
        router=names("SMPRouter in the same namespace."),
        role=choice("Role of the service: it receives messages, or notifications.", "Messaging", "Notifier"),
        label=text("Name of the service in lists (kubectl get smps) and in rollups.", maxLength=64),
        fingerprints=items(
            "Fingerprints (SHA-256, base64url) of the identity certificates that the service may present. List a second"
            " one to rotate: the service continues under the second. Remove the first when it is no longer used.",
            text("A fingerprint.", pattern=FINGERPRINT, maxLength=44),
            2,
            default=[],
        ),
        rotation=group(
            "Rotation to a second fingerprint.",
            overlap=duration("Time for which the first fingerprint is still accepted; 0s: not at all.", "24h"),
        ),
        keyPair=group(
            "The operator makes the identity. Its fingerprint counts as the first in the list.",
            default=False,
            secretName=names("Secret for the key pair. Unset: NAME-service."),
            keyType=choice("Kind of key.", "Ed25519", "Ed448", default="Ed25519"),
            lifetimeDays=parts.certificate()["properties"]["lifetimeDays"] | {"default": 3650},
            whenDeleted=choice(
                "Whether the Secret is kept when the SMPService is deleted.", "Retain", "Delete", default="Retain"
            ),
        ),
        whenDeleted=choice(
            "Whether queues stay associated with the service when the SMPService is deleted.",
            "Retain",
            "Forget",
            default="Retain",
        ),
    )


def status() -> Schema:
    return {
        "type": "object",
        "description": "The observed state of the service.",
        "properties": {
            "observedGeneration": counter("Generation of the spec that this status describes."),
            "conditions": conditions(),
            "fingerprints": {
                "type": "array",
                "description": "Fingerprints that the router accepts for the service.",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "atomic",
            },
            "secretName": {"type": "string", "description": "Secret with the key pair that the operator made."},
            "queues": counter("Queues associated with the service."),
            "connected": {"type": "boolean", "description": "Whether the service is connected and subscribed."},
            "edge": {"type": "string", "description": "Edge that the service is connected to."},
            "lastSubscribed": {"type": "string", "format": "date-time", "description": "Time of the last SUBS."},
            "drift": {
                "type": "string",
                "description": "Queues here against those that the last SUBS expected: ok, more, fewer or diff.",
            },
            "fold": {
                "type": "object",
                "description": "Delivery of the messages that waited at the last SUBS.",
                "properties": {
                    "ready": counter("Queues that had messages at the last SUBS."),
                    "delivered": counter("Messages delivered so far."),
                    "left": counter("Messages still to be delivered."),
                },
            },
        },
    }


DEFINITION = Definition(
    kind="SMPService",
    short_name="smps",
    description="An SMPService is a client service that an SMPRouter knows by its certificates.",
    spec=spec,
    status=status,
    columns=(
        column("Ready", READY + ".status"),
        column("Label", ".spec.label"),
        column("Router", ".spec.router"),
        column("Role", ".spec.role"),
        column("Queues", ".status.queues", "integer"),
        column("Connected", ".status.connected", "boolean"),
        column("Drift", ".status.drift", wide=True),
        column("Last SUBS", ".status.lastSubscribed", "date", wide=True),
        parts.AGE_COLUMN,
    ),
    scalable=False,
)
