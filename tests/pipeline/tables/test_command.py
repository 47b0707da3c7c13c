"""`weir pipeline tables` as a process: killed and started again, described, and as the reference's daily file."""

import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.tables.case import Case
from weir.cli.pipeline import main

pytestmark = pytest.mark.spark

_COMMAND = [sys.executable, "-P", "-m", "weir.cli.main", "pipeline", "tables"]
_QUICK = ["--conf", "spark.sql.shuffle.partitions=1"]


def test_a_killed_run_is_made_good_by_the_next(case: Case, tmp_path: Path) -> None:
    from tests.pipeline.tables import lake
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    lake.add_records(store, case.records)
    lake.add_trimmed(store, case.trimmed)
    lake.add_spans(store, case.spans)
    command = [*_COMMAND, "--tables", str(tmp_path), "--keep-bronze", "9999", "--keep-silver", "9999", *_QUICK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("gold:"):
                process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("2 days computed (")
    assert lake.differences(lake.rows(store), case.expected) == []


def test_tables_are_described_with_their_rows(store: Any, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--tables", store.root, "--describe"]) == 0
    shown = capsys.readouterr().out
    assert f"gold/traffic  ({len(case.expected['gold/traffic']):,} rows)" in shown
    assert "bronze/newer  (0 rows)" in shown
    assert "messages sent and stored" in shown


def test_the_daily_file(store: Any, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "daily.log"
    assert main(["tables", "--tables", store.root, "--csv", "ntf", "--output", str(file)]) == 0
    lines = file.read_text().splitlines()
    assert [line[:10] for line in lines] == ["2026-11-01", "2026-11-02"]
    assert all(line.count(",") == 21 for line in lines)
    [sunday] = [row for row in case.expected["gold/daily_ntf"] if row["day"] == date(2026, 11, 1)]
    assert lines[0].split(",")[6:10] == [
        str(sunday[name]) for name in ("ntfReceived", "ntfDelivered", "tokens_day", "tokens_week")
    ]
    assert main(["tables", "--tables", store.root, "--csv", "smp", "--router", "main"]) == 0
    assert capsys.readouterr().out.splitlines()[1].count(",") == 100


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--csv", "smp"], "say which router (--router): main, other", id="several routers"),
        pytest.param(["--csv", "smp", "--router", "x"], "no router x; there are main, other", id="no such router"),
    ],
)
def test_bad_input_is_one_line(
    store: Any, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "--tables", store.root, *arguments]) == 1
    assert capsys.readouterr().err == f"weir pipeline tables: {expected}\n"


def test_without_records_nothing_is_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--tables", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"weir pipeline tables: no records in {tmp_path} (weir pipeline ingest)\n"
