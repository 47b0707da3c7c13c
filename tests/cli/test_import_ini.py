"""`weir import`: smp-server.ini → weir.toml."""

from pathlib import Path

import pytest

from tests.notifier.test_config import REFERENCE_INI as NTF_INI
from tests.router.test_config import REFERENCE_INI
from weir.cli.main import main
from weir.notifier.config import load as load_ntf
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


def test_what_the_reference_writes_when_it_is_told_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`smp-server init` without a name and without a source code leaves these in the file."""
    ini = tmp_path / "smp-server.ini"
    ini.write_text("[INFORMATION]\nhosting_type = virtual\n[TRANSPORT]\nhost = <hostnames>\nport = 5223\n")
    output = tmp_path / "weir.toml"
    assert main(["import", str(ini), "--output", str(output)]) == 0
    assert "not taken over: [TRANSPORT] host (line 4): a placeholder; set [transport] hosts" in capsys.readouterr().err
    assert main(["smp", "config", "check", str(output)]) == 0
    assert main(["smp", "config", "check", str(ini)]) == 0
    assert load(output, {}).transport.hosts == ()


def test_what_weir_would_refuse_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini = tmp_path / "smp-server.ini"
    ini.write_text("[INFORMATION]\n# source_code = URI\noperator = Somebody\n")
    for output in ([], ["--output", str(tmp_path / "weir.toml")]):
        assert main(["import", str(ini), *output]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == f"weir import: {ini}:3: source_code: needed when any other information is given\n"
    assert not (tmp_path / "weir.toml").exists()


def test_passwords_are_for_the_owner_alone(tmp_path: Path) -> None:
    ini, output = tmp_path / "smp-server.ini", tmp_path / "weir.toml"
    ini.write_text("[AUTH]\ncreate_password = secret\n")
    assert main(["import", str(ini), "--output", str(output)]) == 0
    assert output.stat().st_mode & 0o777 == 0o600


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "none.ini")]) == 1
    assert capsys.readouterr().err == f"weir import: {tmp_path / 'none.ini'}: no such file or directory\n"


def test_quotes_survive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini = tmp_path / "smp-server.ini"
    ini.write_text('[INFORMATION]\nsource_code = https://x\noperator = The "Best" \\ Company\n')
    output = tmp_path / "weir.toml"
    assert main(["import", str(ini), "--output", str(output)]) == 0
    assert load(output, {}).information.operator == 'The "Best" \\ Company'


def test_a_notification_servers_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini, output = tmp_path / "ntf-server.ini", tmp_path / "weir.toml"
    ini.write_text(NTF_INI)
    assert main(["import", str(ini), "--output", str(output)]) == 0
    assert load_ntf(output, {}) == load_ntf(ini, {})
    report = capsys.readouterr().err.splitlines()
    assert "taken over: [TRANSPORT] control_port → [control] port" in report
    assert "not taken over: [STORE_LOG] db_pool_size (line 4): all state is in Redis" in report
    assert main(["import", str(ini), "--router", "smp"]) == 0
    assert "not taken over: [SUBSCRIBER] socks_mode" in capsys.readouterr().err
