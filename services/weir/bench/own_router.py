"""Routers that a bench starts for itself, each in a temporary directory with a Redis of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from weir.bench.target import BenchError, NtfTarget, Target, find_target
from weir.wire.address import SmpAddress

_START_LIMIT = 30.0


@contextmanager
def own_router(
    edges: int, settings: Mapping[str, str] | None = None, *, arguments: Sequence[str] = ()
) -> Iterator[Target]:
    """Run an SMP router during the `with` block. `settings` are environment variables (docs/configuration.md)."""
    with _started(("up", "--smp-port", "0", *arguments), edges, settings or {}) as home:
        yield replace(find_target(None, home), own=True)


@contextmanager
def own_ntf_router(edges: int, settings: Mapping[str, str]) -> Iterator[NtfTarget]:
    """Run a notification router during the `with` block."""
    with _started(("ntf", "up", "--ntf-port", "0"), edges, settings) as home:
        run = json.loads((home / "run.json").read_text())
        address = SmpAddress.parse(run["address"].partition("?")[0])
        assert address is not None
        yield NtfTarget(address, tuple(run["edges"]), run["redis"]["url"])


@contextmanager
def _started(words: Sequence[str], edges: int, settings: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        home, ready = Path(directory) / "home", Path(directory) / "ready.json"
        # -P: import nothing from the working directory.
        command = [sys.executable, "-P", "-m", "weir.cli.main", *words, "--home", str(home)]
        command += ["--ready-file", str(ready), "--http-port", "0", "--edges", str(edges)]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **settings}
        )
        try:
            limit = time.monotonic() + _START_LIMIT
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > limit:
                    process.terminate()
                    raise BenchError(f"the router did not start: {process.communicate()[1].strip()}")
                time.sleep(0.05)
            yield home
        finally:
            process.terminate()
            process.wait()
