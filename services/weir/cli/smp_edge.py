"""`weir smp edge`: one edge in the foreground."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.arguments import load_config, parser
from weir.cli.errors import Fail, os_error

if TYPE_CHECKING:
    from weir.router.config import RouterConfig
    from weir.router.view import EdgeView


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir smp edge",
        "Runs one edge: a process that terminates TLS, speaks SMP and keeps all state in Redis. Any number of edges\n"
        "with the same identity, placement key and Redis serve one address.\n"
        "SIGTERM drains it (clients are moved on at [drain] rate, within [drain] grace), SIGHUP takes up a new online\n"
        "certificate. Every setting can come from the environment: WEIR_SECTION_KEY.",
        """
weir smp edge --config /etc/weir/weir.toml
WEIR_REDIS_URL=redis://redis:6379/0 weir smp edge --config weir.toml
""",
    )
    p.add_argument("--config", type=Path, metavar="FILE", help="TOML, or the reference's ini; see weir smp config list")
    p.add_argument("--ready-fd", type=int, metavar="FD", help="write one line of JSON there when clients can connect")
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

    from weir.crypto.pem import UnusableFile
    from weir.router.config import ConfigError
    from weir.router.edge import run_edge
    from weir.store.records import StoreError, Unavailable
    from weir.telemetry.setup import configure_logging

    def on_ready(edge: EdgeView) -> None:
        _collect_less()
        if ready_fd is not None:
            _report(ready_fd, {"ready": True, "edge": edge.edge_id})

    configure_logging(config.telemetry.log_level, config.telemetry.log_format)
    try:
        return uvloop.run(run_edge(config, on_ready=on_ready))
    except (StoreError, Unavailable, UnusableFile, ConfigError) as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(error.filename or _where(error) or "cannot start", error) from None


def _collect_less() -> None:
    """An edge's objects are freed by their counts. Looking for cycles among a block's commands, and among all that was
    imported, cost 7 % of an edge's time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _where(error: OSError) -> str:
    """The address that a socket could not be bound to: asyncio and aiohttp write it into the text."""
    bound = re.search(r"\('([^']+)', (\d+)", str(error))
    return f"{bound[1]}:{bound[2]}" if bound else ""


def _report(descriptor: int, report: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as pipe:  # nobody may wait any more
        pipe.write(json.dumps(report).encode() + b"\n")
