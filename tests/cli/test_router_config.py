"""`weir smp config`: check, show, list."""

import tomllib
from pathlib import Path

import pytest

from weir.cli.main import main
from weir.router.config import SCHEMA, RouterConfig, load


def test_check_says_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "weir.toml"
    path.write_text("[queues]\nquota = 10\n")
    assert main(["smp", "config", "check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: ok\n"


def test_check_names_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "weir.toml"
    path.write_text("[queues]\nquota = -1\nsize = 2\n")
    assert main(["smp", "config", "check", str(path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"weir smp config: {path}:2: quota: expected a number from 1 to 100000"
    assert lines[1].startswith(f"{path}:3: unknown key size in [queues]")


def test_check_names_what_looks_like_a_setting_in_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_QUEUES_QUOTTA", "77")
    monkeypatch.setenv("WEIR_CONTROL_PASSWORD", "hush")
    assert main(["smp", "config", "check"]) == 1
    wrong = "unknown setting WEIR_QUEUES_QUOTTA (did you mean WEIR_QUEUES_QUOTA?)"
    assert capsys.readouterr().err == f"weir smp config: environment: {wrong}\n"
    assert load(None, {"WEIR_QUEUES_QUOTTA": "77"}).queues == RouterConfig().queues, "an edge starts all the same"


def test_list_is_a_file_with_every_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smp", "config", "list"]) == 0
    text = capsys.readouterr().out
    tree = tomllib.loads(text)
    assert list(tree) == [name for name, _ in SCHEMA.sections()]
    for name, setting in SCHEMA.settings():
        assert f"WEIR_{name}_{setting.name})".upper() in text
    # Uncommented, it is the defaults.
    lines = [
        line.removeprefix("# ")
        for line in text.splitlines()
        if (not line.endswith(")") and " = " in line) or line[:1] == "["
    ]
    path = tmp_path / "weir.toml"
    path.write_text("\n".join(line for line in lines if line[:1] == "[" or not line.endswith('= ""')))
    config = load(path, {})
    assert config.queues == RouterConfig().queues
    assert config.proxy == RouterConfig().proxy


def test_show_is_what_is_in_force_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weir.toml"
    path.write_text('[auth]\ncreate_password = "hush"\n[redis]\nurl = "rediss://weir:hush@redis.internal:6379/0"\n')
    monkeypatch.setenv("WEIR_QUEUES_QUOTA", "77")
    monkeypatch.setenv("WEIR_PROXY_SOCKS_PROXY", "user:hush@localhost:9050")
    assert main(["smp", "config", "show", str(path)]) == 0
    text = capsys.readouterr().out
    assert "quota = 77" in text
    assert 'create_password = "(set)"' in text
    assert 'url = "rediss://(set)@redis.internal:6379/0"' in text
    assert 'socks_proxy = "(set)@localhost:9050"' in text
    assert "hush" not in text
