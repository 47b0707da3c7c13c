"""The directory of the tables: marked, locked, and with small files that are whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from weir.pipeline.directory import MARKER, Directory
from weir.pipeline.errors import PipelineError

pytestmark = pytest.mark.spark  # pyarrow reads and writes the files


def refusal(directory: Directory) -> str:
    with pytest.raises(PipelineError) as error:
        directory.claim()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_directory_is_made_marked_and_known_again(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path / "a" / "tables"))
    directory.claim()
    directory.claim()
    assert (tmp_path / "a" / "tables" / MARKER).exists()


def test_directories_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    assert (
        refusal(Directory(str(tmp_path))) == f"{tmp_path} has other files and no tables of Weir (there is no {MARKER})"
    )
    assert (tmp_path / "photo.jpg").exists()
    assert len(list(tmp_path.iterdir())) == 1, "nothing was left there"
    assert str(tmp_path / "photo.jpg") in refusal(Directory(str(tmp_path / "photo.jpg")))


@pytest.mark.parametrize(
    ("marker", "reason"), [("{}", "is damaged"), ("[", "is damaged"), ('{"version": 2}', "a newer version of Weir")]
)
def test_markers(tmp_path: Path, marker: str, reason: str) -> None:
    (tmp_path / MARKER).write_text(marker)
    assert reason in refusal(Directory(str(tmp_path)))


def test_files(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path))
    assert directory.read("a/b") is None
    directory.write("a/b", b"one")
    directory.write("a/b", b"two")
    (tmp_path / "a" / "c.new").touch()  # a write that was killed
    assert (directory.read("a/b"), directory.names("a"), directory.names("x")) == (b"two", ["b"], [])
    directory.delete("a/b")
    directory.delete("a/b")
    assert directory.names("a") == []


def test_places_that_spark_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Directory("data/tables/").location("x") == str(tmp_path / "data/tables/x")
    assert Directory("s3a://bucket/path/").location("x") == "s3a://bucket/path/x"


_HOLD = """
import subprocess, sys
from weir.pipeline.directory import Directory
with Directory(sys.argv[1]).locked("ingest") as locks:
    child = subprocess.Popen(["cat"], pass_fds=locks)
    print("locked", flush=True)
    child.wait()
"""


def test_one_at_a_time_and_the_jvm_keeps_the_lock_of_a_killed_run(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path))
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    for _ in range(2):  # while it lives, and while only its child lives
        with pytest.raises(PipelineError, match="another `weir pipeline ingest` writes to"), directory.locked("ingest"):
            pass
        holder.kill()
        holder.wait()
    with directory.locked("tables"):
        pass
    assert holder.stdin is not None
    holder.stdin.close()
    with directory.locked("ingest", patience=60):
        pass
    holder.stdout.close()
