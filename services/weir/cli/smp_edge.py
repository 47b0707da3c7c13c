"""`weir smp edge`: runs one edge in the foreground."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.arguments import descriptor, load_config, parser
from weir.cli.errors import Fail, os_error

if TYPE_CHECKING:
    from weir.router.config import RouterConfig
    from weir.router.surface.view import EdgeView


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir smp edge",
        "Runs one edge: a process that terminates TLS, speaks SMP and keeps all state in Redis. Any number of edges\n"
        "with the same identity, placement key and Redis serve one address.\n"
        "On SIGTERM the edge drains: it closes clients at [drain] rate, within [drain] grace, so that they connect to\n"
        "other edges. On SIGUSR1 it only stops accepting clients: send SIGUSR1 to all edges that are about to stop\n"
        "before the first SIGTERM. On SIGHUP it reloads the online certificate.\n"
        "Every setting can come from an environment variable named WEIR_SECTION_KEY.",
        """
weir smp edge --config /etc/weir/weir.toml
WEIR_REDIS_URL=redis://redis:6379/0 weir smp edge --config weir.toml
""",
    )
    p.add_argument("--config", type=Path, metavar="FILE", help="TOML, or the reference's ini (`weir smp config list`)")
    p.add_argument(
        "--ready-fd",
        type=descriptor,
        metavar="FD",
        help="write a line of JSON to FD when clients can connect, and one when SIGUSR1 is done",
    )
    options = p.parse_args(argv)
    config = load_config(options.config)
    if options.ready_fd is None:
        return run(config, None)
    try:
        return run(config, options.ready_fd)
    except Fail as failure:
        _report(options.ready_fd, {"error": str(failure)})
        return 1


def run(config: RouterConfig, ready_fd: int | None) -> int:
    import uvloop

    from weir.config.schema import ConfigError
    from weir.crypto.pem import UnusableFile
    from weir.redis.errors import StoreError, Unavailable
    from weir.router.edge import run_edge
    from weir.telemetry.setup import configure_logging

    def on_ready(edge: EdgeView) -> None:
        _reduce_garbage_collection()
        if ready_fd is not None:
            _report(ready_fd, {"ready": True, "edge": edge.edge_id})

    def on_suspended() -> None:
        if ready_fd is not None:
            _report(ready_fd, {"suspended": True})

    configure_logging(config.telemetry.log_level, config.telemetry.log_format)
    try:
        return uvloop.run(run_edge(config, on_ready=on_ready, on_suspended=on_suspended))
    except (StoreError, Unavailable, UnusableFile, ConfigError) as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(error.filename or _where(error) or "cannot start", error) from None


def _reduce_garbage_collection() -> None:
    """Search for reference cycles rarely, and never among the imported modules.

    An edge's objects form no cycles, so reference counts free them. The searches took 7 % of an edge's time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _where(error: OSError) -> str:
    """Find the address that a socket could not be bound to. asyncio and aiohttp put it into the error's text."""
    bound = re.search(r"\('([^']+)', (\d+)", str(error))
    return f"{bound[1]}:{bound[2]}" if bound else ""


def _report(descriptor: int, report: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader may have gone
        os.write(descriptor, json.dumps(report).encode() + b"\n")
