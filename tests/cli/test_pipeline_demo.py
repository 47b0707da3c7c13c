"""`weir pipeline demo`: records in Redis, and the whole way to the report."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from weir.cli import pipeline_demo
from weir.cli.errors import Fail
from weir.pipeline.demo import records
from weir.telemetry.rollups.record import decode

END = datetime(2026, 11, 19, 22, tzinfo=UTC)


def test_records_are_in_the_streams_of_their_routers() -> None:
    made = list(records(END, days=1))[:700]
    with pipeline_demo.redis() as server:
        directory = server.directory
        assert pipeline_demo.append(server.url, made) == 700
        with redis.Redis.from_url(server.url) as client:
            streams = {key: client.xrange(key) for key in client.scan_iter()}
    read = {decode(fields[b"r"]).program: len(entries) for entries in streams.values() for _, fields in entries}
    assert len(streams) == 2
    assert read == {program: sum(r.program == program for r in made) for program in ("smp", "ntf")}
    assert not server.running and not directory.exists()


def test_only_tables_of_a_demo_are_deleted(tmp_path: Path) -> None:
    tables = pipeline_demo.prepare(tmp_path / "demo")
    assert not tables.exists() and tables.parent.is_dir()
    tables.mkdir()
    (tables / "precious").write_text("")
    with pytest.raises(Fail, match="is no directory of tables"):
        pipeline_demo.prepare(tmp_path / "demo")
    (tables / "weir-tables.json").write_text("{}")
    pipeline_demo.prepare(tmp_path / "demo")
    assert not tables.exists()


def test_a_desktop_is_where_a_display_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not pipeline_demo.has_desktop()
    monkeypatch.setenv("DISPLAY", ":0")
    assert pipeline_demo.has_desktop()


@pytest.mark.spark
@pytest.mark.all("ingest, tables and report of two weeks take minutes")
@pytest.mark.timeout(1800)
def test_the_whole_way(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weir.cli.main", "pipeline", "demo", "--dir", str(tmp_path), "--no-open"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1700)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].endswith(f"file://{tmp_path}/report.html")
    page = (tmp_path / "report.html").read_text()
    for finding in (
        "smp.example.org",
        "ntf.example.org",
        "INTERNAL errors",
        "All of the drift is with Web shop",
        "no data",
    ):
        assert finding in page, finding
