import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weir.bench.target import Target, find_target


@pytest.fixture(scope="package")
def memory_router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A router without a store, in a process of its own."""
    directory = tmp_path_factory.mktemp("bench")
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.memory_router", str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield find_target(process.stdout.readline().strip(), None, pids=(process.pid,))
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
