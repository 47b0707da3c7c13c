"""`weir pipeline ingest`: which routers it reads, and one line for what it cannot do. No Spark is started."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from weir.cli.main import main
from weir.cli.pipeline_ingest import _registries
from weir.pipeline.ingest.registry import Registry

_NONE = argparse.Namespace(home=[], config=[], ntf_config=[], redis=[], redis_dir=[], password_file=None)


def registries(**options: object) -> list[Registry]:
    return _registries(argparse.Namespace(**{**vars(_NONE), **options}))


def test_the_routers_of_a_redis() -> None:
    assert registries(redis=["redis://h/1"]) == [Registry("redis://h/1", ""), Registry("redis://h/1", "ntf")]
    assert registries(redis=["redis://h#", "redis://h#eu"], password_file=Path("p")) == [
        Registry("redis://h", "", password_file="p"),
        Registry("redis://h", "eu", password_file="p"),
    ]


def test_configuration_files(tmp_path: Path) -> None:
    smp, ntf = tmp_path / "smp.toml", tmp_path / "ntf.toml"
    smp.write_text('[redis]\nurl = "redis://a"\nprefix = "eu"\npassword_file = "secret"\n')
    ntf.write_text('[redis]\nurl = "redis://b"\npassword = "x"\n')
    assert registries(config=[smp], ntf_config=[ntf]) == [
        Registry("redis://a", "eu", password_file=str(tmp_path / "secret")),
        Registry("redis://b", "ntf", "x"),
    ]


def test_directories_that_kubernetes_mounts(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://a\n")
    assert registries(redis_dir=[tmp_path]) == [Registry("redis://a")]
    (tmp_path / "password").write_text("x")
    (tmp_path / "prefix").write_text("eu\n")
    assert registries(redis_dir=[tmp_path]) == [Registry("redis://a", "eu", password_file=str(tmp_path / "password"))]


def test_the_home_of_weir_up(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"redis": {"url": "unix:///r"}}))
    assert registries(home=[tmp_path]) == [Registry("unix:///r", ""), Registry("unix:///r", "ntf")]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "nothing to read: give --home"),
        (["--redis", "redis://h#A b"], "'A b' is not a prefix"),
        (["--redis", "http://h"], "the Redis URL is not valid"),
        (["--redis", "redis://127.0.0.1:1#"], "Redis at 127.0.0.1:1: it does not answer"),
        (["--home", "/nowhere"], "/nowhere: no `weir up` runs there"),
        (["--config", "/nowhere.toml"], "/nowhere.toml"),
        (["--redis-dir", "/nowhere"], "/nowhere/url: no such file or directory"),
        (["--spans", "/nowhere/x.json"], "there is no directory /nowhere"),
        (["--redis", "redis://h", "--every", "0s"], "--every: at least 1s"),
        (["--redis", "redis://h", "--every", "soon"], "--every"),
        (["--redis", "redis://h", "--memory", "1m"], "at least 512m"),
        (["--redis", "redis://h", "--conf", "x"], "expected spark.NAME=VALUE"),
    ],
)
def test_one_line_about_what_it_cannot_do(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["pipeline", "ingest", *words])
    except SystemExit as end:
        code = int(str(end.code))
    error = capsys.readouterr().err
    assert code in (1, 2)
    assert expected in error
    assert error.startswith("weir pipeline ingest: ")
    assert error.count("\n") == 1


def test_without_the_extra(tmp_path: Path) -> None:
    """The ordinary environment has neither Spark nor pyarrow."""
    words = [sys.executable, "-m", "weir.cli.main", "pipeline", "ingest", "--spans", str(tmp_path / "x.json")]
    done = subprocess.run([*words, "--tables", str(tmp_path / "t")], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("is not installed (pip install 'weir[pipeline]')\n")
    assert done.stderr.count("\n") == 1
