"""`weir ntf`: a placeholder for the notification router, which is not part of this release."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from weir.cli.arguments import parser


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir ntf",
        "The notification router (NTF) is not part of this release. This command prints that and waits for SIGTERM,\n"
        "so that a Kubernetes Deployment with it stays up and can be upgraded in place later.",
        "weir ntf --config /etc/weir/weir.toml",
    )
    p.add_argument("--config", metavar="FILE", help="configuration file (not read yet)")
    p.parse_args(argv)
    stop_signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    print("weir ntf: the notification router is not part of this release; waiting for SIGTERM", flush=True)
    signal.sigwait(stop_signals)
    return 0
