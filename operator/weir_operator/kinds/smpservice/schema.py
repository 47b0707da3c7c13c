"""SMPService: an identity of a client service that a router knows."""

from __future__ import annotations

from weir_operator.kinds.definition import READY, Definition, column
from weir_operator.kinds.routers import schema as parts
from weir_operator.kinds.schema import conditions
from weir_operator.kube.schema import Schema, choice, counter, duration, group, items, names, rule, text

FINGERPRINT = r"^[A-Za-z0-9_-]{43}=?$"


def spec() -> Schema:
    return group(
        "Which service, and how it may identify itself.",
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
        role=choice("What the service does with queues.", "Messaging", "Notifier"),
        label=text("What the service is called, in lists (kubectl get smps).", maxLength=64),
        fingerprints=items(
            "Fingerprints (SHA-256, base64url) of the identity certificates it may present. List a second one to"
            " rotate: the service continues under it; remove the first when it is no longer used.",
            text("A fingerprint.", pattern=FINGERPRINT, maxLength=44),
            2,
            default=[],
        ),
        rotation=group(
            "How a second fingerprint takes over.",
            overlap=duration("How long the first one is accepted beside it; 0s: not at all.", "24h"),
        ),
        keyPair=group(
            "Ask the operator to make the identity; its fingerprint counts as the first in the list.",
            default=False,
            secretName=names("Secret the key pair is put into. Unset: NAME-service."),
            keyType=choice("Kind of key.", "Ed25519", "Ed448", default="Ed25519"),
            lifetimeDays=parts.certificate()["properties"]["lifetimeDays"] | {"default": 3650},
            whenDeleted=choice("What happens to it with the SMPService.", "Retain", "Delete", default="Retain"),
        ),
        whenDeleted=choice(
            "What happens to the service's associations with queues when the SMPService is deleted.",
            "Retain",
            "Forget",
            default="Retain",
        ),
    )


def status() -> Schema:
    return {
        "type": "object",
        "description": "What the router says about the service.",
        "properties": {
            "observedGeneration": counter("Generation of the spec this status speaks of."),
            "conditions": conditions(),
            "fingerprints": {
                "type": "array",
                "description": "Fingerprints the router accepts for the service.",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "atomic",
            },
            "secretName": {"type": "string", "description": "Secret with the key pair the operator made."},
            "queues": counter("Queues associated with the service."),
            "connected": {"type": "boolean", "description": "Whether it is connected and subscribed."},
            "edge": {"type": "string", "description": "Edge it is connected to."},
            "lastSubscribed": {"type": "string", "format": "date-time", "description": "When it last sent SUBS."},
            "drift": {
                "type": "string",
                "description": "What its last SUBS expected against what was there: ok, more, fewer or diff.",
            },
            "fold": {
                "type": "object",
                "description": "Messages that waited when it last subscribed.",
                "properties": {
                    "ready": counter("Queues with messages when it subscribed."),
                    "delivered": counter("Delivered of them."),
                    "left": counter("Still to be delivered."),
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
