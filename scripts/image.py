#!/usr/bin/env python3
"""Pack the container image as a docker-archive, with no daemon and no root.

    image.py [--dev | --pipeline] [--tag NAME:TAG]... [--out FILE]

What it writes can be loaded with `ctr image import`, `docker load` or skopeo. scripts/rootfs.py makes the files, and
scripts/rootfs_pipeline.py those of Spark. `CONFIG` is what the Dockerfile says in its own words, and tests/image holds
the two against each other.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import rootfs
import rootfs_pipeline

CONFIG: dict[str, Any] = {
    "Env": [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "LANG=C.UTF-8",
        "HOME=/var/lib/weir",
        "PYTHONUNBUFFERED=1",
        "PYTHONDONTWRITEBYTECODE=1",
    ],
    "Entrypoint": ["weir"],
    "Cmd": ["--help"],
    "WorkingDir": "/var/lib/weir",
    "User": f"{rootfs.UID}:{rootfs.UID}",
    "ExposedPorts": {"5223/tcp": {}, "8000/tcp": {}},
    "Labels": {
        "org.opencontainers.image.title": "weir",
        "org.opencontainers.image.licenses": "AGPL-3.0-only",
    },
}
# For Tilt: code synced into /tmp/weir comes first; `weir` is a parent that restarts its child on SIGUSR2.
DEV_ENV = ["PYTHONPATH=/tmp/weir/services:/tmp/weir/operator", "WEIR_RELOAD=1"]
# For `--pipeline`, which serves no port.
PIPELINE_ENV = [f"JAVA_HOME=/{rootfs_pipeline.JAVA}", f"WEIR_PIPELINE_JARS=/{rootfs_pipeline.JARS}"]


def version() -> str:
    return str(tomllib.loads((rootfs.REPO / "pyproject.toml").read_text())["project"]["version"])


def entries(root: Path) -> Iterator[tuple[str, Path]]:
    for directory, names, files in os.walk(root):
        names.sort()
        for name in sorted(names + files):
            path = Path(directory) / name
            yield str(path.relative_to(root)), path


def write_layer(root: Path, out: IO[bytes]) -> None:
    """A tar that depends on names, modes and contents alone: root owns everything, time stands still."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in entries(root):
            info = tar.gettarinfo(str(path), name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = 0
            if info.islnk():
                info.type, info.linkname = tarfile.REGTYPE, ""
                info.size = path.stat().st_size
            if not info.issym():
                info.mode = (info.mode & 0o1777) | 0o444 | (0o111 if info.isdir() or info.mode & 0o100 else 0)
                info.mode = info.mode if name == "tmp" else info.mode & 0o755
            if info.isreg():
                with path.open("rb") as content:
                    tar.addfile(info, content)
            else:
                tar.addfile(info)


def pack(layers: list[Path], config: dict[str, Any], tags: list[str], out: Path) -> str:
    """A docker-archive; returns the image id."""
    digests = [hashlib.sha256(layer.read_bytes()).hexdigest() for layer in layers]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    image = {
        "architecture": machine,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "scripts/image.py"} for _ in layers],
    }
    body = json.dumps(image, sort_keys=True).encode()
    identity = hashlib.sha256(body).hexdigest()
    manifest = [{"Config": f"{identity}.json", "RepoTags": tags, "Layers": [f"{d}/layer.tar" for d in digests]}]
    partial = out.with_suffix(".part")
    with tarfile.open(partial, "w") as tar:

        def add(name: str, content: bytes) -> None:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))

        add(f"{identity}.json", body)
        for layer, digest in zip(layers, digests, strict=True):
            info = tarfile.TarInfo(f"{digest}/layer.tar")
            info.size = layer.stat().st_size
            with layer.open("rb") as content:
                tar.addfile(info, content)
        add("manifest.json", json.dumps(manifest).encode())
    partial.replace(out)
    return f"sha256:{identity}"


def kept_layer(name: str, inputs: list[str], make: Callable[[Path], None], progress: IO[str]) -> tuple[Path, Path]:
    """(root directory, layer) of what `make` makes, made again only when the inputs changed."""
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
    root, layer = rootfs.CACHE / f"{name}-{key}", rootfs.CACHE / f"{name}-{key}.tar"
    if layer.exists() and root.exists():
        return root, layer
    print(f"image: {name} from Debian packages and wheels (once; minutes at most)", file=progress, flush=True)
    for old in rootfs.CACHE.glob(f"{name}-*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    partial = rootfs.CACHE / f"{name}.part"
    shutil.rmtree(partial, ignore_errors=True)
    make(partial)
    partial.rename(root)
    part = layer.with_suffix(".part")
    with part.open("wb") as out:
        write_layer(root, out)
    part.rename(layer)
    return root, layer


def base_layer(progress: IO[str]) -> tuple[Path, Path]:
    """Everything but Weir's own code."""
    wanted = rootfs.debs()
    inputs = [json.dumps(wanted), (rootfs.REPO / "requirements/run.txt").read_text(), Path(rootfs.__file__).read_text()]
    return kept_layer("base", inputs, lambda root: rootfs.base(root, wanted), progress)


def pipeline_layer(base: Path, progress: IO[str]) -> Path:
    """The further packages of the pipeline."""
    files = ("requirements/pipeline.txt", "services/weir/pipeline/jars.py", "services/weir/pipeline/s3.py")
    inputs = [base.name, *((rootfs.REPO / file).read_text() for file in files)]
    inputs += [json.dumps(rootfs.debs(rootfs_pipeline.JDK)), Path(rootfs_pipeline.__file__).read_text()]
    return kept_layer("pipeline", inputs, lambda root: rootfs_pipeline.pipeline(base, root), progress)[1]


def dev_layer(root: Path) -> None:
    target = root / "usr/local/bin/weir"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(rootfs.REPO / "tilt/reload.py", target)
    target.chmod(0o755)


def build(tags: list[str], out: Path, dev: bool, progress: IO[str], pipeline: bool = False) -> None:
    started = time.monotonic()
    rootfs.CACHE.mkdir(parents=True, exist_ok=True)
    root, base = base_layer(progress)
    config = json.loads(json.dumps(CONFIG))
    config["Labels"]["org.opencontainers.image.version"] = version()
    with tempfile.TemporaryDirectory(dir=rootfs.CACHE) as scratch:
        layers = [base]
        if pipeline:
            layers.append(pipeline_layer(root, progress))
            config["Env"] += PIPELINE_ENV
            config["Labels"]["org.opencontainers.image.title"] = "weir-pipeline"
            del config["ExposedPorts"]

        def layer(name: str) -> Path:
            file = Path(scratch) / f"{name}.tar"
            with file.open("wb") as content:
                write_layer(Path(scratch) / name, content)
            layers.append(file)
            return file

        rootfs.weir(Path(scratch) / "weir", root)
        layer("weir")
        if dev:
            dev_layer(Path(scratch) / "dev")
            layer("dev")
            config["Env"] += DEV_ENV
        out.parent.mkdir(parents=True, exist_ok=True)
        identity = pack(layers, config, tags, out)
        size = sum(file.stat().st_size for file in layers)
    print(
        f"image: {' '.join(tags)} {identity[:19]} {size / 1e6:.0f} MB in {time.monotonic() - started:.1f} s",
        file=progress,
    )
    print(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--dev", action="store_true", help="with the parent that restarts on live update (tilt/reload.py)"
    )
    kind.add_argument("--pipeline", action="store_true", help="with Java, Spark and what else `weir pipeline` needs")
    parser.add_argument("--tag", action="append", help="default: localhost/weir[-pipeline]:dev and :VERSION")
    parser.add_argument("--out", type=Path, help="default: weir[-pipeline].tar in the cache")
    options = parser.parse_args()
    name = "weir-pipeline" if options.pipeline else "weir"
    tags = options.tag or [f"localhost/{name}:dev", f"localhost/{name}:{version()}"]
    out = options.out or rootfs.CACHE / f"{name}.tar"
    try:
        build(tags, out, options.dev, sys.stderr, options.pipeline)
    except (rootfs.ImageError, OSError, subprocess.CalledProcessError) as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
