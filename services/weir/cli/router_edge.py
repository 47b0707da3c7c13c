"""`weir smp edge` and `weir ntf edge`: runs one edge in the foreground."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.cli.arguments import descriptor, load_config, parser
from weir.cli.errors import Fail, os_error
from weir.cli.programs import NTF, Program

if TYPE_CHECKING:
    from weir.runtime.edge import Edge


def main(program: Program, argv: Sequence[str]) -> int:
    p = parser(
        f"{program.command} edge",
        f"Runs one edge: a process that terminates TLS, speaks {program.protocol} and keeps all state in Redis. Any\n"
        "number of edges with the same identity, keys and Redis serve one address.\n"
        "On SIGTERM the edge drains: it closes clients at [drain] rate, within [drain] grace, so that they connect to\n"
        "other edges. On SIGUSR1 it only stops accepting clients: send SIGUSR1 to all edges that are about to stop\n"
        "before the first SIGTERM. On SIGHUP it reloads the online certificate.\n"
        "Every setting can come from an environment variable named WEIR_SECTION_KEY.",
        f"""
{program.command} edge --config /etc/weir/weir.toml
WEIR_REDIS_URL=redis://redis:6379/0 {program.command} edge --config weir.toml
""",
    )
    p.add_argument(
        "--config", type=Path, metavar="FILE", help=f"TOML, or the reference's ini (`{program.command} config list`)"
    )
    p.add_argument(
        "--ready-fd",
        type=descriptor,
        metavar="FD",
        help="write a line of JSON to FD when clients can connect, and one when SIGUSR1 is done",
    )
    if program is NTF:
        p.add_argument(
            "--maintenance",
            action="store_true",
            help="open identity, keys and Redis as an edge does, serve nobody, and end",
        )
    options = p.parse_args(argv)
    config = load_config(program, options.config)
    if program is NTF and options.maintenance:
        return check_stored(program, config)
    if options.ready_fd is None:
        return run(program, config, None)
    try:
        return run(program, config, options.ready_fd)
    except Fail as failure:
        _report(options.ready_fd, {"error": str(failure)})
        return 1


def run(program: Program, config: Any, ready_fd: int | None) -> int:
    def on_ready(edge: Edge[Any, Any]) -> None:
        _reduce_garbage_collection()
        if ready_fd is not None:
            _report(ready_fd, {"ready": True, "edge": edge.edge_id})

    def on_suspended() -> None:
        if ready_fd is not None:
            _report(ready_fd, {"suspended": True})

    run_edge = importlib.import_module(program.edge_module).run_edge
    return _run(config, run_edge(config, on_ready=on_ready, on_suspended=on_suspended))


def check_stored(program: Program, config: Any) -> int:
    """Check what an edge opens."""
    code = _run(config, importlib.import_module(program.edge_module).check_stored(config))
    print("identity, keys and Redis are in order")
    return code


def _run(config: Any, work: Coroutine[Any, Any, int]) -> int:
    import uvloop

    from weir.config.schema import ConfigError
    from weir.crypto.pem import UnusableFile
    from weir.redis.errors import StoreError, Unavailable
    from weir.telemetry.setup import configure_logging

    configure_logging(config.telemetry.log_level, config.telemetry.log_format)
    try:
        return uvloop.run(work)
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
