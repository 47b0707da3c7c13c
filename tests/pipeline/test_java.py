"""A Java that Spark can use, or one line about what is here instead."""

import os
import shutil
from pathlib import Path

import pytest

from weir.pipeline.errors import PipelineError
from weir.pipeline.java import find_java_home

_INSTALLED = Path("/usr/lib/jvm")


def java(home: Path, version: str, *, module: bool = True) -> Path:
    """A program that answers as a Java of this version does, for versions that are not installed here."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    lacks = "echo 'java.lang.module.FindException: Module jdk.incubator.vector not found' >&2; exit 1"
    program.write_text(f"#!/bin/sh\n{'' if module else lacks}\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


def refusal(environment: dict[str, str], installed: Path) -> str:
    with pytest.raises(PipelineError) as error:
        find_java_home(environment, installed)
    text = str(error.value)
    assert "\n" not in text
    assert "apt install openjdk-17-jre-headless" in text
    return text


@pytest.mark.needs("java")
def test_the_java_of_this_machine() -> None:
    path = os.environ["PATH"]
    assert (find_java_home({"PATH": path}) / "bin" / "java").exists()


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_home_decides(tmp_path: Path, version: str) -> None:
    home = java(tmp_path / "a", version)
    java(tmp_path / "jvm" / "b", "21.0.2")
    assert find_java_home({"JAVA_HOME": str(home), "PATH": os.environ["PATH"]}, tmp_path / "jvm") == home


def test_another_one_is_found_when_the_first_does_not_fit(tmp_path: Path) -> None:
    first, second = java(tmp_path / "jvm" / "a", "11.0.2"), java(tmp_path / "jvm" / "b", "21.0.2")
    assert find_java_home({"PATH": str(first / "bin")}, tmp_path / "jvm") == second


def test_no_java(tmp_path: Path) -> None:
    assert refusal({"PATH": str(tmp_path)}, tmp_path).startswith("Spark needs Java 17 or 21, and no Java is here")


@pytest.mark.parametrize(
    ("version", "module", "reason"),
    [
        ("1.8.0_392", True, "is Java 8"),
        ("11.0.21", True, "is Java 11"),
        ("25.0.3", True, "is Java 25"),
        ("17.0.1", False, "has no module jdk.incubator.vector"),
    ],
)
def test_wrong_java(tmp_path: Path, version: str, module: bool, reason: str) -> None:
    home = java(tmp_path / "a", version, module=module)
    assert f"{home} {reason}" in refusal({"JAVA_HOME": str(home)}, tmp_path)


def test_java_home_that_is_no_java(tmp_path: Path) -> None:
    assert "has no bin/java that runs" in refusal({"JAVA_HOME": str(tmp_path)}, tmp_path)
    shutil.copy("/bin/true", java(tmp_path / "b", "17") / "bin" / "java")
    assert "does not run" in refusal({"JAVA_HOME": str(tmp_path / "b")}, tmp_path)
