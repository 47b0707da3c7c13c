"""The Dockerfile itself, built by buildah on a base from debootstrap, against what `make image` makes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import rootfs

import image
from tests.image.conftest import Built, read

pytestmark = [pytest.mark.all("it builds the image"), pytest.mark.timeout(900)]

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources"))


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}: {(done.stdout + done.stderr)[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def base() -> Path:
    """Debian's base as a tar, kept for the next run; what the Dockerfile's FROM names cannot be had offline."""
    missing = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
    if os.getuid() != 0 or missing:
        pytest.skip("needs root, buildah and debootstrap (apt install buildah debootstrap)")
    kept = rootfs.CACHE / "dockerfile-base.tar"
    if not kept.exists():
        work = rootfs.CACHE / "debootstrap"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        run("debootstrap", "--variant=minbase", rootfs.SUITE, work)
        # The machine's own suites, security among them: both images then come from the same packages.
        for source in SOURCES:
            if source.exists() and source.stat().st_size:
                (work / "etc/apt/sources.list").unlink(missing_ok=True)
                shutil.copy2(source, work / source.relative_to("/"))
        run("tar", "-C", work, "-cf", kept.with_suffix(".part"), ".")
        kept.with_suffix(".part").rename(kept)
        shutil.rmtree(work)
    return kept


@pytest.fixture(scope="module")
def dockers(base: Path, in_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    work = tmp_path_factory.mktemp("buildah")
    storage = ("--root", work / "store", "--runroot", work / "run", "--storage-driver", "overlay")
    try:
        container = run("buildah", *storage, "from", "scratch").strip()
        run("buildah", *storage, "add", "-q", container, base, "/")
        run("buildah", *storage, "commit", "-q", "--rm", container, "localhost/base:1")
        # pip may need this machine's certificates and settings.
        (work / "pip.conf").write_text("[global]\ncert = /host-certificates.crt\ntimeout = 180\n")
        # apt may need this machine's way to the mirror, which may be an old copy of Debian's.
        acquire = [line for line in run("apt-config", "dump").splitlines() if line.startswith("Acquire::")]
        (work / "apt.conf").write_text("\n".join(acquire) + "\n")
        volumes = tuple(
            word
            for source, target in (
                (CERTIFICATES, "/host-certificates.crt"),
                (work / "pip.conf", "/etc/pip.conf"),
                (work / "apt.conf", "/etc/apt/apt.conf.d/99host"),
            )
            for word in ("-v", f"{source}:{target}:ro")
        )
        options = ("--isolation", "chroot", "--pull-never", "--network", "host", "--build-arg", "BASE=localhost/base:1")
        run("buildah", *storage, "bud", *options, *volumes, "-t", "localhost/weir:docker", in_tree)
        archive = work / "weir.tar"
        run(
            "buildah",
            *storage,
            "push",
            "-q",
            "localhost/weir:docker",
            f"docker-archive:{archive}:localhost/weir:docker",
        )
        yield read(archive)
    finally:
        subprocess.run(["buildah", *map(str, storage), "rm", "--all"], capture_output=True, check=False)
        shutil.rmtree(work, ignore_errors=True)


def described(built: Built) -> dict[str, tuple[str, int, str, int]]:
    kinds = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "file"}
    return {
        name.rstrip("/"): (
            kinds[info.type],
            info.mode & 0o7777 if not info.issym() else 0,
            info.linkname if info.issym() else "",
            0,
        )
        for name, info in built.files.items()
    }


def test_same_files(dockers: Built, built: Built) -> None:
    docker, script = described(dockers), described(built)
    assert sorted(set(docker) ^ set(script)) == []
    assert {name: (docker[name], script[name]) for name in docker if docker[name] != script[name]} == {}


def test_same_contents(dockers: Built, built: Built) -> None:
    different = [
        name
        for name, info in built.files.items()
        if info.isreg() and dockers.files[name].isreg() and dockers.files[name].size != info.size
    ]
    assert different == []


def test_same_settings(dockers: Built) -> None:
    config = dockers.config["config"]
    for key, value in image.CONFIG.items():
        found = config[key]
        assert {**found, **value} == found if isinstance(value, dict) else found == value, key
    assert sum(dockers.layers) < 200_000_000
