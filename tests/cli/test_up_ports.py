"""Ports shared by edges: free at the start, refused with one line when not."""

import socket

import pytest

from weir.cli.errors import Fail
from weir.cli.up_ports import listen_address, reserve
from weir.transport.server import bind


@pytest.mark.parametrize(
    ("host", "listen"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1.2.3", "127.1.2.3"),
        ("localhost", "127.0.0.1"),
        ("::1", "::1"),
        ("smp.example.org", "0.0.0.0"),
        ("192.0.2.1", "0.0.0.0"),
    ],
)
def test_a_loopback_host_listens_on_loopback(host: str, listen: str) -> None:
    assert listen_address(host) == listen


def test_a_reserved_port_can_be_shared() -> None:
    with reserve("127.0.0.1", 0, "smp") as held:
        port = held.getsockname()[1]
        with socket.socket() as edge:
            edge.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            edge.bind(("127.0.0.1", port))
            edge.listen()
            with socket.create_connection(("127.0.0.1", port), 5):
                edge.accept()[0].close()


def test_a_reserved_port_is_not_reserved_twice() -> None:
    """By another option, or by a second `weir up` that starts at the same moment: clients would meet either."""
    with reserve("127.0.0.1", 0, "smp") as held, pytest.raises(Fail, match="choose another with --http-port"):
        reserve("127.0.0.1", held.getsockname()[1], "http")


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_in_use_is_refused_even_when_its_user_would_share(shares: bool) -> None:
    with socket.socket() as other:
        if shares:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Fail, match=rf"port {port} is in use: choose another with --smp-port"):
            reserve("127.0.0.1", port, "smp")


def test_a_port_whose_last_user_has_just_left_is_free() -> None:
    """A server that closes its connections first leaves the port in TIME_WAIT for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            accepted, _ = other.accept()
            accepted.close()
            assert client.recv(1) == b""
    with reserve("127.0.0.1", port, "smp") as held, bind("127.0.0.1", port, reuse_port=True):
        assert held.getsockname()[1] == port


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(Fail, match=r"192\.0\.2\.1:5223: cannot assign requested address"):
        reserve("192.0.2.1", 5223, "smp")
