"""Lines that lose one direction, both, or become slow, and Redis nodes that are kept apart."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.network import NO_NAMESPACES, enter

_SCRIPT = Path(__file__).with_name("lines.py")


@pytest.mark.needs("unshare", "nsenter", "ip", "tc")
def test_lines() -> None:
    if not (words := enter()):
        pytest.skip(NO_NAMESPACES)
    done = subprocess.run(
        [*words, sys.executable, "-m", "tests.faults.lines"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == [
        *("whole:both", "in:request", "out:nothing", "mended:both", "slow:both", "nodes:both,both"),
        *("apart:nothing,both,both", "exiled:nothing,nothing,both", "to-sentinel:nothing", "joined:both,both,both"),
    ], done.stderr
