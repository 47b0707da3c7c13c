"""SMPRouter: one SMP address, any number of edges, one Redis."""

from __future__ import annotations

from typing import Any

from weir_operator.kinds.definition import Definition, column
from weir_operator.kinds.routers import schema as parts
from weir_operator.kube.schema import (
    Schema,
    choice,
    counter,
    duration,
    flag,
    group,
    integer,
    items,
    names,
    rule,
    text,
)

_LINES = (
    ("sourceCode", "Link to the source code of this server (AGPL); needed with any other information."),
    ("usageConditions", "Link to the conditions of use."),
    ("conditionAmendments", "Link to amendments of the conditions."),
    ("operator", "Person or organisation that runs the server."),
    ("website", "Web site of the operator."),
    ("adminSimplex", "Administrator: SimpleX address."),
    ("adminEmail", "Administrator: e-mail."),
    ("adminPgp", "Administrator: link to a PGP key."),
    ("adminPgpFingerprint", "Administrator: fingerprint of the PGP key."),
    ("complaintsSimplex", "Complaints: SimpleX address."),
    ("complaintsEmail", "Complaints: e-mail."),
    ("complaintsPgp", "Complaints: link to a PGP key."),
    ("complaintsPgpFingerprint", "Complaints: fingerprint of the PGP key."),
    ("hosting", "Hosting provider."),
)
_COUNTRIES = (
    ("serverCountry", "Country of the server."),
    ("operatorCountry", "Country of the operator."),
    ("hostingCountry", "Country of the hosting provider."),
)


def _information() -> Schema:
    fields: dict[str, Any] = {name: text(doc) for name, doc in _LINES}
    fields |= {name: text(doc + " ISO 3166 code.", pattern="^[A-Z]{2}$", maxLength=2) for name, doc in _COUNTRIES}
    fields["hostingType"] = choice("Kind of hosting.", "virtual", "dedicated", "colocation", "owned")
    others = [name for name in fields if name != "sourceCode"]
    return group(
        "Information on the server page about the server and its operator.",
        rule(
            "has(self.sourceCode) || !(" + " || ".join(f"has(self.{name})" for name in others) + ")",
            "sourceCode is needed when any other information is given",
            ".sourceCode",
        ),
        **fields,
    )


def _autoscaling() -> Schema:
    return group(
        "The number of edges follows the load. `replicas` is then only the initial number.",
        rule("self.minReplicas <= self.maxReplicas", "minReplicas must not be more than maxReplicas", ".minReplicas"),
        default=False,
        required=("maxReplicas",),
        minReplicas=integer("Fewest edges.", 1, 1000, default=1),
        maxReplicas=integer("Most edges.", 1, 1000),
        metric=choice(
            "CPU, or Subscriptions per edge: through KEDA or a custom-metrics adapter, whichever is installed.",
            "CPU",
            "Subscriptions",
            default="CPU",
        ),
        targetCPUPercent=integer(
            "Target CPU use of an edge, in percent of the CPU that it requests.", 1, 1000, default=70
        ),
        targetSubscriptions=integer("Target number of subscriptions per edge.", 1, 100_000_000, default=100_000),
        scaleDownSeconds=integer("Seconds of lower load before edges are removed.", 0, 3600, default=300),
    )


def spec() -> Schema:
    return group(
        "The desired state of the router.",
        **parts.image(),
        hosts=parts.hosts(),
        ports=group(
            "Ports of the Service.",
            rule("self.smp != self.http", "smp and http must differ", ".http"),
            smp=integer("Port of the Service; part of the address when it is not 5223.", 1, 65535, default=5223),
            public=parts.public_port(),
            http=integer("Port of the server page, health and metrics.", 1, 65535, default=8000),
        ),
        replicas=integer("Edges to run.", 0, 1000, default=2),
        autoscaling=_autoscaling(),
        identity=parts.identity(),
        certificate=parts.certificate(),
        basicAuth=parts.secret_key("A Secret with the password that new queues and the proxy need.", "password"),
        control=group(
            "Passwords of the control port, for `weir smp ctl` in the pods. The port listens inside of each pod only."
            " Unset: there are no passwords, and the control port takes no commands.",
            default=False,
            secretName=names(
                "A Secret with the key admin-password and, for the user's role, user-password. Unset: the operator"
                " makes both once, in NAME-control."
            ),
        ),
        limits=group(
            "Limits of queues and clients.",
            quota=integer("Messages a queue holds before senders get QUOTA.", 1, 100_000, default=128),
            messageTTL=duration("Messages expire after this time.", "21d"),
            notificationTTL=duration("Notifications that wait for a notifier expire after this time.", "1d"),
            inactiveQueueTTL=duration("Queues that are unused for this time are deleted; 0s: never.", "0s"),
            idleClientTTL=duration("Clients without subscriptions are disconnected after this time.", "6h"),
            maxClients=integer("Most clients on one edge; 0: no limit.", 0, 10_000_000, default=0),
        ),
        proxy=group(
            "Forwarding of messages to other routers for clients that hide their address.",
            enabled=flag("Forward messages.", True),
            allowPrivateRelays=flag("Allow relays on private and cluster addresses.", False),
            ownDomains=items(
                "Domains of your own relays, which are counted separately.",
                text("A domain.", pattern=parts.HOST, maxLength=253),
                32,
            ),
        ),
        information=_information(),
        redis=parts.redis(),
        exposure=parts.exposure(),
        resources=parts.resources("100m", "192Mi"),
        placement=parts.placement(),
        telemetry=parts.telemetry(),
        rollout=group(
            "Replacement of edges: at most one is missing at a time.",
            drainRate=integer("Clients per second that a stopping edge disconnects.", 1, 1_000_000, default=500),
            gracePeriodSeconds=integer("Seconds that an edge has to drain.", 1, 86_400, default=60),
        ),
        disruptionBudget=flag("Make a PodDisruptionBudget (one edge at a time) for two edges or more.", True),
        networkPolicy=parts.network_policy(),
        maintenance=group(
            "Switches for maintenance.",
            paused=flag("The operator changes no children; the status stays current.", False),
            newQueues=flag("Off: existing queues work, and clients cannot create new ones.", True),
            edges=choice("Stopped: Redis runs without any edge.", "Running", "Stopped", default="Running"),
        ),
        **parts.pods(),
    )


def status() -> Schema:
    return {
        "type": "object",
        "description": "The observed state of the router.",
        "properties": parts.router_status()
        | {
            "connections": counter("Clients connected to all edges."),
            "queues": counter("Queues that exist."),
            "messages": counter("Messages that wait."),
            "observedAt": {
                "type": "string",
                "format": "date-time",
                "description": "Time of the last count of connections, queues and messages.",
            },
        },
    }


DEFINITION = Definition(
    kind="SMPRouter",
    short_name="smpr",
    description="An SMPRouter is one SMP address: edges that clients connect to, and the Redis behind them.",
    spec=spec,
    status=status,
    columns=(
        *parts.ROUTER_COLUMNS,
        column("Connections", ".status.connections", "integer"),
        column("Queues", ".status.queues", "integer"),
        parts.REASON_COLUMN,
        column("Durability", ".spec.redis.durability", wide=True),
        parts.AGE_COLUMN,
    ),
    scalable=True,
)
