"""One image for all tests here, made from a copy of the tree so that it does not change under them."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "scripts"))

import rootfs  # noqa: E402

import image  # noqa: E402


@dataclass
class Built:
    archive: Path
    config: dict[str, Any]
    manifest: dict[str, Any]
    files: dict[str, tarfile.TarInfo]  # of all layers, a later one's over an earlier one's
    layers: list[int]

    def unpack(self, target: Path) -> None:
        with tarfile.open(self.archive) as outer:
            for layer in self.manifest["Layers"]:
                content = outer.extractfile(layer)
                assert content is not None
                with tarfile.open(fileobj=content) as inner:
                    inner.extractall(target, filter="fully_trusted")


def read(archive: Path) -> Built:
    with tarfile.open(archive) as outer:

        def member(name: str) -> bytes:
            content = outer.extractfile(name)
            assert content is not None
            return content.read()

        (manifest,) = json.loads(member("manifest.json"))
        config = json.loads(member(manifest["Config"]))
        files: dict[str, tarfile.TarInfo] = {}
        sizes = []
        for layer in manifest["Layers"]:
            body = member(layer)
            sizes.append(len(body))
            with tarfile.open(fileobj=io.BytesIO(body)) as inner:
                files |= {info.name: info for info in inner.getmembers()}
    return Built(archive, config, manifest, files, sizes)


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache")
    for name in ("services", "operator", "requirements", "tilt", "scripts"):
        shutil.copytree(REPO / name, copy / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "Dockerfile", ".dockerignore"):
        if (REPO / name).exists():
            shutil.copy2(REPO / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def in_tree(tree: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rootfs, "REPO", tree)
        yield tree


@pytest.fixture(scope="session")
def built(in_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    archive = tmp_path_factory.mktemp("image") / "weir.tar"
    try:
        image.build(["localhost/weir:test"], archive, False, sys.stderr)
    except rootfs.ImageError as error:
        if "use the Dockerfile" in str(error):
            pytest.skip(str(error))
        raise
    return read(archive)
