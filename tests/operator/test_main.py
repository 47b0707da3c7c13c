"""`weir operator` from the outside: help, a port in use, no way to log in."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LINE = [sys.executable, "-m", "weir.cli.main", "operator"]


def environment(tmp_path: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("WEIR_", "KUBE"))}
    return {**kept, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}


def test_help_names_every_option(tmp_path: Path) -> None:
    done = subprocess.run([*LINE, "--help"], env=environment(tmp_path), capture_output=True, text=True, check=True)
    for option in ("--namespaces", "--image", "--http-port", "--lease-seconds"):
        assert option in done.stdout


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*LINE, "--http-listen", "127.0.0.1", "--http-port", str(port)],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_way_to_log_in_is_one_line(tmp_path: Path) -> None:
    line = [*LINE, "--http-listen", "127.0.0.1", "--http-port", "0"]
    done = subprocess.run(line, env=environment(tmp_path), capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "kubeconfig" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_an_api_server_it_waits_and_ends_on_a_signal(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        'clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]\n'
        "users: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
    )
    env = environment(tmp_path) | {"KUBECONFIG": str(config)}
    process = subprocess.Popen(
        [*LINE, "--http-listen", "127.0.0.1", "--http-port", "0"], env=env, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "cannot take the lease yet" in line
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert process.wait(20) == 0
    assert time.monotonic() - began < 15
    assert "Traceback" not in process.stderr.read()
