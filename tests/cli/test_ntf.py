"""`weir ntf` says what it is and stays until SIGTERM."""

import signal
import subprocess
import sys


def test_it_says_so_and_waits() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "weir.cli.main", "ntf", "--config", "/etc/weir/weir.toml"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "not part of this release" in process.stdout.readline()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
