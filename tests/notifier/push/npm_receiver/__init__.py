"""web-push-testing: a push service and its subscribers that we did not write (npm, on Node)."""

import os
import subprocess
import tempfile
from pathlib import Path

PACKAGE = "web-push-testing@1.2.2"


def installed() -> Path:
    """Install the package once, with npm. Return its program."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"
    packages = cache / PACKAGE
    if not packages.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            words = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE)
            subprocess.run([*words, "--prefix", f"{directory}/made"], check=True, timeout=200)
            (Path(directory) / "made").rename(packages)
    return packages / "node_modules/web-push-testing/src/bin/server.js"
