"""SMPRouter: one SMP address, any number of edges, one Redis."""

from __future__ import annotations

from weir_operator.kinds.definition import Definition, column
from weir_operator.kinds.routers import schema as parts
from weir_operator.kinds.routers.information import information
from weir_operator.kinds.routers.redis_schema import redis
from weir_operator.kube.schema import (
    Schema,
    choice,
    counter,
    duration,
    flag,
    group,
    integer,
    items,
    rule,
    text,
)


def _autoscaling() -> Schema:
    return parts.autoscaling(
        metric=choice(
            "CPU, or Subscriptions per edge: through KEDA or a custom-metrics adapter, whichever is installed.",
            "CPU",
            "Subscriptions",
            default="CPU",
        ),
        targetSubscriptions=integer("Target number of subscriptions per edge.", 1, 100_000_000, default=100_000),
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
        control=parts.control("weir smp ctl"),
        limits=group(
            "Limits of queues and clients.",
            **parts.limits(
                quota=integer("Messages a queue holds before senders get QUOTA.", 1, 100_000, default=128),
                messageTTL=duration("Messages expire after this time.", "21d"),
                notificationTTL=duration("Notifications that wait for a notifier expire after this time.", "1d"),
                inactiveQueueTTL=duration("Queues that are unused for this time are deleted; 0s: never.", "0s"),
            ),
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
        information=information(),
        redis=redis("queues and messages", prefix=None),
        exposure=parts.exposure(),
        resources=parts.resources("100m", "192Mi"),
        placement=parts.placement(),
        telemetry=parts.telemetry(),
        rollout=parts.rollout(),
        disruptionBudget=parts.disruption_budget(),
        networkPolicy=parts.network_policy(),
        maintenance=parts.maintenance(
            newQueues=flag("Off: existing queues work, and clients cannot create new ones.", True)
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
