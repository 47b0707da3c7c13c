#!/usr/bin/env python3
"""Pack the container image as a docker-archive, with no daemon and no root.

    image.py [--dev] [--tag NAME:TAG]... [--out FILE]

What it writes can be loaded with `ctr image import`, `docker load` or skopeo. scripts/rootfs.py makes the files;
`CONFIG` is what the Dockerfile's last stage says in its own words, and tests/image holds the two against each other.
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
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import rootfs

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


def base_layer(progress: IO[str]) -> tuple[Path, Path]:
    """(root directory, layer) of everything but Weir's own code, made again only when its inputs changed."""
    wanted = rootfs.debs()
    inputs = [json.dumps(wanted), (rootfs.REPO / "requirements/run.txt").read_text(), Path(rootfs.__file__).read_text()]
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
    root, layer = rootfs.CACHE / f"base-{key}", rootfs.CACHE / f"base-{key}.tar"
    if layer.exists() and root.exists():
        return root, layer
    print("image: base from Debian packages and wheels (once; about a minute)", file=progress, flush=True)
    for old in rootfs.CACHE.glob("base-*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    partial = rootfs.CACHE / "base.part"
    shutil.rmtree(partial, ignore_errors=True)
    rootfs.base(partial, wanted)
    partial.rename(root)
    part = layer.with_suffix(".part")
    with part.open("wb") as out:
        write_layer(root, out)
    part.rename(layer)
    return root, layer


def dev_layer(root: Path) -> None:
    target = root / "usr/local/bin/weir"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(rootfs.REPO / "tilt/reload.py", target)
    target.chmod(0o755)


def build(tags: list[str], out: Path, dev: bool, progress: IO[str]) -> None:
    started = time.monotonic()
    rootfs.CACHE.mkdir(parents=True, exist_ok=True)
    root, base = base_layer(progress)
    config = json.loads(json.dumps(CONFIG))
    config["Labels"]["org.opencontainers.image.version"] = version()
    with tempfile.TemporaryDirectory(dir=rootfs.CACHE) as scratch:
        layers = [base]

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
    parser.add_argument(
        "--dev", action="store_true", help="with the parent that restarts on live update (tilt/reload.py)"
    )
    parser.add_argument("--tag", action="append", help="default: localhost/weir:dev and localhost/weir:VERSION")
    parser.add_argument("--out", type=Path, default=rootfs.CACHE / "weir.tar")
    options = parser.parse_args()
    tags = options.tag or ["localhost/weir:dev", f"localhost/weir:{version()}"]
    try:
        build(tags, options.out, options.dev, sys.stderr)
    except (rootfs.ImageError, OSError, subprocess.CalledProcessError) as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
