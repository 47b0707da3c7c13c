"""A `weir up` that a bench starts for itself, in a temporary directory."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from weir.bench.target import BenchError, Target, find_target

_START_LIMIT = 30.0


@contextmanager
def own_router(edges: int, settings: Mapping[str, str] | None = None) -> Iterator[Target]:
    """Run a router during the `with` block. `settings` are environment variables (docs/configuration.md)."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        home, ready = Path(directory) / "home", Path(directory) / "ready.json"
        # -P: import nothing from the working directory.
        command = [sys.executable, "-P", "-m", "weir.cli.main", "up", "--home", str(home), "--ready-file", str(ready)]
        command += ["--smp-port", "0", "--http-port", "0", "--edges", str(edges)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(settings or {})},
        )
        try:
            limit = time.monotonic() + _START_LIMIT
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > limit:
                    process.terminate()
                    raise BenchError(f"the router did not start: {process.communicate()[1].strip()}")
                time.sleep(0.05)
            yield replace(find_target(None, home), own=True)
        finally:
            process.terminate()
            process.wait()
