"""`weir smp check` against a running router."""

import pytest

from tests.support.up import Up, weir_up
from weir.cli.main import main


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["smp", "check", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_everything_holds(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--address", up.address, "--service")
    assert code == 0, text
    lines = text.splitlines()
    assert all(line.startswith("ok  ") for line in lines)
    assert "version 19, PING" in lines[0]
    assert "created at" in lines[1] and "acknowledged, deleted" in lines[1]
    assert lines[-1].endswith("exact SOKS, the waiting message, ALLS")


def test_every_place_is_spoken_to(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    port = up.run["smp_port"]
    places = ["--connect", f"127.0.0.1:{port}", "--connect", f"localhost:{port}"]
    code, text = said(capsys, "--address", up.address, *places, "--edges", "2")
    assert code == 0, text
    assert f"created at 127.0.0.1:{port}, sent through localhost:{port}" in text
    assert f"created at localhost:{port}, sent through 127.0.0.1:{port}" in text


def test_names_are_resolved(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--address", up.address, "--resolve", f"127.0.0.1:{up.run['smp_port']}")
    assert code == 0, text
    code, text = said(capsys, "--address", up.address, "--resolve", "no.such.name.invalid")
    assert code == 1 and text.startswith("weir smp check: --resolve no.such.name.invalid: ")


def test_too_few_edges(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--address", up.address, "--edges", "3")
    place = up.address.partition("@")[2]
    assert (code, text) == (1, f"weir smp check: expected 3 edges and found 1: {place}\n")


def test_a_password_for_new_queues(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path_factory.mktemp("check")
    (directory / "home").mkdir()
    (directory / "home" / "weir.toml").write_text('[auth]\ncreate_password = "word"\n')
    (directory / "password").write_text("word\n")
    with weir_up(directory / "home") as up:
        bare = up.address.replace(":word@", "@")
        code, text = said(capsys, "--address", bare)
        assert code == 1 and text.endswith("weir smp check: NEW: ERR AUTH\n")
        assert said(capsys, "--address", bare, "--auth-file", str(directory / "password"))[0] == 0
        assert said(capsys, "--address", up.address)[0] == 0
