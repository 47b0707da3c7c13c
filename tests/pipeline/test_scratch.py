"""Temporary directories: removed at the end, or by the next run; never while somebody holds the lock."""

import fcntl
import subprocess
import sys
from pathlib import Path

from weir.pipeline.scratch import scratch

_HOLD = """
import sys, time
from pathlib import Path
from weir.pipeline.scratch import scratch
with scratch(Path(sys.argv[1])) as place:
    (place.path / "blockmgr").mkdir()
    {inherit}
    print(place.path, flush=True)
    sys.stdin.read()
"""
_CHILD = "import subprocess; subprocess.Popen(['cat'], pass_fds=[place.descriptor])"


def start(parent: Path, inherit: str = "") -> tuple["subprocess.Popen[str]", Path]:
    program = _HOLD.replace("{inherit}", inherit)
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_directory_is_removed_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path / "parent") as place:
        (place.path / "file").write_text("x")
    assert not place.path.exists()


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    process, left = start(tmp_path)
    with scratch(tmp_path):
        assert left.exists(), "a run that lives keeps its directory"
    process.kill()
    process.communicate()
    assert left.exists()
    with scratch(tmp_path) as place:
        assert not left.exists()
        assert place.path.exists()


def test_a_child_that_lives_longer_keeps_the_directory(tmp_path: Path) -> None:
    """As Spark's JVM does when Python is killed."""
    process, left = start(tmp_path, _CHILD)
    process.kill()  # the child ends when its input, which it shares, is closed
    process.wait()
    with scratch(tmp_path):
        assert left.exists()
    assert process.stdin is not None
    process.stdin.close()
    assert process.stdout is not None
    process.stdout.close()
    with (left / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the child has ended
    with scratch(tmp_path):
        assert not left.exists()
