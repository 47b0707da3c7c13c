"""The test cluster from Python: started, read through the kubernetes client, and always stopped."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import kubernetes
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

HERE = Path(__file__).parent
REPO = HERE.parent.parent
CACHE = Path(os.environ.get("TESTCLUSTER_CACHE", Path.home() / ".cache/weir/cluster"))
MERGE = "application/merge-patch+json"
T = TypeVar("T")


def missing() -> str | None:
    """Why there can be no cluster here, in one line."""
    if os.geteuid() != 0:
        return "cluster tests need root (namespaces, mounts): run them with sudo"
    if shutil.which("go") is None and not Path("/usr/local/go/bin/go").exists():
        return "cluster tests need Go to build Kubernetes (https://go.dev/dl)"
    return None


def wait_for(what: str, check: Callable[[], T | None], seconds: float = 60, step: float = 0.2) -> T:
    """Repeat `check` until it returns neither None nor False. Fail with its last answer after `seconds`."""
    end = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            found = check()
            if found is not None and found is not False:
                return found
            last = found
        except (NotFoundError, KeyError, IndexError) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what}; last seen: {last!r}")
        time.sleep(step)


class Kube:
    """Objects as dictionaries, by kind."""

    def __init__(self, kubeconfig: Path) -> None:
        config = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(kubeconfig), client_configuration=config)
        self.client = kubernetes.client.ApiClient(config)
        self.dynamic = DynamicClient(self.client)

    def resource(self, kind: str) -> Any:
        versions = {
            "Deployment": "apps/v1",
            "StatefulSet": "apps/v1",
            "ReplicaSet": "apps/v1",
            "PodDisruptionBudget": "policy/v1",
            "HorizontalPodAutoscaler": "autoscaling/v2",
            "NetworkPolicy": "networking.k8s.io/v1",
            "EndpointSlice": "discovery.k8s.io/v1",
            "SMPRouter": "weir.dev/v1alpha1",
            "NTFRouter": "weir.dev/v1alpha1",
            "SMPService": "weir.dev/v1alpha1",
            "Lease": "coordination.k8s.io/v1",
            "ClusterRole": "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
            "Role": "rbac.authorization.k8s.io/v1",
            "RoleBinding": "rbac.authorization.k8s.io/v1",
            "CustomResourceDefinition": "apiextensions.k8s.io/v1",
            "ServiceMonitor": "monitoring.coreos.com/v1",
            "ScaledObject": "keda.sh/v1alpha1",
        }
        return self.dynamic.resources.get(api_version=versions.get(kind, "v1"), kind=kind)

    def get(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self.resource(kind).get(name=name, namespace=namespace).to_dict()
        return found

    def find(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        try:
            return self.get(kind, name, namespace)
        except NotFoundError:
            return None

    def list(self, kind: str, namespace: str | None = None, labels: str | None = None) -> list[dict[str, Any]]:
        found = self.resource(kind).get(namespace=namespace, label_selector=labels).to_dict()
        items: list[dict[str, Any]] = found["items"]
        return items

    def raw(self, path: str) -> Any:
        """A GET without the client's models, for large lists."""
        url = self.client.configuration.host + path
        return json.loads(self.client.rest_client.request("GET", url).response.data)

    def create(self, body: Mapping[str, Any], namespace: str | None = None) -> dict[str, Any]:
        made: dict[str, Any] = self.resource(body["kind"]).create(body=body, namespace=namespace).to_dict()
        return made

    def merge(self, kind: str, name: str, namespace: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        made = self.resource(kind).patch(name=name, namespace=namespace, body=patch, content_type=MERGE)
        found: dict[str, Any] = made.to_dict()
        return found

    def delete(self, kind: str, name: str, namespace: str | None = None, **options: Any) -> None:
        with suppress(NotFoundError):
            self.resource(kind).delete(name=name, namespace=namespace, **options)

    def gone(self, kind: str, name: str, namespace: str | None = None, seconds: float = 60) -> None:
        wait_for(f"{kind} {name} to go", lambda: self.find(kind, name, namespace) is None, seconds)

    def condition(self, kind: str, name: str, namespace: str, condition: str) -> dict[str, Any]:
        status = self.get(kind, name, namespace).get("status") or {}
        return next((one for one in status.get("conditions") or () if one["type"] == condition), {})

    def await_condition(
        self,
        kind: str,
        name: str,
        namespace: str,
        condition: str,
        status: str = "True",
        reason: str | None = None,
        seconds: float = 90,
    ) -> dict[str, Any]:
        def check() -> dict[str, Any] | None:
            body = self.get(kind, name, namespace)
            found = body.get("status") or {}
            one = next((c for c in found.get("conditions") or () if c["type"] == condition), {})
            fits = one.get("status") == status and reason in (None, one.get("reason"))
            return body if fits and one.get("observedGeneration") == body["metadata"]["generation"] else None

        try:
            return wait_for(f"{condition}={status} of {kind} {name}", check, seconds)
        except AssertionError as error:
            shown = (self.find(kind, name, namespace) or {}).get("status")
            raise AssertionError(f"{error}\nstatus: {shown}") from None

    def events(self, namespace: str, name: str) -> list[tuple[str, str]]:
        return [
            (event["reason"], event["message"])
            for event in self.list("Event", namespace)
            if event["involvedObject"]["name"] == name
        ]


class Cluster:
    """A cluster of `cluster.sh`, and its state directory."""

    def __init__(self, state: Path, port: int) -> None:
        self.state = state
        self.port = port
        self.environment = {
            **os.environ,
            "TESTCLUSTER_CACHE": str(CACHE),
            "TESTCLUSTER_STATE": str(state),
            "TESTCLUSTER_PORT": str(port),
            "PATH": f"{CACHE / 'bin'}:{os.environ.get('PATH', '')}:/usr/local/go/bin",
            "KUBECONFIG": str(state / "kubeconfig"),
        }

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def inside(self) -> Path:
        """A kubeconfig for processes in the cluster's network."""
        path = self.state / "kubeconfig-inside"
        path.write_text(self.kubeconfig.read_text().replace(f"127.0.0.1:{self.port}", "127.0.0.1:6443"))
        return path

    @property
    def alive(self) -> bool:
        pid = self.state / "init.pid"
        return pid.exists() and Path(f"/proc/{pid.read_text().strip()}").exists()

    @property
    def init_pid(self) -> int:
        return int((self.state / "init.pid").read_text())

    def build(self) -> None:
        subprocess.run([HERE / "build.sh"], env=self.environment, check=True)

    def up(self) -> None:
        self._script("up")

    def down(self) -> None:
        self._script("down")

    def load(self, image: Path) -> None:
        self._script("load", str(image))

    def _script(self, *arguments: str) -> None:
        done = subprocess.run(
            [HERE / "cluster.sh", *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"cluster.sh {arguments[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def command(self, *arguments: str) -> list[str]:
        """A command line that runs in the cluster's network."""
        return ["nsenter", "--target", str(self.init_pid), "--net", "--", *arguments]

    def run(
        self, *arguments: str, inside: bool = False, check: bool = True, stdin: str | None = None, seconds: float = 120
    ) -> str:
        """Runs a command (kubectl, helm) and returns what it printed."""
        line = self.command(*arguments) if inside else list(arguments)
        done = subprocess.run(
            line, env=self.environment, capture_output=True, text=True, input=stdin, timeout=seconds, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout + (done.stderr if not check else "")

    @contextmanager
    def watchdog(self) -> Iterator[None]:
        """Stop the cluster even when this process is killed."""
        script = f"tail --pid={os.getpid()} -f /dev/null; exec {HERE / 'cluster.sh'} down"
        dog = subprocess.Popen(
            ["bash", "-c", script],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(dog.pid, 9)
            dog.wait()

    def listener(self) -> socket.socket:
        """A listening socket in the cluster's network, served from this process."""
        found: list[socket.socket] = []

        def make() -> None:
            # A network namespace is a thread's own: only this thread moves.
            libc = ctypes.CDLL(None, use_errno=True)
            descriptor = os.open(f"/proc/{self.init_pid}/ns/net", os.O_RDONLY)
            try:
                if libc.setns(descriptor, 0x40000000):
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(descriptor)
            made = socket.socket()
            made.bind(("127.0.0.1", 0))
            made.listen(128)
            found.append(made)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return found[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def say(line: str) -> None:
    print(line, file=sys.__stderr__, flush=True)
