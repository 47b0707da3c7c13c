"""`weir ntf up`, and `weir up --ntf`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.up import alive, weir_up
from weir.cli.main import main


@contextmanager
def ntf_up(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    ready = home.parent / "ready.json"
    weir = str(Path(sys.executable).with_name("weir"))
    ports = ("--ntf-port", "0", "--http-port", "0", "--ready-file", str(ready))
    process = subprocess.Popen(
        [weir, "ntf", "up", "--home", str(home), *ports, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        limit = time.monotonic() + 30
        while not ready.exists():
            assert process.poll() is None and time.monotonic() < limit, process.communicate()[0]
            time.sleep(0.02)
        yield process, json.loads(ready.read_text())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_a_notification_router_on_one_machine(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ntf_up(home) as (_, run):
        assert run["address"].startswith("ntf://") and "?vapid=" in run["address"]
        assert len(run["edges"]) == 2 and all(map(alive, run["edges"]))
        assert main(["ntf", "check", "--address", run["address"]]) == 0
        for name in ("placement.key", "storage.key", "vapid.key", "weir.toml", "run.json"):
            path = home / name
            assert path.stat().st_mode & 0o077 == 0, f"{name}: only its owner may read it"
    with ntf_up(home) as (_, again):
        assert again["address"].partition("@")[0] == run["address"].partition("@")[0]
        assert again["address"].partition("?")[2] == run["address"].partition("?")[2]


def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    with ntf_up(tmp_path / "home") as (process, run):
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert not any(map(alive, [*run["edges"], run["redis"]["pid"]]))


def test_both_routers_side_by_side(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with weir_up(home, "--ntf", "--ntf-port", "0", "--edges", "1") as up:
        ntf = up.run["ntf"]
        assert up.address.startswith("smp://") and ntf["address"].startswith("ntf://")
        assert Path(ntf["home"]) == home / "ntf" and ntf["http"] != up.run["http"]
        assert main(["smp", "check", "--address", up.address]) == 0
        assert main(["ntf", "check", "--address", ntf["address"], "--smp", up.address]) == 0
        pids = [*up.run["edges"], *ntf["edges"], up.run["redis"]["pid"]]
        os.kill(ntf["edges"][0], signal.SIGKILL)
        limit = time.monotonic() + 20
        while up.run["ntf"]["edges"] == ntf["edges"]:
            assert time.monotonic() < limit, "the edge comes back"
            time.sleep(0.05)
        code, output = up.stop()
    assert code == 0 and "ntf edge 0 ended with signal SIGKILL; restarting it" in output
    assert not any(map(alive, pids))
