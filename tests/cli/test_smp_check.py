"""`weir smp check` against a running router."""

import signal
import subprocess
import sys

import pytest
import redis

from tests.support.redis import until
from tests.support.up import Up, weir_up
from weir.cli import smp_check
from weir.cli.errors import Fail
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


def queues(up: Up) -> list[bytes]:
    with redis.Redis.from_url(up.run["redis"]["url"]) as client:
        found: list[bytes] = client.keys("{*}:q:*")
    return found


def test_no_queue_stays(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--address", up.address, "--service")[0] == 0
    assert queues(up) == []


@pytest.mark.parametrize("step", ["_send", "_receive"])
def test_a_step_that_fails_leaves_no_queue(
    up: Up, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    seen: list[int] = []

    async def fail(*_: object) -> None:
        seen.append(len(queues(up)))
        raise Fail("the step failed")

    monkeypatch.setattr(smp_check._Check, step, fail)
    code, text = said(capsys, "--address", up.address, "--service")
    assert code == 1 and text.endswith("weir smp check: the step failed\n")
    assert seen == [1] and queues(up) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_check_that_is_interrupted_leaves_no_queue(up: Up, number: signal.Signals) -> None:
    """Ctrl-C, or the end of its pod. The step waits for a message that does not come."""
    code = (
        "import asyncio, sys; from weir.cli import smp_check; from weir.cli.main import main;"
        "smp_check._Check._send = lambda *_: asyncio.Event().wait();"
        "sys.exit(main(sys.argv[1:]))"
    )
    check = subprocess.Popen([sys.executable, "-c", code, "smp", "check", "--address", up.address])
    until(lambda: len(queues(up)) == 1)
    check.send_signal(number)
    assert check.wait(20) == 130
    assert queues(up) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--connect", "localhost:99999"), "--connect localhost:99999: port: expected a number from 0 to 65535"),
        (("--connect", "localhost"), "--connect localhost: expected HOST:PORT"),
        (("--resolve", "localhost:99999"), "--resolve localhost:99999: port: expected a number from 0 to 65535"),
        (("--resolve", "localhost:x"), "--resolve localhost:x: port: expected a whole number"),
    ],
)
def test_a_port_that_is_none(capsys: pytest.CaptureFixture[str], words: tuple[str, str], says: str) -> None:
    assert said(capsys, "--address", f"smp://{'A' * 43}=@localhost", *words) == (1, f"weir smp check: {says}\n")


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
