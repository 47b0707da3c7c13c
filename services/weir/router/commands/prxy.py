"""PRXY: a client asks this router, as a proxy, for a session with another router (the relay)."""

from __future__ import annotations

from weir.router.commands.handler import handles
from weir.router.commands.password import password_fits
from weir.router.proxy.proxied import Counted, ProxiedHandler, broker_error
from weir.router.proxy.relays import Relay, RelayError
from weir.wire.errors import (
    BrokerErrorTag,
    BrokerTransport,
    ErrorType,
    Proxy,
    ProxyBroker,
    ProxyErrorTag,
    TransportError,
)
from weir.wire.smp.commands import PRXY
from weir.wire.smp.replies import ERR, PKEY, Reply
from weir.wire.versions import SENDING_PROXY, SMP_PROXIED_RANGE

_VERSION = Proxy(ProxyBroker(BrokerTransport(TransportError.VERSION)))


@handles(PRXY)
class PrxyHandler(ProxiedHandler):
    __slots__ = ()

    def refused(self) -> ErrorType | None:
        command, config = self.t.command, self.session.shared.config
        assert isinstance(command, PRXY)
        if not config.proxy.enable or not password_fits(config.auth.create_password, command.basic_auth):
            return Proxy(ProxyErrorTag.BASIC_AUTH)
        return None

    async def work(self) -> Reply:
        command, shared = self.t.command, self.session.shared
        assert isinstance(command, PRXY)
        relays = shared.relays
        counted = Counted(shared.stats.pRelays, shared.stats.pRelaysOwn, relays.is_own(command.server))
        counted.add("pRequests")
        try:
            relay = await relays.get(command.server)
        except RelayError as failure:
            temporary = failure.error in (BrokerErrorTag.NETWORK, BrokerErrorTag.TIMEOUT)
            counted.add("pErrorsConnect" if temporary else "pErrorsOther")
            return broker_error(failure.error)
        reply = _pkey(relay)
        counted.add("pSuccesses" if isinstance(reply, PKEY) else "pErrorsCompat")
        return reply


def _pkey(relay: Relay) -> Reply:
    """Return the relay's session. Its versions are capped, so that they do not reveal the client's own."""
    connection = relay.client.connection
    versions = connection.server_versions.compatible(SMP_PROXIED_RANGE)
    if versions is None or connection.session.version < SENDING_PROXY:
        return ERR(_VERSION)
    if connection.cert_key is None:
        return broker_error(BrokerTransport(TransportError.NO_AUTH))
    return PKEY(connection.session.session_id, versions, connection.cert_key)
