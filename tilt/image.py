#!/usr/bin/env python3
"""Build the development image without Docker and put it where the cluster finds it: image.py REF CONTEXT."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def test_cluster_state() -> Path | None:
    """Where the test cluster that runs has its containerd: beside its kubeconfig (Tilt gives commands another one)."""
    named = [os.environ.get("TESTCLUSTER_STATE"), Path.home() / ".cache/weir/cluster/state"]
    kubeconfigs = [os.environ.get(name) for name in ("WEIR_KUBECONFIG", "KUBECONFIG")]
    candidates = [Path(file).parent for file in kubeconfigs if file] + [Path(path) for path in named if path]
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            found = re.search(rb"(?:^|\0)TESTCLUSTER_STATE=([^\0]+)", process.read_bytes())
        except OSError:
            continue
        candidates += [Path(os.fsdecode(found[1]))] if found else []
    return next((path for path in candidates if (path / "containerd.sock").exists()), None)


def test_cluster_load() -> list[str]:
    cache = os.environ.get("TESTCLUSTER_CACHE") or str(Path.home() / ".cache/weir/cluster")
    state = test_cluster_state() or "not found"
    script = str(REPO / "tests/cluster/cluster.sh")
    return ["env", f"TESTCLUSTER_STATE={state}", f"TESTCLUSTER_CACHE={cache}", script, "load"]


def load_command(context: str, archive: Path, reference: str) -> list[str]:
    """How an image archive gets into this kind of cluster."""
    if own := os.environ.get("WEIR_LOAD_IMAGE"):
        return [*shlex.split(own), str(archive)]
    if context == "testcluster":
        return [*test_cluster_load(), str(archive)]
    if context.startswith("kind-"):
        return ["kind", "load", "image-archive", "--name", context.removeprefix("kind-"), str(archive)]
    if context.startswith("k3d-"):
        return ["k3d", "image", "import", "--cluster", context.removeprefix("k3d-"), str(archive)]
    if context == "minikube":
        return ["minikube", "image", "load", str(archive)]
    # A cluster with a registry: Tilt's default_registry has made the reference.
    return ["skopeo", "copy", f"docker-archive:{archive}", f"docker://{reference}"]


def main() -> int:
    reference, context = sys.argv[1:]
    archive = Path(os.environ.get("WEIR_CACHE", Path.home() / ".cache/weir")) / "image/tilt.tar"
    build = [sys.executable, str(REPO / "scripts/image.py"), "--dev", "--tag", reference, "--out", str(archive)]
    for command in (build, load_command(context, archive, reference)):
        try:
            done = subprocess.run(command, check=False)
        except FileNotFoundError:
            print(
                f"{command[0]} is not here; WEIR_LOAD_IMAGE can name another command that takes an archive",
                file=sys.stderr,
            )
            return 1
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
