"""The programs beside the Tiltfile: the parent that restarts its child, the trace viewer, the image without Docker."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.helm.charts import REPO

CHILD = """
import signal, sys, time
def main():
    signal.signal(signal.SIGHUP, lambda *_: print("hup", flush=True))
    print("version", {version}, sys.argv[1:], flush=True)
    {end}
    while True:
        time.sleep(60)
"""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tilt_{name}", REPO / f"tilt/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Reloaded:
    """tilt/reload.py over a small `weir` of our own."""

    def __init__(self, home: Path, *arguments: str, end: str = "") -> None:
        self.installed, self.synced = home / "installed", home / "synced"
        for package in ("weir", "weir_operator"):
            (self.installed / package).mkdir(parents=True)
            (self.installed / package / "__init__.py").touch()
        (self.installed / "weir/cli").mkdir()
        (self.installed / "weir/cli/__init__.py").touch()
        (self.installed / "weir/cli/main.py").write_text(CHILD.format(version=1, end=end))
        environment = {
            **os.environ,
            "WEIR_INSTALLED": str(self.installed),
            "WEIR_SYNCED": str(self.synced),
            "WEIR_RELOAD_ALWAYS": "1",
            "PYTHONPATH": f"{self.synced}/services:{self.synced}/operator",
            "PYTHONDONTWRITEBYTECODE": "1",  # as in the image: a file changed within a second would look unchanged
        }
        self.process = subprocess.Popen(
            [sys.executable, REPO / "tilt/reload.py", *arguments], env=environment, stdout=subprocess.PIPE, text=True
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def change(self, version: int, end: str = "") -> None:
        """Do as Tilt's live update does: copy the changed file, then send the signal."""
        (self.synced / "services/weir/cli/main.py").write_text(CHILD.format(version=version, end=end))
        self.process.send_signal(signal.SIGUSR2)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_a_changed_file_runs_without_a_new_container(home: Path) -> None:
    parent = Reloaded(home, "smp", "edge")
    try:
        assert parent.line() == "version 1 ['smp', 'edge']"
        parent.change(2)
        assert parent.line() == "reload: 1"
        assert parent.line() == "version 2 ['smp', 'edge']"
        parent.process.send_signal(signal.SIGHUP)
        assert parent.line() == "hup"
    finally:
        assert parent.stop() == 128 + signal.SIGTERM


def test_broken_code_waits_for_the_next_change(home: Path) -> None:
    parent = Reloaded(home)
    try:
        assert parent.line().startswith("version 1")
        parent.change(2, end="sys.exit(3)")
        assert [parent.line() for _ in range(3)] == [
            "reload: 1",
            "version 2 []",
            "reload: the command ended with 3; waiting for the next change",
        ]
        parent.change(3)
        assert [parent.line() for _ in range(2)] == ["reload: 2", "version 3 []"]
    finally:
        parent.stop()


@pytest.mark.parametrize("code", [0, 4])
def test_what_ends_by_itself_ends_the_container(home: Path, code: int) -> None:
    """A Job that is done, a start that fails."""
    parent = Reloaded(home, end=f"sys.exit({code})")
    assert parent.process.wait(30) == code


def test_redis_is_left_alone(home: Path) -> None:
    parent = Reloaded(home, "redis", "--dir", "x")
    try:
        assert parent.line().startswith("version 1")
        parent.change(2)
        parent.process.send_signal(signal.SIGHUP)
        assert parent.line() == "hup"
    finally:
        parent.stop()


@pytest.fixture
def viewer() -> Iterator[str]:
    server = load("traces").serve(0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def ask(url: str, body: Any = None) -> tuple[int, bytes]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def span(trace: str, identity: str, **more: Any) -> dict[str, Any]:
    return {"traceId": trace, "id": identity, "name": "SEND", "timestamp": 1_000_000, "duration": 500, **more}


def test_viewer_keeps_traces_newest_first(viewer: str) -> None:
    assert ask(f"{viewer}/api/v2/spans", [span("a", "1"), span("b", "2")])[0] == 202
    assert ask(f"{viewer}/api/v2/spans", [span("a", "3", parentId="1")])[0] == 202
    status, body = ask(f"{viewer}/api/v2/traces")
    assert status == 200
    assert [[item["id"] for item in trace] for trace in json.loads(body)] == [["1", "3"], ["2"]]
    assert b"Weir traces" in ask(viewer + "/")[1]
    assert ask(f"{viewer}/nowhere")[0] == 404


def test_viewer_forgets_the_oldest(viewer: str) -> None:
    ask(f"{viewer}/api/v2/spans", [span(f"{number}", "1") for number in range(510)])
    traces = json.loads(ask(f"{viewer}/api/v2/traces")[1])
    assert len(traces) == 500 and traces[0][0]["traceId"] == "509"


def test_viewer_refuses_what_is_no_span(viewer: str) -> None:
    assert ask(f"{viewer}/api/v2/spans", b"{")[0] == 400
    assert ask(f"{viewer}/api/v2/spans", [{"id": "1"}])[0] == 400


@pytest.mark.parametrize(
    ("context", "program"),
    [
        ("testcluster", "load"),
        ("kind-a", "kind load image-archive --name a"),
        ("k3d-a", "k3d image import --cluster a"),
        ("minikube", "minikube image load"),
        ("prod", "skopeo copy"),
    ],
)
def test_image_goes_into_the_cluster_that_is_there(context: str, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEIR_LOAD_IMAGE", raising=False)
    command = " ".join(load("image").load_command(context, Path("/x.tar"), "reg/weir:1"))
    assert program in command and "/x.tar" in command


def test_the_test_cluster_is_found_by_its_kubeconfig_and_its_binaries_by_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test cluster may have been started by anybody, from any cache."""
    for name in ("TESTCLUSTER_STATE", "TESTCLUSTER_CACHE", "WEIR_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "this/kubeconfig"))
    processes = []
    for name in ("other", "this"):
        for file in (tmp_path / name / "containerd.sock", tmp_path / f"{name}-cache/bin/ctr"):
            file.parent.mkdir(parents=True)
            file.touch()
        at = {"TESTCLUSTER_STATE": str(tmp_path / name), "TESTCLUSTER_CACHE": str(tmp_path / f"{name}-cache")}
        processes.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={**os.environ, **at}))
    try:
        assert load("image").test_cluster() == (tmp_path / "this", tmp_path / "this-cache")
    finally:
        for process in processes:
            process.communicate()


def test_a_loader_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_LOAD_IMAGE", "ssh node 'ctr import'")
    assert load("image").load_command("any", Path("/x.tar"), "r") == ["ssh", "node", "ctr import", "/x.tar"]
