"""The data pipeline on a real cluster: as a CronJob, as a stream, and with Spark's executors as pods.

One release with a router under load, and one volume, for all three: each mode goes on where the one before ended, and
after each the tables have every record once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import drop_namespace, new_namespace
from tests.cluster.harness import HERE, REPO, Cluster, Kube, wait_for
from tests.cluster.release import Release, Values

pytestmark = pytest.mark.timeout(1500)

PIPELINE: Values = {
    "enabled": True,
    "image": {"tag": "dev"},
    "schedule": "0 0 1 1 *",  # runs are started by hand
    "every": "5s",
    "resources": {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "2560Mi"}},
    "storage": {"accessMode": "ReadWriteMany", "size": "1Gi"},
    "executors": {"instances": 1, "requestCPU": "10m", "memory": "600m", "memoryOverhead": "500m"},
}
ROUTER: Values = {"spec": {"replicas": 2, "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}}}}
CHECK = (HERE / "pipeline_check.py").read_text()


def values(mode: str) -> Values:
    return {"router": ROUTER, "pipeline": {**PIPELINE, "mode": mode}}


@pytest.fixture(scope="module")
def pipeline_image(cluster: Cluster, shown: Callable[[str], None]) -> None:
    started = time.monotonic()
    line = [sys.executable, "scripts/image.py", "--pipeline"]
    done = subprocess.run(line, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.load(Path(done.stdout.strip().splitlines()[-1]))
    shown(f"image of the pipeline built and loaded in {time.monotonic() - started:.0f} s")


@pytest.fixture(scope="module")
def release(cluster: Cluster, kube: Kube, image: str, pipeline_image: None) -> Iterator[Release]:
    namespace = new_namespace(kube, "pipeline")
    made = Release(cluster, kube, namespace)
    made.install(values("cron"))
    load(made)
    made.kubectl("apply", "-f", "-", stdin=json.dumps(checker()))
    made.kubectl("wait", "pod/checker", "--for=condition=Ready", "--timeout=120s")
    yield made
    made.helm("uninstall", made.name, "--no-hooks", "--ignore-not-found")
    drop_namespace(kube, namespace)


def checker() -> dict[str, Any]:
    """A pod with the volume and the way to Redis, in which pipeline_check.py runs."""
    sources = [
        {"configMap": {"name": "weir-pipeline"}},
        {"secret": {"name": "weir-edge", "items": [{"key": "redis-password", "path": "password"}]}},
    ]
    sources[0]["configMap"]["items"] = [{"key": f"weir.{name}", "path": name} for name in ("url", "prefix")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "checker"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "checker",
                    "image": "localhost/weir-pipeline:dev",
                    "command": ["sleep", "3600"],
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [
                        {"name": "data", "mountPath": "/data"},
                        {"name": "redis", "mountPath": "/etc/weir/redis/weir"},
                    ],
                }
            ],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "weir-pipeline"}},
                {"name": "redis", "projected": {"defaultMode": 0o440, "sources": sources}},
            ],
        },
    }


def load(release: Release) -> None:
    """Clients outside the pods: queues, messages, a service."""
    address = release.address()
    edges = release.edges()
    release.weir("smp", "check", "--address", address, *(f"--connect={edge}" for edge in edges), "--service")


def published(release: Release, more_than: int) -> int:
    """How many records Redis has, once those are more."""

    def count() -> int | None:
        found = compared(release)
        return found if found > more_than else None

    return wait_for("records of another minute", count, 150, 2)


def compared(release: Release) -> int:
    line = "from weir.pipeline.ingest.registry import *; r = Registry(open('url').read().strip(),"
    line += " password_file='password')\nwith open_stream(r) as s: e = s.extent(); print(e.length if e else 0)"
    text = release.kubectl("exec", "checker", "--", "sh", "-c", f'cd /etc/weir/redis/weir; python3 -c "{line}"')
    return int(text.strip())


def run(release: Release, name: str) -> str:
    """A run of the CronJob, now. Return what it printed."""
    release.kubectl("create", "job", name, "--from=cronjob/weir-pipeline")

    def ended() -> dict[str, Any] | None:
        status: dict[str, Any] = json.loads(release.kubectl("get", "job", name, "-o", "json")).get("status", {})
        return status if status.get("succeeded") or status.get("failed") else None

    status = wait_for("the run to end", ended, 600, 1)
    printed = release.kubectl("logs", f"job/{name}", "--all-containers", check=False)
    assert status.get("succeeded") == 1, printed
    return printed


def check(release: Release) -> dict[str, Any]:
    line = ("exec", "-i", "checker", "--", "python3", "-", "/data/tables", "/etc/weir/redis/weir")
    found: dict[str, Any] = json.loads(release.kubectl(*line, stdin=CHECK))
    assert found["twice"] == 0 and found["invented"] == 0 and found["gold"], found
    return found


def test_as_a_cron_job(release: Release) -> None:
    records = published(release, 1)
    run(release, "cron")
    found = check(release)
    assert found["records"] >= records and found["sends"] > 0
    size = release.kubectl("exec", "checker", "--", "sh", "-c", "wc -c < /data/report.html")
    assert int(size) > 100_000
    assert "</html>" in release.kubectl("exec", "checker", "--", "tail", "-c", "100", "/data/report.html")


def test_with_executors_as_pods(release: Release) -> None:
    before = check(release)["records"]
    release.upgrade(values("spark"))
    load(release)
    records = published(release, before)
    with subprocess.Popen(
        ["kubectl", "-n", release.namespace, "get", "pods", "-w", "-l", "spark-role=executor", "-o", "name"],
        stdout=subprocess.PIPE,
        text=True,
        env=release.cluster.environment,
    ) as watching:
        try:
            run(release, "spark")
        finally:
            watching.kill()
        assert watching.stdout is not None
        executors = set(watching.stdout.read().split())
    assert len(executors) >= 1, "no executor was seen"
    assert check(release)["records"] >= records
    wait_for("executors to go", lambda: not release.kube.list("Pod", release.namespace, "spark-role=executor"), 60)


def test_as_a_stream(release: Release) -> None:
    before = check(release)["records"]
    release.upgrade(values("stream"))
    load(release)
    records = published(release, before)

    def arrived() -> bool:
        program = "from deltalake import DeltaTable; print(DeltaTable('/data/tables/bronze/rollups').count())"
        return int(release.kubectl("exec", "checker", "--", "python3", "-c", program)) >= records

    wait_for("the stream to write them", arrived, 150, 2)
    run(release, "stream")
    assert check(release)["records"] >= records
