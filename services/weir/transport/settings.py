"""Settings about connections that every program has: its listener, and how it reaches other routers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from weir.config import kinds
from weir.config.file import Problem
from weir.config.kinds import setting
from weir.config.schema import Places

_IDENTITY = Path("identity")


@dataclass(frozen=True)
class Listening:
    """Part of the section [transport]. A program sets the ports' default."""

    hosts: tuple[str, ...] = setting(kinds.ADDRESSES, (), "host names in the published address, in order")
    listen: str = setting(kinds.ADDRESS, "0.0.0.0", "address to listen on for clients")
    ports: tuple[int, ...] = setting(kinds.PORTS, (), "ports to listen on for clients")
    public_port: int = setting(kinds.PORT, 0, "port in the published address; 0: the first of ports")
    identity: Path = setting(kinds.PATH, _IDENTITY, "directory with ca.crt, server.crt and server.key")
    handshake_timeout: float = setting(kinds.DURATION, 60.0, "time for the handshakes of TLS and the protocol together")
    half_open: int = setting(kinds.integer(1), 1000, "concurrent handshakes; above this, the most silent is dropped")
    send_timeout: float = setting(kinds.DURATION, 40.0, "a client that reads nothing for this time is disconnected")
    max_clients: int = setting(kinds.integer(), 0, "clients per edge; 0: as many as file descriptors allow")


@dataclass(frozen=True)
class OtherRouters:
    """How other routers are reached: part of the section of the program's connections to them."""

    host_mode: str = setting(kinds.choice("public", "onion"), "public", "kind of host to prefer if a router has both")
    required_host_mode: bool = setting(kinds.BOOL, False, "refuse routers without a host of the kind in host_mode")
    own_server_domains: tuple[str, ...] = setting(kinds.TEXTS, (), "domains of your own routers, counted separately")
    socks_proxy: str | None = setting(kinds.SOCKS, None, "[user:password@]host:port of a SOCKS5 proxy")
    socks_mode: str = setting(
        kinds.choice("onion", "always"), "onion", "routers that are reached through the SOCKS proxy"
    )


L = TypeVar("L", bound=Listening)


def check(listening: Listening, places: Places) -> list[Problem]:
    return [] if listening.ports else [places.problem("transport", "ports", "ports: at least one is needed")]


def resolve(listening: L, base: Path) -> L:
    """Make relative paths relative to the directory of the configuration file."""
    return replace(listening, identity=base / listening.identity)
