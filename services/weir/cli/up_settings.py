"""The settings of `weir up`: its options, else weir.toml and WEIR_… variables, else the defaults of `weir up`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from weir.cli.errors import Fail
from weir.cli.programs import NTF, Program
from weir.cli.up_ports import listen_address, reserve
from weir.wire.address import SmpAddress

if TYPE_CHECKING:
    import argparse
    import socket

    from weir.notifier.config import NotifierConfig
    from weir.router.config import RouterConfig
    from weir.surface.settings import Http

EMBEDDED = "embedded"
NTF_PORT = 5443  # 443 is for root only
_LAST_PORT = 65535


class Reserved(NamedTuple):
    """Reserved ports, and the sockets that hold them."""

    held: list[socket.socket]
    ports: tuple[int, ...]
    http: int | None
    metrics: int | None


@dataclass(frozen=True)
class UpSettings:
    program: Program
    hosts: tuple[str, ...]
    listen: str
    ports: tuple[int, ...]
    public_port: int
    http_listen: str
    http_port: int | None  # None: no web page
    metrics: bool
    metrics_listen: str
    metrics_port: int | None  # 0: any free port; None: no port of their own
    redis: str

    @staticmethod
    def of(
        program: Program,
        options: argparse.Namespace,
        config: RouterConfig | NotifierConfig,
        given: Collection[tuple[str, str]],
    ) -> UpSettings:
        """Combine options and configuration. `given` names the settings that the file or the environment sets.

        `weir up` has other defaults for some settings than an edge, so it needs to know which settings were given.
        """
        transport, http = config.transport, config.http
        hosts = (options.host,) if options.host else transport.hosts or ("127.0.0.1",)
        listen = options.listen or (transport.listen if ("transport", "listen") in given else listen_address(hosts[0]))
        page = http.port if ("http", "port") in given else 8000
        http_port = options.http_port if options.http_port is not None else page or None
        port: int | None = getattr(options, f"{program.name}_port")
        ports = (NTF_PORT,) if program is NTF and ("transport", "ports") not in given else transport.ports
        return UpSettings(
            program=program,
            hosts=hosts,
            listen=listen,
            ports=ports if port is None else (port,),
            public_port=transport.public_port if port is None else 0,
            http_listen=http.listen if ("http", "listen") in given and not options.listen else listen,
            http_port=http_port,
            metrics=http.metrics,
            metrics_listen=http.metrics_listen,
            metrics_port=_metrics_port(options, http, http_port, ("http", "metrics_port") in given),
            redis=options.redis or (config.redis.url if ("redis", "url") in given else EMBEDDED),
        )

    def reserve(self) -> Reserved:
        held = [reserve(self.listen, port, self.program.name) for port in self.ports]
        ports = tuple(sock.getsockname()[1] for sock in held)
        others: list[int | None] = []
        for listen, port, what in (
            (self.http_listen, self.http_port, "http"),
            (self.metrics_listen, self.metrics_port, "metrics"),
        ):
            if port is not None:
                held.append(reserve(listen, port, what))
            others.append(None if port is None else held[-1].getsockname()[1])
        return Reserved(held, ports, *others)

    def address(self, fingerprint: bytes, ports: tuple[int, ...], password: str | None) -> SmpAddress:
        port = self.public_port or ports[0]
        address = SmpAddress(
            fingerprint,
            self.hosts,
            None if port == self.program.port else port,
            password.encode() if password else None,
            scheme=self.program.name,
        )
        if SmpAddress.parse(str(address)) != address:
            raise Fail(f"--host {','.join(self.hosts)}: not a host name or an IP address")
        return address


def _metrics_port(options: argparse.Namespace, http: Http, http_port: int | None, given: bool) -> int | None:
    """The port of the metrics: the one behind the web page's, unless another one is given."""
    if http_port is None or not http.metrics:
        return None
    if options.metrics_port is not None:
        chosen: int = options.metrics_port
        return chosen
    if given:
        return http.metrics_port or None
    return http_port + 1 if 0 < http_port < _LAST_PORT else 0
