"""The Java that Spark runs on, found on this machine.

Spark 4.2 runs on Java 17 and 21, and needs the module jdk.incubator.vector, which small runtimes leave out. JAVA_HOME
decides if it is set. Otherwise `java` of PATH is tried, and then what Linux distributions install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from weir.pipeline.errors import PipelineError

VERSIONS: Final = (17, 21)
_MODULE: Final = "jdk.incubator.vector"
_INSTALLED: Final = Path("/usr/lib/jvm")
_ADVICE: Final = "Debian: apt install openjdk-17-jre-headless; or set JAVA_HOME"


def find_java_home(environment: Mapping[str, str] = os.environ, installed: Path = _INSTALLED) -> Path:
    """Return the home of a Java that Spark can use. Raises PipelineError."""
    reasons = []
    for home in _candidates(environment, installed):
        reason = _unusable(home)
        if reason is None:
            return home
        reasons.append(f"{home} {reason}")
    if not reasons:
        raise PipelineError(f"Spark needs Java 17 or 21, and no Java is here ({_ADVICE})")
    raise PipelineError(f"Spark needs Java 17 or 21: {reasons[0]} ({_ADVICE})")


def _candidates(environment: Mapping[str, str], installed: Path) -> Iterator[Path]:
    if named := environment.get("JAVA_HOME"):
        yield Path(named)
        return
    if found := shutil.which("java", path=environment.get("PATH")):
        yield Path(found).resolve().parents[1]
    homes = {path.resolve() for path in installed.glob("*") if (path / "bin" / "java").exists()}
    yield from sorted(homes)


def _unusable(home: Path) -> str | None:
    """Why Spark cannot use this Java; None if it can."""
    java = home / "bin" / "java"
    try:
        done = subprocess.run(
            [java, "--add-modules", _MODULE, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return "has no bin/java that runs"
    except subprocess.TimeoutExpired:
        return "does not answer"
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if version is not None and int(version[1]) not in VERSIONS:
        return f"is Java {version[1]}"
    if done.returncode or version is None:
        return f"has no module {_MODULE}" if _MODULE in done.stdout + done.stderr else "does not run"
    return None
