"""Our Web Push against a push service and subscribers that somebody else wrote."""

import json
import subprocess
import sys

import pytest

from tests.faults.network import NO_NAMESPACES, enter
from tests.notifier.push.npm_receiver import installed


@pytest.mark.all("installs web-push-testing with npm")
@pytest.mark.needs("node", "npm", "unshare", "ip")
@pytest.mark.timeout(300)
def test_subscribers_of_web_push_testing_decrypt_our_pushes() -> None:
    inside = enter()
    if not inside:
        pytest.skip(NO_NAMESPACES)
    done = subprocess.run(
        [*inside, sys.executable, "-m", "tests.notifier.push.npm_receiver", str(installed())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    code = result.pop("code")
    assert result == {
        "MESSAGES": "Delivered()",
        "VERIFICATION": "Delivered()",
        "CHECK": "Delivered()",
        "wrong key": "Failed()",
        "messages": [1, code, None],
        "expired": "Invalid(reason=<InvalidReason.UNREGISTERED: 'UNREGISTERED'>)",
    }, done.stderr
