#!/usr/bin/env python3
"""Builds the development image without Docker and loads it into the cluster: image.py REF CONTEXT."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def test_cluster() -> tuple[Path | None, Path]:
    """Find the directories of the running test cluster: its state and its binaries.

    The state is looked for beside the kubeconfig (Tilt gives its commands another kubeconfig, so WEIR_KUBECONFIG has
    the original), in TESTCLUSTER_STATE, in the default directory, and in the environment of running processes.
    """
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
    # Several directories may have binaries. Prefer those that the cluster was started with.
    caches = [cache for at, cache in candidates if at == state and (cache / "bin/ctr").exists()]
    return state, (caches or [cache])[0]


def test_cluster_load() -> list[str]:
    state, cache = test_cluster()
    script = str(REPO / "tests/cluster/cluster.sh")
    return ["env", f"TESTCLUSTER_STATE={state or 'not found'}", f"TESTCLUSTER_CACHE={cache}", script, "load"]


def load_command(context: str, archive: Path, reference: str) -> list[str]:
    """Return the command that loads an image archive into a cluster of this kind."""
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
    # All other clusters pull from a registry. Tilt's default_registry has put the registry into the reference.
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
                f"{command[0]} was not found; set WEIR_LOAD_IMAGE to a command that loads an image archive",
                file=sys.stderr,
            )
            return 1
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
