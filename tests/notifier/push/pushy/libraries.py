"""Pushy and Groovy, fetched once by Maven."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_POM = Path(__file__).with_name("pom.xml")


def classpath() -> str:
    """Return the class path for `java -cp`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"
    libraries = cache / "pushy-0.15.4"
    if not libraries.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            shutil.copy(_POM, directory)
            goal = ("dependency:copy-dependencies", f"-DoutputDirectory={directory}/jars")
            subprocess.run(["mvn", "-q", "-B", *goal], cwd=directory, check=True, timeout=200)
            (Path(directory) / "jars").rename(libraries)
    return f"{libraries}/*"
