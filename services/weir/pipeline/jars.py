"""Delta Lake's Java libraries: pinned, fetched once, and given to Spark as local files.

`weir pipeline jars` fetches them from Maven Central with Maven, so that Maven's mirrors and proxies are used. The other
commands fetch nothing: they check the files and stop with one line if any is missing.

The versions fit the pinned version of pyspark: a Delta of another version fails when Spark loads it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from weir.pipeline.errors import PipelineError

DIRECTORY_VARIABLE: Final = "WEIR_PIPELINE_JARS"


class Jar(NamedTuple):
    group: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"


JARS: Final = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar("io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)


def default_directory() -> Path:
    if named := os.environ.get(DIRECTORY_VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir" / "jars"


def find_jars(directory: Path | None = None) -> list[Path]:
    """Return the paths of all jars. Raises PipelineError if one is missing or is not the pinned one."""
    directory = directory or default_directory()
    for jar in JARS:
        path = directory / jar.file
        if not path.is_file():
            raise PipelineError(f"Delta Lake's library {path} is not here; `weir pipeline jars` fetches it")
        if not _is_pinned(path, jar):
            raise PipelineError(f"{path} is damaged, or of another build; delete it, then `weir pipeline jars`")
    return [directory / jar.file for jar in JARS]


def fetch_jars(directory: Path, say: Callable[[str], None]) -> None:
    """Fetch what is missing. Raises PipelineError."""
    for jar in JARS:
        path = directory / jar.file
        if path.is_file() and _is_pinned(path, jar):
            continue
        say(f"fetching {jar.file} with Maven")
        _fetch(jar, path)


def _fetch(jar: Jar, path: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PipelineError(f"Maven is needed to fetch {jar.file} (Debian: apt install maven)")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as directory:
            artifact = f"{jar.group}:{jar.name}:{jar.version}"
            done = subprocess.run(
                [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"],
                cwd=directory,
                capture_output=True,
                text=True,
                check=False,
            )
            copied = Path(directory) / jar.file
            if done.returncode or not copied.is_file():
                lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
                raise PipelineError(f"Maven could not fetch {artifact}: {lines[0] if lines else 'no reason given'}")
            if not _is_pinned(copied, jar):
                raise PipelineError(f"{artifact}, as Maven fetched it, is not the pinned file")
            copied.replace(path)
    except OSError as error:
        raise PipelineError(f"{path.parent}: {error.strerror}") from None


def _is_pinned(path: Path, jar: Jar) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
