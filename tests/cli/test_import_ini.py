"""`weir import`: smp-server.ini → weir.toml."""

from pathlib import Path

import pytest

from tests.router_surface.test_config import REFERENCE_INI
from weir.cli.main import main
from weir.router.config import load


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    path = tmp_path / "smp-server.ini"
    path.write_text(REFERENCE_INI)
    return path


def test_the_toml_means_what_the_ini_meant(ini: Path, tmp_path: Path) -> None:
    output = tmp_path / "weir.toml"
    assert main(["import", str(ini), "--output", str(output)]) == 0
    assert load(output, {}) == load(ini, {})


def test_it_says_what_it_took_over_and_what_not(ini: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(ini)]) == 0
    captured = capsys.readouterr()
    assert 'message_ttl = "14d"' in captured.out
    report = captured.err.splitlines()
    assert "taken over: [STORE_LOG] expire_messages_days → [queues] message_ttl" in report
    assert "taken over: [TRANSPORT] host → [transport] hosts" in report
    assert "not taken over: [STORE_LOG] enable (line 9): all state is in Redis" in report
    assert "not taken over: [TRANSPORT] websockets (line 21): web sockets are not supported" in report
    settings = [line for line in REFERENCE_INI.splitlines() if "=" in line or ":" in line.split("#")[0]]
    assert len(report) == len(settings)  # a word on every setting


def test_an_unknown_setting_is_told_and_does_not_stop_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini = tmp_path / "smp-server.ini"
    ini.write_text("[TRANSPORT]\nport = 5223\ncolour = blue\n")
    assert main(["import", str(ini)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "[transport]\nports = [5223]\n\n"
    assert "not taken over: [TRANSPORT] colour (line 3): unknown here" in captured.err


def test_a_bad_value_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini = tmp_path / "smp-server.ini"
    ini.write_text("[TRANSPORT]\nport = many\n")
    assert main(["import", str(ini)]) == 1
    assert capsys.readouterr().err == f"weir import: {ini}:2: port: expected a whole number\n"


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "none.ini")]) == 1
    assert capsys.readouterr().err == f"weir import: {tmp_path / 'none.ini'}: no such file or directory\n"


def test_quotes_survive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini = tmp_path / "smp-server.ini"
    ini.write_text('[INFORMATION]\nsource_code = https://x\noperator = The "Best" \\ Company\n')
    output = tmp_path / "weir.toml"
    assert main(["import", str(ini), "--output", str(output)]) == 0
    assert load(output, {}).information.operator == 'The "Best" \\ Company'
