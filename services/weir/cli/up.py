"""`weir up`: starts a complete router on one machine and supervises it, and a notification router if asked."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import parser
from weir.cli.programs import NTF, SMP
from weir.cli.up_home import Home
from weir.cli.up_router import UpRouter
from weir.cli.up_settings import NTF_PORT
from weir.cli.up_supervisor import Supervisor
from weir.config.options import port, whole

_BESIDE = 2  # the notification router's page and metrics are so many ports behind the SMP router's


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir up",
        "Starts a complete router: Redis (the bundled one, or yours) and edges that share one port. The first start\n"
        "makes the identity. Identity, queues and messages are kept in --home and survive a restart.\n"
        "An edge that crashes is restarted, and so is the bundled Redis. Ctrl-C stops the router cleanly.\n"
        "Settings come from weir.toml in --home (`weir smp config list`). The options below win over that file.\n"
        "With --ntf, a notification router with the same Redis runs beside it; its directory is ntf in --home.",
        """
weir up --home data --host 127.0.0.1                     # for this machine only
weir up --home /srv/weir --host smp.example.org --edges 4
weir up --home data --host smp.example.org --redis redis://redis.internal:6379/0
weir up --home data --host smp.example.org --ntf         # with a notification router
weir up --home data --host 127.0.0.1 --traces            # with traces in a browser
""",
    )
    p.add_argument("--home", type=Path, default=Path("data"), metavar="DIR", help="directory of the router (data)")
    p.add_argument("--smp-port", type=port, metavar="P", help="port for clients (5223; 0: any free port)")
    add_options(p)
    p.add_argument("--ntf", action="store_true", help="start a notification router as well")
    p.add_argument(
        "--ntf-port", type=port, metavar="N", help=f"port of the notification router ({NTF_PORT}; 0: any free port)"
    )
    options = p.parse_args(argv)
    routers = [UpRouter(SMP, Home(options.home), options)]
    if options.ntf:
        routers.append(UpRouter(NTF, Home(options.home / "ntf", NTF), _beside(options)))
    return asyncio.run(Supervisor("weir up", options, routers).run())


def _beside(options: argparse.Namespace) -> argparse.Namespace:
    """The options of the notification router that runs beside an SMP router."""
    http = 8000 if options.http_port is None else options.http_port
    chosen = {"http_port": http + _BESIDE if http else 0, "metrics_port": options.metrics_port}
    if options.metrics_port:
        chosen["metrics_port"] = options.metrics_port + _BESIDE
    return argparse.Namespace(**{**vars(options), **chosen})


def add_options(p: argparse.ArgumentParser) -> None:
    """The options that `weir up` and `weir ntf up` share."""
    p.add_argument("--host", metavar="H", help="host name in the address (127.0.0.1)")
    p.add_argument("--listen", metavar="ADDR", help="address to listen on (loopback for a loopback host, else all)")
    p.add_argument("--http-port", type=port, metavar="Q", help="port of the web page (8000; 0: any free port)")
    p.add_argument("--metrics-port", type=port, metavar="M", help="port of /metrics (the one after the page's; 0: any)")
    p.add_argument("--edges", type=whole(1, 1000), default=2, metavar="N", help="number of edge processes (2)")
    p.add_argument("--redis", metavar="URL", help="URL of your Redis, or `embedded` for the bundled one (embedded)")
    p.add_argument("--ready-file", type=Path, metavar="F", help="write JSON to F when clients can connect")
    p.add_argument("--traces", action="store_true", help="trace everything and start a trace viewer (needs Java 17)")
