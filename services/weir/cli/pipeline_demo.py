"""`weir pipeline demo`: two simulated weeks go the way of all rollups, from Redis to the report."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.config.options import whole
from weir.notifier.config import Redis as NotifierRedis
from weir.pipeline.demo import NTF_ROUTER, records
from weir.redis.embedded import Embedded, start_embedded
from weir.redis.errors import StoreError
from weir.redis.partitions import Partitions
from weir.redis.settings import Redis
from weir.runtime.state.keys import CommonKeys
from weir.runtime.state.rollups import FIELD
from weir.telemetry.rollups.record import Rollup, encode

DESCRIPTION = """\
See the data pipeline at work without a router: make two weeks of records as the edges of an SMP router and of a
notification router would have published them, append them to a Redis that ends with the command, and run the commands
that an operator runs: ingest, tables, report. Everything is simulated and comes from a seed."""

EXAMPLES = """\
weir pipeline demo                             # data/pipeline-demo/report.html
weir pipeline demo --dir /tmp/demo --no-open"""

_BATCH: Final = 500


def main(argv: Sequence[str]) -> int:
    p = parser("weir pipeline demo", DESCRIPTION, EXAMPLES)
    p.add_argument(
        "--dir",
        type=Path,
        default=Path("data/pipeline-demo"),
        metavar="DIR",
        help="tables and report; what an earlier demo left there is deleted (data/pipeline-demo)",
    )
    p.add_argument("--seed", type=whole(0, 2**31), default=1, metavar="N", help="of the simulation (1)")
    p.add_argument("--no-open", action="store_true", help="do not open the page, even if there is a desktop")
    arguments = p.parse_args(argv)
    began = time.monotonic()
    directory: Path = arguments.dir
    tables, page = prepare(directory), directory / "report.html"
    with redis() as server:
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        count = append(server.url, records(now, seed=arguments.seed))
        print(f"{count:,} records of two simulated weeks are in Redis", flush=True)
        weir("ingest", "--once", "--redis", server.url, "--tables", str(tables))
    weir("tables", "--tables", str(tables))
    weir("report", "--tables", str(tables), "--out", str(page))
    print(f"done in {time.monotonic() - began:.0f} s: file://{page.resolve()}")
    if not arguments.no_open and has_desktop():
        webbrowser.open(f"file://{page.resolve()}")
    return 0


def prepare(directory: Path) -> Path:
    """Make the directory, without the tables of an earlier demo. Any other directory is refused."""
    tables = directory / "tables"
    try:
        if tables.exists():
            if not (tables / "weir-tables.json").exists():
                raise Fail(f"{tables} is no directory of tables; choose another --dir")
            shutil.rmtree(tables)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise os_error(error.filename or directory, error) from None
    return tables


@contextlib.contextmanager
def redis() -> Iterator[Embedded]:
    """The bundled server on a free port, with an empty data directory. Nothing is left of either."""
    with tempfile.TemporaryDirectory(prefix="weir-demo-") as directory:
        try:
            server = start_embedded(Path(directory), port=0, appendfsync="no")
        except StoreError as error:
            raise Fail(str(error)) from None
        try:
            yield server
        finally:
            server.stop()


def append(url: str, made: Iterable[Rollup]) -> int:
    """Append the records to the streams of their routers, as edges do."""
    from redis import Redis as Client

    smp, ntf = (CommonKeys(Partitions(prefix)).rollups for prefix in (Redis.prefix, NotifierRedis.prefix))
    client, count, rest = Client.from_url(url), 0, iter(made)
    with contextlib.closing(client):
        while batch := list(islice(rest, _BATCH)):
            pipe = client.pipeline(transaction=False)
            for rollup in batch:
                pipe.xadd(ntf if rollup.router == NTF_ROUTER else smp, {FIELD: encode(rollup)})
            pipe.execute()
            count += len(batch)
    return count


def weir(*words: str) -> None:
    """Run a command of the pipeline as a person would. Its own error line is enough."""
    print(f"$ weir pipeline {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "weir.cli.main", "pipeline", *words], check=False)
    if done.returncode:
        raise Fail(f"{words[0]} failed", done.returncode)


def has_desktop() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
