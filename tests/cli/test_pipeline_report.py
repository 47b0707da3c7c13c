"""`weir pipeline report` as a command: the page, the secret of the public one, and one-line errors."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.report.given import Given
from weir.cli import pipeline_report
from weir.cli.errors import Fail
from weir.pipeline.report.figure import Report


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = pipeline_report.secret(str(tmp_path), None)
    path = tmp_path / pipeline_report.SECRET
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert pipeline_report.secret(str(tmp_path), None) == first
    assert pipeline_report.secret("s3a://bucket/weir", path) == first
    assert pipeline_report.secret(str(tmp_path), tmp_path / "other") != first


def test_a_secret_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for text in ("", "no hex", "00" * 31):
        path.write_text(text)
        with pytest.raises(Fail, match="not a secret of 32 bytes in hex"):
            pipeline_report.secret(str(tmp_path), path)
    with pytest.raises(Fail, match="--public needs --secret FILE"):
        pipeline_report.secret("s3a://bucket/weir", None)
    with pytest.raises(Fail, match="nowhere: no such directory"):
        pipeline_report.secret(str(tmp_path / "nowhere"), None)
    with pytest.raises(Fail, match="no such file or directory"):
        pipeline_report.secret(str(tmp_path), tmp_path / "nowhere" / "secret")


def test_the_page_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    pipeline_report.write(path, "one")
    pipeline_report.write(path, "two")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "two"
    with pytest.raises(Fail, match=r"report.html: (no such file or directory|not a directory)"):
        pipeline_report.write(path / "report.html", "three")
    path.unlink()
    path.mkdir()
    with pytest.raises(Fail, match=r"report.html: is a directory"):
        pipeline_report.write(path, "four")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_the_summary_is_one_line() -> None:
    made = Report("main", "Mon 7 Sep to Sun 20 Sep 2026, 14 days", ())
    line = pipeline_report.summary(Path("out/report.html"), made, 1_400_000)
    assert line == "out/report.html: main, Mon 7 Sep to Sun 20 Sep 2026, 14 days; 1.34 MiB"


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weir.cli.main", "pipeline", "report", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("words", [["--days", "0"], ["--days", "many"], ["--nothing"], ["extra"]])
def test_a_wrong_command_line_is_one_line(words: list[str]) -> None:
    done = _run(*words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_help_teaches_with_examples() -> None:
    done = _run("--help")
    assert done.returncode == 0
    assert "--public" in done.stdout and "examples:" in done.stdout


@pytest.mark.spark
def test_a_page_from_tables(tmp_path: Path) -> None:
    from tests.pipeline.report.test_reading import write_tables

    tables, out = tmp_path / "tables", tmp_path / "report.html"
    tables.mkdir()
    done = _run("--tables", tables, "--out", out)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "no gold tables in" in done.stderr
    write_tables(tables, Given(9).rows())
    done = _run("--tables", tables, "--out", out, "--days", 3)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == f"{out}: main, Sun 13 Sep to Tue 15 Sep 2026, 3 days, times are UTC; " + done.stdout.split("; ")[1]
    )
    assert out.read_text().startswith("<!doctype html>")
    done = _run("--tables", tables, "--out", out, "--public")
    assert done.returncode == 0
    assert (tables / pipeline_report.SECRET).exists()
    public = out.read_bytes()
    assert _run("--tables", tables, "--out", out, "--public").returncode == 0
    assert out.read_bytes() == public
    done = _run("--tables", tables, "--out", out, "--router", "nobody")
    assert done.stderr == f"weir pipeline report: no traffic of router 'nobody'; there is main ({tables})\n"
