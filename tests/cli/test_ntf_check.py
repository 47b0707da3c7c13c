"""`weir ntf check` against a running notification router beside an SMP router."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

from tests.support.ntfy import Ntfy, ntfy
from tests.support.up import Up, weir_up
from weir.bench.standins.authority import Authority
from weir.cli import ntf_check
from weir.cli.errors import Fail
from weir.cli.main import main


class Running(NamedTuple):
    up: Up
    ntfy: Ntfy
    ca: Path

    @property
    def ntf(self) -> str:
        return str(self.up.run["ntf"]["address"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("check")
    authority, ca = Authority(), directory / "ca.pem"
    ca.write_bytes(authority.pem)
    (directory / "home" / "ntf").mkdir(parents=True)
    (directory / "home" / "ntf" / "weir.toml").write_text(f"[web_push]\nca = {json.dumps(str(ca))}\n")
    with ntfy(authority.server_context()) as server, weir_up(directory / "home", "--ntf", "--ntf-port", "0") as up:
        yield Running(up, server, ca)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["ntf", "check", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def left(running: Running) -> list[bytes]:
    """Queues, tokens and subscriptions."""
    with redis.Redis.from_url(running.up.run["redis"]["url"]) as client:
        found: list[bytes] = [*client.keys("{*}:q:*"), *client.keys("{ntf.*}:t:*"), *client.keys("{ntf.*}:s:*")]
    return found


def test_a_token_alone(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--address", running.ntf)
    assert code == 0, text
    lines = text.splitlines()
    assert all(line.startswith("ok ") and " ms  " in line for line in lines)
    assert lines[-2].endswith("TVFY: the token is ACTIVE")
    assert left(running) == []


def test_a_queue_of_an_smp_router(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--address", running.ntf, "--smp", running.up.address)
    assert code == 0, text
    assert "SCHK: the notification router is subscribed to the queue" in text
    assert "SEND: a message with the notification flag" in text
    assert left(running) == []


def test_the_whole_way_with_web_push(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    push = ("--web-push", running.ntfy.url, "--web-push-ca", str(running.ca))
    code, text = said(capsys, "--address", running.ntf, "--smp", running.up.address, *push)
    assert code == 0, text
    assert "the push with the code has arrived" in text
    assert "the push with the notification has arrived and decrypts" in text
    assert all(request["Content-Encoding"] == "aes128gcm" for request in running.ntfy.requests)
    assert left(running) == []


def test_every_edge_is_used(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    port = running.up.run["ntf"]["ntf_port"]
    places = ["--connect", f"127.0.0.1:{port}", "--connect", f"localhost:{port}"]
    code, text = said(capsys, "--address", running.ntf, *places, "--edges", "2")
    assert code == 0, text
    assert f"127.0.0.1:{port}: connected" in text and f"localhost:{port}: connected" in text


@pytest.mark.parametrize("step", ["_activate", "_wait_until_active", "_send"])
def test_a_step_that_fails_leaves_nothing(
    running: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    async def fail(*_: object) -> None:
        assert left(running)
        raise Fail("the step failed")

    monkeypatch.setattr(ntf_check._Check, step, fail)
    code, text = said(capsys, "--address", running.ntf, "--smp", running.up.address)
    assert code == 1 and text.endswith("weir ntf check: the step failed\n")
    assert left(running) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--smp", "ntf://x@y"), "not an smp:// address: expected smp://FINGERPRINT[:PASSWORD]@host[:port]"),
        (("--web-push", "http://x"), "--web-push http://x: expected https://host[:port] of an ntfy server"),
        (("--connect", "localhost"), "--connect localhost: expected HOST:PORT"),
    ],
)
def test_options_that_cannot_be_used(capsys: pytest.CaptureFixture[str], words: tuple[str, str], says: str) -> None:
    assert said(capsys, "--address", f"ntf://{'A' * 43}=@localhost", *words) == (1, f"weir ntf check: {says}\n")


def test_an_address_of_another_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--address", f"smp://{'A' * 43}=@localhost")
    assert (code, text) == (1, "weir ntf check: not an ntf:// address: expected ntf://FINGERPRINT@host[:port]\n")
