"""The test cluster's own volumes: claims are served even when one of the provisioner's two watches ends alone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.cluster.harness import Cluster, Kube, wait_for


def watchers(cluster: Cluster) -> dict[str, int]:
    """The provisioner's kubectl processes, by what they watch."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            ours = f"TESTCLUSTER_STATE={cluster.state}\0".encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if ours and words[1:2] == [b"get"] and b"-w" in words:
            found[words[2].decode()] = int(process.name)
    return found


def test_a_claim_is_served_after_a_watch_has_ended(cluster: Cluster, kube: Kube, namespace: str) -> None:
    for what in ("pvc", "pv"):
        before = wait_for("both watches", lambda: len(found := watchers(cluster)) == 2 and found, 20)
        os.kill(before[what], signal.SIGKILL)
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": what},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        }
        kube.create(claim, namespace)

        def bound(name: str = what) -> bool:
            return bool(kube.get("PersistentVolumeClaim", name, namespace)["status"]["phase"] == "Bound")

        wait_for("the volume", bound, 30)
        assert not set(watchers(cluster).values()) & set(before.values()), "when one ends, both do"
