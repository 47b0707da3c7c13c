"""`weir up` as a process, for tests that need a whole router."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_LIMIT = 30.0


class Up:
    """A running `weir up`. `run` is the content of its ready file."""

    def __init__(self, process: subprocess.Popen[str], home: Path, ready: Path) -> None:
        self.process = process
        self.home = home
        self.ready = ready

    @property
    def run(self) -> dict[str, Any]:
        run: dict[str, Any] = json.loads(self.ready.read_text())
        return run

    @property
    def address(self) -> str:
        return str(self.run["address"])

    @property
    def http(self) -> str:
        return str(self.run["http"]).rstrip("/")

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """(exit code, everything it printed)."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=30)
        return self.process.returncode, output


def spawn(
    home: Path, *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("weir")), "up", "--home", str(home), *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environ or {})},
        cwd=cwd,
    )


@contextmanager
def weir_up(
    home: Path,
    *arguments: str,
    smp_port: int | None = 0,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    start_limit: float = START_LIMIT,
) -> Iterator[Up]:
    """Waits until clients can connect; stops it at the end, whatever happened."""
    ready = home.parent / f"{home.name}-ready.json"
    smp = () if smp_port is None else ("--smp-port", str(smp_port))
    ports = (*smp, "--http-port", "0", "--ready-file", str(ready))
    process = spawn(home, *ports, *arguments, environ=environ, cwd=cwd)
    up = Up(process, home, ready)
    try:
        limit = time.monotonic() + start_limit
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > limit:
                process.kill()
                raise AssertionError(f"weir up did not start:\n{process.communicate()[0]}")
            time.sleep(0.02)
        yield up
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
