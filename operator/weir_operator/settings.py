"""The options of `weir operator`, each with its environment variable."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weir.config import kinds
from weir.config.options import Parser, of_kind, port, seconds, whole
from weir_operator.kinds.routers.model import Defaults

_IN_CLUSTER_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


_LEVEL = of_kind(kinds.choice("debug", "info", "warning", "error"))


@dataclass(frozen=True, slots=True)
class Settings:
    namespaces: tuple[str, ...] = ()  # to watch; none means all
    own_namespace: str = "default"  # of the Lease, and of the operator's pods in NetworkPolicies
    identity: str = "operator"  # of this replica, in the Lease
    defaults: Defaults = field(default_factory=Defaults)
    http_port: int = 8080
    http_listen: str = "0.0.0.0"
    log_level: str = "info"
    workers: int = 8
    observe_seconds: float = 30.0
    lease_seconds: float = 15.0


def parse(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> Settings:
    env = os.environ if environ is None else environ

    def default(name: str, other: str = "") -> str:
        return env.get("WEIR_OPERATOR_" + name, "") or other

    p = Parser(
        prog="weir operator",
        description="Runs the Kubernetes operator: watches SMPRouter, NTFRouter and SMPService objects."
        " Any number of replicas may run; the one that holds the Lease works.",
        epilog="Each option has an environment variable: --image is WEIR_OPERATOR_IMAGE.\n\n"
        "examples:\n"
        "  weir operator                              in a cluster, for all namespaces\n"
        "  weir operator --namespaces chat,staging    with KUBECONFIG, from your own machine",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def option(name: str, text: str, other: str = "", **more: Any) -> None:
        p.add_argument(f"--{name}", default=default(name.upper().replace("-", "_"), other), help=text, **more)

    option("namespaces", "namespaces to watch (all)", metavar="A,B")
    option("namespace", "namespace of the Lease and of the operator's pods (the operator's own)", metavar="NS")
    option("pod", "name of this replica (the host's name)", metavar="NAME")
    option("image", "image of the routers' pods (weir:dev)", "weir:dev", metavar="IMAGE")
    option("image-pull-policy", "pull policy of that image", metavar="POLICY")
    option("image-pull-secrets", "pull secrets of that image", metavar="A,B")
    option("http-port", "port of health and metrics (8080)", "8080", type=port)
    option("http-listen", "address that health and metrics listen on (0.0.0.0)", "0.0.0.0")
    level = env.get("WEIR_LOG_LEVEL") or "info"
    p.add_argument("--log-level", type=_LEVEL, default=level, help="debug, info, warning or error")
    option("workers", "objects that are reconciled at the same time (8)", "8", type=whole(1, 1000))
    option("observe-seconds", "seconds between two probes of a router's Redis (30)", "30", type=seconds(1))
    lease = "seconds after which another replica replaces one that does not renew its Lease (15)"
    option("lease-seconds", lease, "15", type=seconds(1))
    options = p.parse_args(list(argv))
    return Settings(
        namespaces=_list(options.namespaces),
        own_namespace=options.namespace or _pod_namespace(),
        # Two processes on one host are two replicas, also when one is started after the other.
        identity=f"{options.pod or socket.gethostname()}_{secrets.token_hex(4)}",
        defaults=Defaults(
            image=options.image,
            pull_policy=options.image_pull_policy or None,
            pull_secrets=_list(options.image_pull_secrets),
        ),
        http_port=options.http_port,
        http_listen=options.http_listen,
        log_level=options.log_level,
        workers=options.workers,
        observe_seconds=options.observe_seconds,
        lease_seconds=options.lease_seconds,
    )


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pod_namespace() -> str:
    try:
        with open(_IN_CLUSTER_NAMESPACE, encoding="utf-8") as file:
            return file.read().strip() or "default"
    except OSError:
        return "default"
