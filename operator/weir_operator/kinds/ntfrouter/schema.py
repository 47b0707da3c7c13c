"""NTFRouter: one NTF address, any number of edges, one Redis, and the push services that they send to."""

from __future__ import annotations

from weir_operator.kinds.definition import Definition, column
from weir_operator.kinds.routers import schema as parts
from weir_operator.kinds.routers.information import information
from weir_operator.kinds.routers.redis_schema import redis
from weir_operator.kube.schema import Schema, choice, counter, flag, group, integer, items, names, rule, text

_KEY_IN_SECRET = {"pattern": "^[-._a-zA-Z0-9]+$", "maxLength": 253, "minLength": 1}
_HOST_AND_PORT = r"^([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$"


def _apns() -> Schema:
    return group(
        "Apple's push notification service. It needs a key of your own team, and an app with your own bundle id: the"
        " vendor's app takes notifications from the vendor's router only.",
        default=False,
        required=("secretName", "keyId", "teamId", "topic"),
        secretName=names(
            "A Secret with the signing key that Apple gave you, a .p8 file. To change the key, add the new one under"
            " another name, then set key and keyId together."
        ),
        key=text("Name of the key's file in the Secret.", default="authkey.p8", **_KEY_IN_SECRET),
        keyId=text("Id of the key.", pattern="^[A-Z0-9]{10}$", maxLength=10),
        teamId=text("Id of the team.", pattern="^[A-Z0-9]{10}$", maxLength=10),
        topic=text("Bundle id of the app.", pattern="^[-.a-zA-Z0-9]+$", maxLength=255, minLength=1),
        environment=choice(
            "Tokens that are accepted: of released apps, of test builds, or both.",
            "both",
            "production",
            "sandbox",
            default="both",
        ),
        host=text(
            "Another host instead of Apple's, with its port if that is not 443: for tests.",
            pattern=_HOST_AND_PORT,
            maxLength=259,
        ),
        ca=parts.secret_key("A Secret with the CA of that host.", "ca.crt"),
    )


def _web_push() -> Schema:
    return group(
        "Web Push and UnifiedPush. They need no account.",
        enabled=flag("Send to Web Push services.", True),
        secretName=names(
            "A Secret with the VAPID key: PEM, a P-256 key, and below it older ones that devices may still use. Unset:"
            " the operator makes the key once, and keeps it in NAME-vapid."
        ),
        key=text("Name of the key's file in that Secret.", default="vapid.key", **_KEY_IN_SECRET),
        subject=text(
            "Contact for push services: mailto:you@example.org, or a link. Some push services need it.",
            pattern=r"^(mailto:[^\s]+@[^\s]+|https://[^\s]+)$",
            maxLength=512,
        ),
        allowPrivateEndpoints=flag("Send to push services on private and cluster addresses.", False),
        ca=parts.secret_key("A Secret with the CA of your own push service, trusted beside the public ones.", "ca.crt"),
    )


def _subscriber() -> Schema:
    return group(
        "Connections to the SMP routers of the devices' queues.",
        rule("has(self.socksProxy) || self.socksMode == 'Onion'", "socksMode Always needs socksProxy", ".socksProxy"),
        ownDomains=items(
            "Domains of your own SMP routers: the page, the metrics and alerts name them one by one.",
            text("A domain.", pattern=parts.HOST, maxLength=253),
            32,
        ),
        hostMode=choice("Hosts to prefer where an SMP router has both kinds.", "Public", "Onion", default="Public"),
        requireHostMode=flag("Refuse SMP routers without a host of the kind in hostMode.", False),
        socksProxy=text("host:port of a SOCKS5 proxy, such as Tor.", pattern=_HOST_AND_PORT, maxLength=259),
        socksMode=choice("Hosts that are reached through the proxy.", "Onion", "Always", default="Onion"),
        serviceCredentials=flag(
            "Subscribe to all queues of an SMP router with one command, where the SMP router can do so.", True
        ),
        allowPrivateServers=flag(
            "Connect to SMP routers on private and cluster addresses, such as one of this cluster.", False
        ),
    )


def spec() -> Schema:
    return group(
        "The desired state of the notification router.",
        **parts.image(),
        hosts=parts.hosts(),
        ports=group(
            "Ports of the Service.",
            rule("self.ntf != self.http", "ntf and http must differ", ".http"),
            ntf=integer("Port of the Service; part of the address when it is not 443.", 1, 65535, default=443),
            public=parts.public_port(),
            http=integer("Port of the server page, health and metrics.", 1, 65535, default=8000),
        ),
        replicas=integer("Edges to run.", 0, 1000, default=2),
        autoscaling=parts.autoscaling(),
        identity=parts.identity(),
        certificate=parts.certificate(),
        control=parts.control("weir ntf ctl"),
        limits=group("Limits of clients.", **parts.limits()),
        push=group(
            "Push services.",
            apns=_apns(),
            webPush=_web_push(),
            allowTest=flag("Accept tokens of the test provider. Off in production.", False),
        ),
        subscriber=_subscriber(),
        information=information(),
        redis=redis("tokens and subscriptions", prefix="ntf"),
        exposure=parts.exposure(),
        resources=parts.resources("100m", "192Mi"),
        placement=parts.placement(),
        telemetry=parts.telemetry(),
        rollout=parts.rollout(),
        disruptionBudget=parts.disruption_budget(),
        networkPolicy=parts.network_policy(),
        maintenance=parts.maintenance(),
        **parts.pods(),
    )


def status() -> Schema:
    return {
        "type": "object",
        "description": "The observed state of the notification router.",
        "properties": parts.router_status()
        | {
            "vapidKey": {
                "type": "string",
                "description": "Public key of Web Push, as in the query of the address.",
            },
            "storageCheck": {
                "type": "string",
                "description": "Digest of the storage key, which shows when another key is given for existing tokens.",
            },
            "connections": counter("Clients connected to all edges."),
            "tokens": counter("Tokens of devices."),
            "subscriptions": counter("Subscriptions of tokens to queues."),
            "servers": {
                "type": "object",
                "description": "SMP routers that have queues of the subscriptions.",
                "properties": {
                    "known": counter("SMP routers with subscriptions."),
                    "subscribed": counter("SMP routers to which this router is subscribed now."),
                    "summary": {"type": "string", "description": "subscribed/known."},
                },
            },
            "observedAt": {
                "type": "string",
                "format": "date-time",
                "description": "Time of the last count of connections, tokens, subscriptions and servers.",
            },
        },
    }


DEFINITION = Definition(
    kind="NTFRouter",
    short_name="ntfr",
    description="An NTFRouter is one NTF address: edges that turn waiting messages into push notifications, and the"
    " Redis behind them.",
    spec=spec,
    status=status,
    columns=(
        *parts.ROUTER_COLUMNS,
        column("Servers", ".status.servers.summary"),
        column("Tokens", ".status.tokens", "integer"),
        parts.REASON_COLUMN,
        column("Subscriptions", ".status.subscriptions", "integer", wide=True),
        parts.AGE_COLUMN,
    ),
    scalable=True,
)
