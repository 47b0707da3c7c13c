"""What `weir smp check` and `weir ntf check` share: the edges that are tested, and how a wrong reply is shown."""

from __future__ import annotations

import argparse
import socket
from typing import NamedTuple

from weir.cli.errors import Fail
from weir.config.kinds import PORT
from weir.config.options import seconds, whole
from weir.wire.address import SmpAddress


class Target(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def add_target_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--connect", action="append", default=[], metavar="HOST:PORT", help="address of an edge (repeatable)"
    )
    p.add_argument("--resolve", metavar="NAME[:PORT]", help="DNS name whose addresses are all edges")
    p.add_argument("--edges", type=whole(1, 1000), default=1, metavar="N", help="fail if fewer edges are found (1)")
    p.add_argument(
        "--timeout", type=seconds(), default=15.0, metavar="S", help="time limit of each step in seconds (15)"
    )


def find_targets(address: SmpAddress, options: argparse.Namespace) -> list[Target]:
    targets = _find_edges(address, options.connect, options.resolve)
    if len(targets) < options.edges:
        raise Fail(f"expected {options.edges} edges and found {len(targets)}: {', '.join(map(str, targets))}")
    return targets


def _find_edges(address: SmpAddress, connect: list[str], resolve: str | None) -> list[Target]:
    """Return the addresses of all edges: those given, those resolved, or else the first host of the address."""
    found: dict[Target, None] = {}
    for text in connect:
        host, _, port = text.rpartition(":")
        if not host:
            raise Fail(f"--connect {text}: expected HOST:PORT")
        found[Target(host.strip("[]"), _port(f"--connect {text}", port))] = None
    if resolve is not None:
        name, colon, port = resolve.partition(":")
        number = _port(f"--resolve {resolve}", port) if colon else address.effective_port
        try:
            infos = socket.getaddrinfo(name, number, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Fail(f"--resolve {resolve}: {error.strerror or error}") from None
        except UnicodeError:
            raise Fail(f"--resolve {resolve}: not a host name") from None
        found |= dict.fromkeys(Target(str(info[4][0]), number) for info in infos)
    if not found:
        found = dict.fromkeys(Target(host, address.effective_port) for host in address.hosts[:1])
    return list(found)


def _port(option: str, text: str) -> int:
    try:
        return PORT.read(text)
    except ValueError as error:
        raise Fail(f"{option}: port: {error}") from None


def expect(reply: object, wanted: object, step: str) -> None:
    if reply != wanted:
        raise Fail(f"{step}: {show(reply)}")


def show(reply: object) -> str:
    """Name a reply and its error, without ids."""
    error = getattr(reply, "error", None)
    return f"{type(reply).__name__} {getattr(error, 'value', type(error).__name__)}" if error else type(reply).__name__
