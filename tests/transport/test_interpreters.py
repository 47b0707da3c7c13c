"""The TLS contexts on every CPython from 3.11 on that is here: on PATH, of pyenv, and those of newer Debian releases.

`requires-python` and the classifiers in pyproject.toml name the versions of which this has run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from weir.crypto.certificates import make_ca, make_online
from weir.crypto.keys import KeyType
from weir.crypto.pem import certificates_to_pem, key_to_pem

REPO = Path(__file__).resolve().parents[2]
_CACHE = Path.home() / ".cache" / "weir" / "servers"  # scripts/servers.sh fills it


def _installed() -> Iterator[Path]:
    yield Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/3.*/bin/python"))
    for minor in range(11, 30):
        if (found := shutil.which(f"python3.{minor}")) and ".pyenv/shims" not in found:
            yield Path(found)
    yield from sorted(_CACHE.glob("pythons-*/python3.*"))


@cache
def interpreters() -> dict[str, Path]:
    """Path by version; of each version one."""
    found: dict[str, Path] = {}
    for python in _installed():
        say = "import sys; print(sys.implementation.name, '%d.%d.%d' % sys.version_info[:3])"
        done = subprocess.run([python, "-c", say], capture_output=True, text=True, check=False)
        if not done.returncode and re.fullmatch(r"cpython 3\.\d+\.\d+", done.stdout.strip()):
            version = done.stdout.split()[1]
            if int(version.split(".")[1]) >= 11:
                found.setdefault(version, python)
    return found


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    kinds: tuple[KeyType, ...] = ("ed25519", "ed448")
    for kind in kinds:
        ca = make_ca(kind)
        online = make_online(ca, "test", kind)
        (directory / f"{kind}.crt").write_bytes(certificates_to_pem((online.certificate, ca.certificate)))
        (directory / f"{kind}.key").write_bytes(key_to_pem(online.key))
    return directory


def converse(python: Path, certificates: Path) -> str:
    done = subprocess.run(
        [python, Path(__file__).with_name("interpreter.py"), certificates],
        env={**os.environ, "PYTHONPATH": str(REPO / "services"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("version", sorted(interpreters()))
def test_interpreters_that_are_installed(version: str, certificates: Path) -> None:
    said = converse(interpreters()[version], certificates)
    assert said.startswith(version) and said.endswith(" 8\n")


@pytest.mark.all("fetches interpreters, 60 MB")
def test_interpreters_of_newer_debian_releases(certificates: Path) -> None:
    """Finds versions, too, that pyproject.toml names and no test has run on."""
    subprocess.run(["bash", REPO / "scripts/servers.sh", "pythons"], check=True)
    interpreters.cache_clear()
    tested = {".".join(version.split(".")[:2]) for version in interpreters()}
    for python in interpreters().values():
        converse(python, certificates)
    if list(_CACHE.glob("pythons-*")):
        named = re.findall(r"Python :: (3\.\d+)", (REPO / "pyproject.toml").read_text())
        assert named and set(named) - tested == set()
