"""NTFRouter: the notification router's Deployment."""

from __future__ import annotations

from weir_operator.kinds.definition import Definition
from weir_operator.kinds.routers import schema as parts
from weir_operator.kube.schema import Schema, choice, flag, group, integer, names, text


def spec() -> Schema:
    return group(
        "The desired state of the notification router.",
        **parts.image(),
        hosts=parts.hosts(),
        ports=group(
            "Ports of the Service.",
            ntf=integer("Port of the Service; part of the address when it is not 443.", 1, 65535, default=443),
            public=parts.public_port(),
            http=integer("Port of health and metrics.", 1, 65535, default=8000),
        ),
        replicas=integer("Pods to run.", 0, 100, default=1),
        identity=parts.identity(),
        certificate=parts.certificate(),
        redis=parts.redis(),
        push=group(
            "Push providers.",
            apns=group(
                "Apple's push notification service.",
                default=False,
                required=("secretName", "keyId", "teamId"),
                secretName=names("A Secret with the signing key, authkey.p8."),
                keyId=text("Id of the key.", pattern="^[A-Z0-9]{10}$", maxLength=10),
                teamId=text("Id of the team.", pattern="^[A-Z0-9]{10}$", maxLength=10),
                environment=choice("Which of Apple's hosts.", "production", "sandbox", default="production"),
            ),
            fcm=group(
                "Firebase Cloud Messaging.",
                default=False,
                required=("secretName",),
                secretName=names("A Secret with the service account's key, service-account.json."),
            ),
        ),
        exposure=parts.exposure(),
        resources=parts.resources("50m", "128Mi"),
        placement=parts.placement(),
        telemetry=parts.telemetry(),
        rollout=group(
            "Replacement of pods: at most one is missing at a time.",
            gracePeriodSeconds=integer("Time a pod has to stop.", 1, 86_400, default=60),
        ),
        disruptionBudget=flag("Make a PodDisruptionBudget when there are two pods or more.", True),
        networkPolicy=parts.network_policy(),
        maintenance=group(
            "Switches for maintenance.",
            paused=flag("The operator changes no children; the status stays current.", False),
            edges=choice("Stopped: no pod runs.", "Running", "Stopped", default="Running"),
        ),
        **parts.pods(),
    )


def status() -> Schema:
    return {
        "type": "object",
        "description": "The observed state of the notification router.",
        "properties": parts.router_status(),
    }


DEFINITION = Definition(
    kind="NTFRouter",
    short_name="ntfr",
    description="An NTFRouter is one NTF address: pods that turn waiting messages into push notifications.",
    spec=spec,
    status=status,
    columns=(*parts.ROUTER_COLUMNS, parts.REASON_COLUMN, parts.AGE_COLUMN),
    scalable=True,
)
