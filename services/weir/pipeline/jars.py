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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from weir.pipeline.errors import PipelineError

DIRECTORY_VARIABLE: Final = "WEIR_PIPELINE_JARS"


class Jar(NamedTuple):
    group: str
    name: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}{self.classifier and '-' + self.classifier}.jar"


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


def find_jars(directory: Path | None = None, jars: Sequence[Jar] = JARS) -> list[Path]:
    """Return the paths of these jars. Raises PipelineError if one is missing or is not the pinned one."""
    directory = directory or default_directory()
    for jar in jars:
        path = directory / jar.file
        if not path.is_file():
            raise PipelineError(f"the Java library {path} is not here; `weir pipeline jars` fetches it")
        if not _is_pinned(path, jar):
            raise PipelineError(f"{path} is damaged, or of another build; delete it, then `weir pipeline jars`")
    return [directory / jar.file for jar in jars]


def fetch_jars(directory: Path, say: Callable[[str], None], jars: Sequence[Jar] = JARS) -> None:
    """Fetch what is missing, all by one call of Maven. Raises PipelineError."""
    try:
        missing = [jar for jar in jars if not ((path := directory / jar.file).is_file() and _is_pinned(path, jar))]
        if missing:
            say(f"fetching {missing[0].file if len(missing) == 1 else f'{len(missing)} Java libraries'} with Maven")
            directory.mkdir(parents=True, exist_ok=True)
            _fetch(missing, directory)
    except OSError as error:
        raise PipelineError(f"{directory}: {error.strerror}") from None


def _fetch(jars: Sequence[Jar], directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PipelineError(f"Maven is needed to fetch {jars[0].file} (Debian: apt install maven)")
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        Path(scratch, "pom.xml").write_text(_pom(jars))
        done = subprocess.run(
            [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={scratch}"],
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )
        for jar in jars:
            copied = Path(scratch) / jar.file
            if done.returncode or not copied.is_file():
                lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
                reason = lines[0] if lines else "no reason given"
                raise PipelineError(f"Maven could not fetch {jar.file}: {reason}")
            if not _is_pinned(copied, jar):
                raise PipelineError(f"{jar.file}, as Maven fetched it, is not the pinned file")
        for jar in jars:
            Path(scratch, jar.file).replace(directory / jar.file)


def _pom(jars: Sequence[Jar]) -> str:
    """A project that depends on these jars, and on nothing that they depend on."""
    dependencies = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.name}</artifactId><version>{jar.version}</version>"
        + (f"<classifier>{jar.classifier}</classifier>" if jar.classifier else "")
        + "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for jar in jars
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>weir</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )


def _is_pinned(path: Path, jar: Jar) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
