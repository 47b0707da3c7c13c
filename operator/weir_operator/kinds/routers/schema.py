"""The parts of a spec and of a status that all kinds of routers have."""

from __future__ import annotations

from typing import Any

from weir_operator.kinds.definition import READY, column
from weir_operator.kinds.schema import conditions
from weir_operator.kube.schema import (
    Schema,
    anything,
    choice,
    counter,
    duration,
    flag,
    group,
    integer,
    items,
    mapping,
    names,
    rule,
    text,
)

QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"
HOST = r"^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$|^[0-9a-fA-F:]+$"

ROUTER_COLUMNS = (
    column("Ready", READY + ".status"),
    column("Edges", ".status.edges.summary"),
    column("Address", ".status.address"),
    column("Certificate", ".status.certificate.daysLeft", "integer"),
)
REASON_COLUMN = column("Reason", READY + ".reason", wide=True)
AGE_COLUMN = column("Age", ".metadata.creationTimestamp", "date")


def image() -> dict[str, Any]:
    return {
        "image": text(
            "Image of the pods. Unset: the operator's default, so that an upgrade of the operator upgrades the pods.",
            maxLength=512,
            minLength=1,
        ),
        "imagePullPolicy": choice("Pull policy of the image.", "Always", "IfNotPresent", "Never"),
        "imagePullSecrets": items("Secrets with registry credentials.", names("Name of a Secret."), 8),
    }


def hosts() -> Schema:
    return items(
        "Host names or addresses of the router, in the order in which they appear in its address."
        " Empty: the load balancer's address, or the name of the Service inside the cluster.",
        text("A DNS name, an onion name or an IP address.", pattern=HOST, maxLength=253, minLength=1),
        8,
        "set",
    )


def public_port() -> Schema:
    return integer(
        "Port in the address. Unset: the Service's port; with hosts and NodePort the node port, with hosts and HostPort"
        " the host port.",
        1,
        65535,
    )


def identity() -> Schema:
    return group(
        "The router's identity: the CA whose fingerprint is in its address.",
        secretName=names(
            "A Secret with ca.crt and ca.key, or with ca.crt, server.crt and server.key when the CA's key is kept"
            " elsewhere. Unset: the operator makes the identity once, and keeps it in NAME-identity."
        ),
        keyType=choice(
            "Kind of keys that the operator makes. Clients with Go's crypto/tls or rustls cannot connect to Ed448.",
            "Ed25519",
            "Ed448",
            default="Ed25519",
        ),
        whenDeleted=choice(
            "Whether an identity that the operator made is kept when the router is deleted. Without the identity"
            " the address is lost, and clients cannot be told of another.",
            "Retain",
            "Delete",
            default="Retain",
        ),
    )


def certificate() -> Schema:
    return group(
        "The online certificate that the edges present, signed by the identity's CA.",
        rule(
            "self.renewBeforeDays < self.lifetimeDays",
            "renewBeforeDays must be less than lifetimeDays",
            ".renewBeforeDays",
        ),
        lifetimeDays=integer("Days for which a new online certificate is valid.", 1, 3650, default=90),
        renewBeforeDays=integer("Days before its expiry at which the certificate is renewed.", 0, 3649, default=30),
    )


def secret_key(doc: str, key: str) -> Schema:
    return group(
        doc,
        required=("name",),
        default=False,
        name=names("Name of the Secret."),
        key=text("Key in the Secret.", default=key, maxLength=253, minLength=1),
    )


def exposure(*extra: Schema) -> Schema:
    return group(
        "The way of clients to the router. TLS always passes through to the edges.",
        rule(
            "!has(self.nodePort) || self.type in ['NodePort', 'LoadBalancer']",
            "nodePort needs type NodePort or LoadBalancer",
            ".nodePort",
        ),
        rule("!has(self.hostPort) || self.type == 'HostPort'", "hostPort needs type HostPort", ".hostPort"),
        rule(
            "!has(self.loadBalancerSourceRanges) || self.type == 'LoadBalancer'",
            "loadBalancerSourceRanges needs type LoadBalancer",
            ".loadBalancerSourceRanges",
        ),
        rule(
            "!has(self.loadBalancerClass) || self.type == 'LoadBalancer'",
            "loadBalancerClass needs type LoadBalancer",
            ".loadBalancerClass",
        ),
        rule(
            "!has(self.externalTrafficPolicy) || self.type in ['NodePort', 'LoadBalancer']",
            "externalTrafficPolicy needs type NodePort or LoadBalancer",
            ".externalTrafficPolicy",
        ),
        *extra,
        type=choice(
            "ClusterIP, LoadBalancer, NodePort, or HostPort (one edge per node, which no restricted namespace allows).",
            "ClusterIP",
            "LoadBalancer",
            "NodePort",
            "HostPort",
            default="ClusterIP",
        ),
        annotations=mapping("Annotations of the Service, e.g. for its load balancer."),
        nodePort=integer("Port on every node; unset: the cluster chooses.", 1, 65535),
        hostPort=integer("Port on the nodes that run an edge; unset: the port of the Service.", 1, 65535),
        loadBalancerClass=text("Class of the load balancer.", maxLength=253, minLength=1),
        loadBalancerSourceRanges=items(
            "Networks that may connect.", text("A CIDR.", pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$", maxLength=64), 64
        ),
        externalTrafficPolicy=choice(
            "Local: an edge gets the connections that arrive at its own node, with the clients' addresses.",
            "Cluster",
            "Local",
        ),
    )


def autoscaling(**more: Any) -> Schema:
    """`more` are settings of kinds that can scale by something else than CPU."""
    return group(
        "The number of edges follows the load. `replicas` is then only the initial number.",
        rule("self.minReplicas <= self.maxReplicas", "minReplicas must not be more than maxReplicas", ".minReplicas"),
        default=False,
        required=("maxReplicas",),
        minReplicas=integer("Fewest edges.", 1, 1000, default=1),
        maxReplicas=integer("Most edges.", 1, 1000),
        targetCPUPercent=integer(
            "Target CPU use of an edge, in percent of the CPU that it requests.", 1, 1000, default=70
        ),
        scaleDownSeconds=integer("Seconds of lower load before edges are removed.", 0, 3600, default=300),
        **more,
    )


def control(command: str) -> Schema:
    return group(
        f"Passwords of the control port, for `{command}` in the pods. The port listens inside of each pod only. Unset:"
        " there are no passwords, and the control port takes no commands.",
        default=False,
        secretName=names(
            "A Secret with the key admin-password and, for the user's role, user-password. Unset: the operator makes"
            " both once, in NAME-control."
        ),
    )


def limits(**more: Schema) -> dict[str, Any]:
    return more | {
        "idleClientTTL": duration("Clients without subscriptions are disconnected after this time.", "6h"),
        "maxClients": integer("Most clients on one edge; 0: no limit.", 0, 10_000_000, default=0),
    }


def rollout() -> Schema:
    return group(
        "Replacement of edges: at most one is missing at a time.",
        drainRate=integer("Clients per second that a stopping edge disconnects.", 1, 1_000_000, default=500),
        gracePeriodSeconds=integer("Seconds that an edge has to drain.", 1, 86_400, default=60),
    )


def disruption_budget() -> Schema:
    return flag("Make a PodDisruptionBudget (one edge at a time) for two edges or more.", True)


def maintenance(**more: Any) -> Schema:
    return group(
        "Switches for maintenance.",
        paused=flag("The operator changes no children; the status stays current.", False),
        edges=choice("Stopped: Redis runs without any edge.", "Running", "Stopped", default="Running"),
        **more,
    )


def resources(cpu: str, memory: str) -> Schema:
    def quantities(doc: str) -> Schema:
        return {
            "type": "object",
            "description": doc,
            "additionalProperties": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
                "pattern": QUANTITY,
            },
            "maxProperties": 8,
        }

    requests = quantities("CPU and memory that a pod requests.") | {"default": {"cpu": cpu, "memory": memory}}
    return group(
        "CPU and memory of a pod.", requests=requests, limits=quantities("The most CPU and memory that a pod may use.")
    )


def placement() -> Schema:
    return group(
        "Placement of the pods on nodes.",
        nodeSelector=mapping("Labels that a node must have."),
        tolerations=anything("Tolerations of the pods.", "array"),
        affinity=anything("Affinity of the pods. Unset: the pods prefer different nodes."),
        topologySpreadConstraints=anything("Spread of the pods over zones and nodes.", "array"),
        priorityClassName=names("PriorityClass of the pods."),
    )


def telemetry() -> Schema:
    return group(
        "Logs, traces and metrics. They carry no id, key or client's address.",
        logLevel=choice("Lowest severity that is logged.", "debug", "info", "warning", "error", default="info"),
        logFormat=choice("Format of log lines.", "text", "json", default="json"),
        traces=group(
            "OpenTelemetry traces.",
            default=False,
            required=("endpoint",),
            endpoint=text("OTLP/HTTP collector.", pattern=r"^(zipkin\+)?https?://[^\s]+$"),
            sampleRatio={
                "type": "number",
                "description": "Fraction of commands that are traced.",
                "minimum": 0,
                "maximum": 1,
                "default": 0.01,
            },
            sessions=choice("Sessions of which every command is traced.", "off", "services", "all", default="off"),
        ),
        serviceMonitor=group(
            "A ServiceMonitor for the Prometheus operator, where its CRD is installed.",
            enabled=flag("Make a ServiceMonitor.", True),
            interval=duration("Interval between two scrapes.", "30s"),
            labels=mapping("Labels by which Prometheus selects the ServiceMonitor."),
        ),
    )


def pods() -> dict[str, Any]:
    return {
        "podLabels": mapping("Further labels of the pods."),
        "podAnnotations": mapping("Further annotations of the pods."),
    }


def network_policy() -> Schema:
    return group(
        "NetworkPolicies: clients from anywhere, metrics and page from where they are allowed, Redis from edges only.",
        enabled=flag("Make NetworkPolicies.", True),
        httpFrom=anything(
            "Peers (NetworkPolicyPeer) that may reach the page and metrics. Unset: the namespace.", "array"
        ),
        egress=anything(
            "Rules (NetworkPolicyEgressRule) for calls of edges, beside those to name servers and the embedded Redis."
            " Unset: edges may call everything.",
            "array",
        ),
    )


def router_status() -> dict[str, Schema]:
    return {
        "observedGeneration": counter("Generation of the spec that this status describes."),
        "conditions": conditions(),
        "address": {"type": "string", "description": "The address as clients must enter it, without a password."},
        "fingerprint": {"type": "string", "description": "Fingerprint of the identity's CA certificate."},
        "certificate": {
            "type": "object",
            "description": "The online certificate.",
            "properties": {
                "notAfter": {"type": "string", "format": "date-time", "description": "Time of expiry."},
                "daysLeft": counter("Whole days until the certificate expires."),
            },
        },
        "edges": {
            "type": "object",
            "description": "Edges of the router.",
            "properties": {
                "desired": counter("Edges that should run."),
                "ready": counter("Edges that accept clients."),
                "updated": counter("Edges that run the current pod template."),
                "summary": {"type": "string", "description": "ready/desired."},
            },
        },
        "replicas": counter("Edges that exist, for the scale subresource."),
        "selector": {"type": "string", "description": "Selector of the edges' pods, for the scale subresource."},
        "placementCheck": {
            "type": "string",
            "description": "Digest of the placement key, which shows when another key is given for existing queues.",
        },
    }
