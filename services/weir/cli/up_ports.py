"""The ports that the edges of `weir up` share. They are checked to be free and reserved before the edges start."""

from __future__ import annotations

import errno
import ipaddress
import socket

from weir.cli.errors import Fail


def listen_address(host: str) -> str:
    """Choose the address to listen on: loopback for a loopback host, all addresses for any other host."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return host if ipaddress.ip_address(host).is_loopback else "0.0.0.0"
    except ValueError:
        return "0.0.0.0"


def reserve(listen: str, port: int, what: str) -> socket.socket:
    """Bind a socket to the port (0: any free port). It never listens; edges bind to the port with SO_REUSEPORT."""
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET
    if port:
        _check_free(family, listen, port, what)
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # Closed connections of the port's last user wait in TIME_WAIT for a minute. They must not refuse the port.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((listen, port))
    except OSError as error:
        held.close()
        raise _refusal(error, listen, port, what) from None
    # From now on, only a socket with SO_REUSEPORT may have the port, and not the check of another `weir up`.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return held


def _check_free(family: socket.AddressFamily, listen: str, port: int, what: str) -> None:
    """Bind without SO_REUSEPORT first: with it, the bind succeeds beside another program of the same user."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listen, port))
            probe.listen(1)
        except OSError as error:
            raise _refusal(error, listen, port, what) from None


def _refusal(error: OSError, listen: str, port: int, what: str) -> Fail:
    if error.errno == errno.EADDRINUSE:
        return Fail(f"port {port} is in use: choose another with --{what}-port (0: any free one)")
    if error.errno == errno.EACCES:
        return Fail(f"this user may not use port {port}: choose one above 1023 with --{what}-port")
    return Fail(f"{listen}:{port}: {(error.strerror or str(error)).lower()}")
