"""Java libraries: pinned, and one line if they are not there."""

import os
from pathlib import Path

import pytest

from weir.pipeline.errors import PipelineError
from weir.pipeline.jars import Jar, fetch_jars, find_jars

JAR = Jar("g", "x", "1", "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0")  # of "aaa"


def refusal(directory: Path) -> str:
    with pytest.raises(PipelineError) as error:
        find_jars(directory, [JAR])
    assert "\n" not in str(error.value)
    return str(error.value)


def test_pinned_missing_and_damaged(tmp_path: Path) -> None:
    assert refusal(tmp_path).endswith("x-1.jar is not here; `weir pipeline jars` fetches it")
    path = tmp_path / "x-1.jar"
    path.write_text("aab")
    assert "is damaged, or of another build" in refusal(tmp_path)
    path.write_text("aaa")
    assert find_jars(tmp_path, [JAR]) == [path]
    fetch_jars(tmp_path, pytest.fail, [JAR])  # nothing is missing


def test_without_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(PipelineError, match=r"^Maven is needed to fetch x-1\.jar \(Debian: apt install maven\)$"):
        fetch_jars(tmp_path / "jars", lambda _: None, [JAR])


def test_the_directory_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "WEIR_PIPELINE_JARS", str(tmp_path))
    with pytest.raises(PipelineError, match=str(tmp_path)):
        find_jars()
