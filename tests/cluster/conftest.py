"""One cluster for the whole run, brought up once and always taken down; a namespace for each test."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.harness import CACHE, HERE, REPO, Cluster, Kube, free_port, missing
from tests.cluster.operator_process import OperatorProcess

IMAGE = "localhost/weir:dev"
PAUSE = "localhost/pause:1"
PATIENT = ("--lease-seconds=15",)  # nobody starts these again when a busy API server lets their Lease run out
RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "latest",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test here as a cluster test. Where no cluster can run, skip them with the reason."""
    here = [item for item in items if HERE in item.path.parents]
    reason = missing()
    for item in here:
        item.add_marker(pytest.mark.cluster)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def shown(request: pytest.FixtureRequest) -> Iterator[Callable[[str], None]]:
    """Progress on the terminal, whatever pytest captures."""
    manager: Any = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with manager.global_and_fixture_disabled():
            print(f"cluster: {line}", flush=True)

    yield say


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, shown: Callable[[str], None]) -> Iterator[Cluster]:
    """The test cluster. One that already runs in the directory TESTCLUSTER_STATE is used and left running."""
    given = os.environ.get("TESTCLUSTER_STATE")
    port = int(os.environ.get("TESTCLUSTER_PORT") or (6443 if given else free_port()))
    made = Cluster(Path(given) if given else CACHE / f"state-{os.getpid()}", port)
    if given and made.alive:
        _install(made)
        yield made
        return
    manager: Any = request.config.pluginmanager.getplugin("capturemanager")
    with manager.global_and_fixture_disabled():
        print("\ncluster: building what is missing (12 to 17 minutes the first time)", flush=True)
        made.build()
    with made.watchdog():
        started = time.monotonic()
        try:
            made.up()
            _install(made)
            shown(f"up in {time.monotonic() - started:.0f} s")
            yield made
        finally:
            made.down()


def _install(cluster: Cluster) -> None:
    crds = [str(path) for path in sorted((REPO / "k8s/crds").glob("weir.dev_*.yaml"))]
    cluster.run("kubectl", "apply", "--server-side", "--force-conflicts", *(a for crd in crds for a in ("-f", crd)))
    cluster.run("kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


@pytest.fixture(scope="session")
def kube(cluster: Cluster) -> Kube:
    return Kube(cluster.kubeconfig)


@pytest.fixture(scope="session")
def image(cluster: Cluster, shown: Callable[[str], None]) -> str:
    """The real image, from this working copy, loaded into the cluster."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "scripts/image.py"], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.load(Path(done.stdout.strip().splitlines()[-1]))
    shown(f"image built and loaded in {time.monotonic() - started:.0f} s")
    return IMAGE


def new_namespace(kube: Kube, prefix: str) -> str:
    """Create a namespace that enforces the restricted Pod Security level."""
    name = f"{prefix}-{os.urandom(3).hex()}"
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}})
    return name


def drop_namespace(kube: Kube, name: str) -> None:
    """Delete a namespace. Take the finalizers off first, because no operator may be there to do it."""
    held = [
        (kind, body["metadata"]["name"])
        for kind in ("SMPService", "SMPRouter", "NTFRouter")
        for body in kube.list(kind, name)
        if body["metadata"].get("finalizers")
    ]

    def free(at: tuple[str, str]) -> None:
        with contextlib.suppress(Exception):
            kube.merge(*at, name, {"metadata": {"finalizers": None}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(free, held))
    kube.delete("Namespace", name)


@pytest.fixture(scope="module")
def namespace(request: pytest.FixtureRequest, kube: Kube) -> Iterator[str]:
    """One namespace for all tests of a file. Each test uses a router name of its own."""
    made = new_namespace(kube, request.module.__name__.rpartition("test_")[2].replace("_", "-"))
    yield made
    drop_namespace(kube, made)


@pytest.fixture(scope="module")
def operator(cluster: Cluster, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """An operator for that namespace."""
    directory = tmp_path_factory.mktemp("operator")
    with OperatorProcess(cluster, directory, image=PAUSE, namespace=namespace, options=PATIENT) as process:
        yield process.wait_working()


@pytest.fixture(scope="module")
def real_operator(
    cluster: Cluster, namespace: str, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator for that namespace, whose children run the real image."""
    directory = tmp_path_factory.mktemp("operator")
    with OperatorProcess(cluster, directory, image=image, namespace=namespace, options=PATIENT) as process:
        yield process.wait_working()


@pytest.fixture
def name(kube: Kube, namespace: str) -> Iterator[str]:
    """A name for the test's router, which is deleted afterwards."""
    made = f"r{os.urandom(3).hex()}"
    yield made
    for kind in ("SMPService", "SMPRouter", "NTFRouter"):
        kube.delete(kind, made, namespace)


def router(name: str, kind: str = "SMPRouter", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "weir.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def idle(name: str, kind: str = "SMPRouter", **spec: Any) -> dict[str, Any]:
    """A router whose pods fit no node: for tests of the operator alone."""
    return router(name, kind, placement={"nodeSelector": {"weir.dev/nowhere": "yes"}}, **spec)
