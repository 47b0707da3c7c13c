"""Imports point one way, and modules stay one thing."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 400


def test_the_contracts_of_import_linter_are_kept() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_the_contracts_see_the_whole_house() -> None:
    """A package that no contract knows would escape them."""
    contracts = (ROOT / "pyproject.toml").read_text()
    packages = [path.parent.name for path in (ROOT / "services" / "weir").glob("*/__init__.py")]
    assert "router" in packages
    assert [name for name in packages if f"weir.{name}" not in contracts] == []


def test_modules_are_one_thing() -> None:
    modules = [*(ROOT / "services").rglob("*.py"), *(ROOT / "operator").rglob("*.py")]
    long = {str(path.relative_to(ROOT)): n for path in modules if (n := path.read_text().count("\n")) > LONGEST}
    assert long == {}
