"""Our client of Apple's service against a server that somebody else wrote."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.network import NO_NAMESPACES, enter
from tests.notifier.push.pushy.libraries import classpath


@pytest.mark.all("fetches Pushy with Maven and starts a JVM")
@pytest.mark.needs("java", "mvn", "unshare", "ip")
@pytest.mark.timeout(300)
def test_pushes_through_pushys_server(tmp_path: Path) -> None:
    inside = enter()
    if not inside:
        pytest.skip(NO_NAMESPACES)
    done = subprocess.run(
        [*inside, sys.executable, "-m", "tests.notifier.push.pushy", classpath(), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["outcomes"] == {
        "00": "Delivered()",
        "01": "Invalid(reason=<InvalidReason.BAD: 'BAD'>)",
        "02": "Invalid(reason=<InvalidReason.TOPIC: 'TOPIC'>)",
        "03": "Invalid(reason=<InvalidReason.UNREGISTERED: 'UNREGISTERED'>)",
        "04": "Failed()",
        "05": "Failed()",
        "06": "RetryLater(after=None)",
        "07": "RetryLater(after=None)",
        "wrong key": "Failed()",
    }
    assert result["many"] == ["Delivered()"]
    assert 1 <= result["connections"] <= 4 + 2  # two were retired by "07", and may not be closed yet
