"""The progress line and the commands that repeat failed tests, in a run of pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_with_one_failure(tmp_path: Path, workers: str) -> None:
    for name, body in (("one", "pass"), ("two", "assert 1 == 2")):
        directory = tmp_path / name
        directory.mkdir()
        # A conftest below the root makes pytest put its plugins into a set.
        (directory / "conftest.py").write_text("")
        (directory / f"test_{name}.py").write_text(f"def test_{name}() -> None:\n    {body}\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.progress", "-p", "no:cacheprovider", "-n", workers],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "tests: 2 of 2, 1 failed" in run.stdout
    assert ".venv/bin/python -m pytest two/test_two.py::test_two" in run.stdout
    assert "1 failed, 1 passed" in run.stdout
