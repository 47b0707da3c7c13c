"""`weir ping`: what it says about a router, and about one that is not there."""

import socket

import pytest

from tests.support.up import Up
from weir.cli.main import main


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["ping", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_it_says_who_is_there(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, up.address, "--count", "2")
    assert code == 0
    assert "versions      6–19, agreed on 19" in text
    assert "TLS           TLSv1.3 TLS_CHACHA20_POLY1305_SHA256, ALPN smp/1" in text
    assert text.count("PONG") == 2
    assert "round trip    min " in text


def test_as_old_clients_connect(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, up.address, "--no-alpn", "--tls12", "--count", "1")
    assert code == 0
    assert "versions      6–6, agreed on 6" in text
    assert "TLSv1.2" in text and "ALPN none" in text


def test_another_router_there(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    other = f"smp://{'A' * 43}=@{up.address.partition('@')[2]}"
    code, text = said(capsys, other)
    assert code == 1
    assert text.count("\n") == 1
    assert "another router answers there" in text


@pytest.mark.parametrize("address", ["smp://x", "http://example.org", "ntf://" + "A" * 43 + "=@h", ""])
def test_what_is_no_address(capsys: pytest.CaptureFixture[str], address: str) -> None:
    code, text = said(capsys, address)
    assert (code, text) == (
        1,
        "weir ping: not an smp:// address: expected smp://FINGERPRINT[:PASSWORD]@host[:port]\n",
    )


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code, text = said(capsys, f"smp://{'A' * 43}=@127.0.0.1:{port}")
    assert (code, text) == (1, f"weir ping: 127.0.0.1:{port}: NETWORK: connection refused\n")


def test_somebody_who_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        code, text = said(capsys, f"smp://{'A' * 43}=@127.0.0.1:{port}", "--timeout", "0.3")
    assert (code, text) == (1, f"weir ping: 127.0.0.1:{port}: TIMEOUT\n")
