"""`weir ntf`: the notification router's place in a deployment. It is not part of this release."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from weir.cli.arguments import parser


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir ntf",
        "The notification router (NTF) is not part of this release. The command says so and waits for SIGTERM,\n"
        "so that a Deployment of it is stable and can be upgraded in place later.",
        "weir ntf --config /etc/weir/weir.toml",
    )
    p.add_argument("--config", metavar="FILE", help="its configuration file (not read yet)")
    p.parse_args(argv)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    print("weir ntf: the notification router is not part of this release; waiting for SIGTERM", flush=True)
    signal.sigwait(ends)
    return 0
