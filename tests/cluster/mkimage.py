#!/usr/bin/env python3
"""Packs files as a container image (docker-archive), with no daemon: the small images the test cluster itself runs.

mkimage.py OUT.tar NAME:TAG [--rootfs DIR]... [--add SRC=/DEST]... [--link /DEST=TARGET]... [--entrypoint JSON]
Each --rootfs is a layer; all --add and --link together are one more.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def owned_by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def layers_of(options: argparse.Namespace) -> list[Path]:
    layers: list[Path] = []

    def layer() -> tuple[Path, tarfile.TarFile]:
        path = Path(f"{options.out}.l{len(layers)}")
        layers.append(path)
        return path, tarfile.open(path, "w", format=tarfile.PAX_FORMAT)

    for root in options.rootfs:
        _, tar = layer()
        with tar:
            for name in sorted(os.listdir(root)):
                tar.add(os.path.join(root, name), name)
    if options.add or options.link:
        _, tar = layer()
        with tar:
            for pair in options.add:
                source, target = pair.split("=", 1)
                tar.add(source, target.lstrip("/"), filter=owned_by_root)
            for pair in options.link:
                name, target = pair.split("=", 1)
                info = tarfile.TarInfo(name.lstrip("/"))
                info.type, info.linkname = tarfile.SYMTYPE, target
                tar.addfile(info)
    return layers


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("name")
    for option in ("rootfs", "add", "link"):
        parser.add_argument("--" + option, action="append", default=[])
    parser.add_argument("--entrypoint", type=json.loads)
    parser.add_argument("--cmd", type=json.loads)
    options = parser.parse_args()
    layers = layers_of(options)
    digests = [digest(layer) for layer in layers]
    settings = {"Env": [PATH], "Entrypoint": options.entrypoint, "Cmd": options.cmd, "WorkingDir": "/"}
    image = {
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {key: value for key, value in settings.items() if value},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in digests]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "mkimage"} for _ in digests],
    }
    body = json.dumps(image).encode()
    name = hashlib.sha256(body).hexdigest() + ".json"
    manifest = [{"Config": name, "RepoTags": [options.name], "Layers": [f"{one}/layer.tar" for one in digests]}]
    with tarfile.open(options.out, "w") as tar:
        for file, content in ((name, body), ("manifest.json", json.dumps(manifest).encode())):
            info = tarfile.TarInfo(file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for layer, one in zip(layers, digests, strict=True):
            tar.add(layer, f"{one}/layer.tar")
    for layer in layers:
        layer.unlink()
    print(options.out, os.path.getsize(options.out))


if __name__ == "__main__":
    main()
