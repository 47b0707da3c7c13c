"""Connecting to other people's routers: which of a router's hosts are dialled, how, and which are refused.

A router's address came from a client, so the address may name a machine in the operator's own network. A name is
therefore resolved first, and only addresses that lead to the public Internet are dialled (transport/destinations.py).
Behind a SOCKS proxy the proxy resolves names and decides.
"""

from __future__ import annotations

import asyncio
import re
import typing
from typing import Any

from weir.client.smp import SmpClient
from weir.transport.client import ConnectError
from weir.transport.destinations import resolve
from weir.transport.socks import SocksProxy, parse_socks
from weir.wire.address import DEFAULT_SMP_PORT, ServerHost, SmpAddress
from weir.wire.errors import BrokerErrorTag, HandshakeError

SERVICE_REFUSED = frozenset((HandshakeError.BAD_SERVICE, HandshakeError.BAD_AUTH))
"""Errors of a handshake with which a router refuses a service's certificate."""

_PORT = re.compile("[0-9]+")


class DialSettings(typing.Protocol):
    """The settings of a section that says how other routers are reached."""

    @property
    def host_mode(self) -> str:
        """`onion` or `public`: the kind of host to prefer if a router has several."""

    @property
    def required_host_mode(self) -> bool:
        """Whether hosts of the other kind are refused."""

    @property
    def own_server_domains(self) -> tuple[str, ...]:
        """Domains of the operator's own routers."""

    @property
    def socks_proxy(self) -> str | None:
        """`[user:password@]host:port` of a SOCKS5 proxy."""

    @property
    def socks_mode(self) -> str:
        """`onion` or `always`: which hosts are reached through the SOCKS proxy."""


def own_name(settings: DialSettings, server: ServerHost) -> str:
    """The host of one of the operator's own routers; an empty text for all others."""
    host = server.hosts[0].decode("latin-1") if server.hosts else ""
    is_own = any(host == domain or host.endswith("." + domain) for domain in settings.own_server_domains)
    return host if is_own else ""


class Dialler:
    """Opens connections to SMP routers."""

    def __init__(self, settings: DialSettings, *, allow_local: bool, timeout: float) -> None:
        self.socks: SocksProxy | None = None if settings.socks_proxy is None else parse_socks(settings.socks_proxy)
        self._settings = settings
        self._allow_local = allow_local
        self._timeout = timeout

    def is_own(self, server: ServerHost) -> bool:
        """Whether the router is one of the operator's own."""
        return bool(own_name(self._settings, server))

    def hosts(self, server: ServerHost) -> list[str]:
        """Return the hosts in the configured order. Without a SOCKS proxy, onion hosts cannot be reached."""
        settings = self._settings
        hosts = [host.decode("latin-1") for host in server.hosts if host]
        wanted = [host for host in hosts if host.endswith(".onion") == (settings.host_mode == "onion")]
        if not settings.required_host_mode:
            wanted += [host for host in hosts if host not in wanted]
        return [host for host in wanted if self.socks is not None or not host.endswith(".onion")]

    async def connect(self, server: ServerHost, **options: Any) -> SmpClient:
        """Try the router's hosts in order. The options are those of `SmpClient.connect`.

        Raises ConnectError for the last host, or for the first host that refuses the service.
        """
        error = ConnectError(BrokerErrorTag.HOST)
        try:
            async with asyncio.timeout(self._timeout):
                for host in self.hosts(server):
                    try:
                        return await self._connect_host(server, host, options)
                    except ConnectError as failure:
                        error = failure
                        if options.get("service") is not None and error.error in SERVICE_REFUSED:
                            break
        except TimeoutError:
            error = ConnectError(BrokerErrorTag.TIMEOUT)
        raise error

    async def _connect_host(self, server: ServerHost, host: str, options: dict[str, Any]) -> SmpClient:
        port = server.port.decode("latin-1") or str(DEFAULT_SMP_PORT)
        if not _PORT.fullmatch(port) or int(port) > 65535:
            raise ConnectError(BrokerErrorTag.HOST)
        through_socks = self.socks is not None and (self._settings.socks_mode == "always" or host.endswith(".onion"))
        try:
            hosts = (host,) if through_socks else await self._resolved(host, int(port))
            return await SmpClient.connect(
                SmpAddress(server.key_hash, hosts, int(port)),
                timeout=self._timeout,
                socks=self.socks if through_socks else None,
                **options,
            )
        except OSError:
            raise ConnectError(BrokerErrorTag.NETWORK) from None
        except ValueError:  # a name that DNS or TLS cannot encode, e.g. a..b
            raise ConnectError(BrokerErrorTag.HOST) from None

    async def _resolved(self, host: str, port: int) -> tuple[str, ...]:
        """Return the host's addresses that are allowed. Only addresses that were checked are dialled."""
        allowed = await resolve(host, port, allow_local=self._allow_local)
        if not allowed:
            raise ConnectError(BrokerErrorTag.HOST)
        return allowed
