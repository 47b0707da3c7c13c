"""`weir ntf up`: starts a complete notification router on one machine and supervises it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import parser
from weir.cli.programs import Program
from weir.cli.up import add_options
from weir.cli.up_home import Home
from weir.cli.up_router import UpRouter
from weir.cli.up_settings import NTF_PORT
from weir.cli.up_supervisor import Supervisor
from weir.config.options import port


def main(program: Program, argv: Sequence[str]) -> int:
    p = parser(
        "weir ntf up",
        "Starts a complete notification router: Redis (the bundled one, or yours) and edges that share one port. The\n"
        "first start makes the identity and the keys. They are kept in --home with the devices' tokens and survive a\n"
        "restart. Web Push and UnifiedPush work at once; for Apple devices, set [apns] in weir.toml.\n"
        "An edge that crashes is restarted. Ctrl-C stops the router cleanly.\n"
        "Settings come from weir.toml in --home (`weir ntf config list`). The options below win over that file.\n"
        "`weir up --ntf` starts an SMP router beside it.",
        """
weir ntf up --home data --host 127.0.0.1                 # for this machine only
weir ntf up --home /srv/ntf --host ntf.example.org --ntf-port 443
weir ntf up --home data --host ntf.example.org --redis redis://redis.internal:6379/0
""",
    )
    p.add_argument("--home", type=Path, default=Path("data-ntf"), metavar="DIR", help="directory (data-ntf)")
    p.add_argument("--ntf-port", type=port, metavar="P", help=f"port for devices ({NTF_PORT}; 0: any free port)")
    add_options(p)
    options = p.parse_args(argv)
    router = UpRouter(program, Home(options.home, program), options)
    return asyncio.run(Supervisor("weir ntf up", options, [router]).run())
