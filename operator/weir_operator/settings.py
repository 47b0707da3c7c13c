"""How the operator itself runs: options of `weir operator`, each with its environment variable."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir_operator.model import Defaults

_IN_CLUSTER_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


@dataclass(frozen=True, slots=True)
class Settings:
    namespaces: tuple[str, ...] = ()  # watched; none: all
    own_namespace: str = "default"  # of the Lease
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

    p = argparse.ArgumentParser(
        prog="weir operator",
        description="Runs the Kubernetes operator: watches SMPRouter, NTFRouter and SMPService objects."
        " Any number of replicas may run; the one that holds the Lease works.",
        epilog="Each option has an environment variable: --image is WEIR_OPERATOR_IMAGE.\n\n"
        "examples:\n"
        "  weir operator                              in a cluster, for all namespaces\n"
        "  weir operator --namespaces chat,staging    with KUBECONFIG, from your own machine",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--namespaces", default=default("NAMESPACES"), metavar="A,B", help="watch only these (all)")
    p.add_argument("--namespace", default=default("NAMESPACE"), metavar="NS", help="where its Lease is (its own)")
    p.add_argument("--pod", default=default("POD"), metavar="NAME", help="name of this replica (the host's)")
    p.add_argument("--image", default=default("IMAGE", "weir:dev"), metavar="IMAGE", help="what children run")
    p.add_argument("--image-pull-policy", default=default("IMAGE_PULL_POLICY"), metavar="POLICY", help="for them")
    p.add_argument("--image-pull-secrets", default=default("IMAGE_PULL_SECRETS"), metavar="A,B", help="for them")
    p.add_argument("--http-port", type=int, default=int(default("HTTP_PORT", "8080")), help="health and metrics (8080)")
    p.add_argument("--http-listen", default=default("HTTP_LISTEN", "0.0.0.0"), help="address of that port")
    p.add_argument("--log-level", default=env.get("WEIR_LOG_LEVEL") or "info", help="debug, info, warning or error")
    p.add_argument("--workers", type=int, default=int(default("WORKERS", "8")), help="objects worked on at once (8)")
    p.add_argument(
        "--observe-seconds",
        type=float,
        default=float(default("OBSERVE_SECONDS", "30")),
        help="how often Redis is probed and numbers are read (30)",
    )
    p.add_argument(
        "--lease-seconds",
        type=float,
        default=float(default("LEASE_SECONDS", "15")),
        help="a replica that has not renewed its Lease for so long is replaced (15)",
    )
    options = p.parse_args(list(argv))
    return Settings(
        namespaces=_list(options.namespaces),
        own_namespace=options.namespace or _pod_namespace(),
        # Two processes on one host, or one after the other, are two replicas.
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
