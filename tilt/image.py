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


def test_cluster() -> tuple[Path | None, Path]:
    """State and binaries of the test cluster that runs: beside its kubeconfig (Tilt gives commands another one), where
    the environment says, or what its own processes were started with."""
    own = Path.home() / ".cache/weir/cluster"
    cache = Path(os.environ.get("TESTCLUSTER_CACHE") or own)
    kubeconfigs = [os.environ.get(name) for name in ("WEIR_KUBECONFIG", "KUBECONFIG")]
    named = [Path(file).parent for file in kubeconfigs if file]
    named += [Path(path) for path in (os.environ.get("TESTCLUSTER_STATE"), own / "state") if path]
    candidates = [(path, cache) for path in named]
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            found = dict(re.findall(rb"(?:^|\0)TESTCLUSTER_(STATE|CACHE)=([^\0]+)", process.read_bytes()))
        except OSError:
            continue
        if b"STATE" in found:
            theirs = Path(os.fsdecode(found[b"CACHE"])) if b"CACHE" in found else cache
            candidates.append((Path(os.fsdecode(found[b"STATE"])), theirs))
    state = next((state for state, _ in candidates if (state / "containerd.sock").exists()), None)
    # The binaries may be another checkout's: the ones it was started from fit it.
    caches = [cache for at, cache in candidates if at == state and (cache / "bin/ctr").exists()]
    return state, (caches or [cache])[0]


def test_cluster_load() -> list[str]:
    state, cache = test_cluster()
    script = str(REPO / "tests/cluster/cluster.sh")
    return ["env", f"TESTCLUSTER_STATE={state or 'not found'}", f"TESTCLUSTER_CACHE={cache}", script, "load"]


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
