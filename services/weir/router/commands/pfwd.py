"""PFWD: a sender's command is forwarded to a relay, which does not learn who sends it."""

from __future__ import annotations

import os

from weir.client.errors import CommandNotSent, ConnectionClosed, ReplyTimeout
from weir.router.commands.handler import handles
from weir.router.proxy.proxied import Counted, ProxiedHandler, broker_error
from weir.router.proxy.relays import Relay, RelayError
from weir.wire.errors import (
    BrokerErrorTag,
    BrokerResponse,
    BrokerTransport,
    ErrorType,
    Proxy,
    ProxyErrorTag,
    ProxyProtocol,
    Simple,
    TransportError,
)
from weir.wire.smp.commands import PFWD, RFWD
from weir.wire.smp.forward import FwdTransmission, open_forward_response, seal_forward
from weir.wire.smp.replies import ERR, PRES, RRES, Reply


@handles(PFWD)
class PfwdHandler(ProxiedHandler):
    __slots__ = ()

    def refused(self) -> ErrorType | None:
        shared = self.session.shared
        if shared.relays.session(self.t.entity_id) is None:
            shared.stats.pMsgFwds.pRequests += 1
            shared.stats.pMsgFwds.pErrorsConnect += 1
            return Proxy(ProxyErrorTag.NO_SESSION)
        return None

    async def work(self) -> Reply:
        shared = self.session.shared
        relay = shared.relays.session(self.t.entity_id)
        if relay is None:
            return ERR(Proxy(ProxyErrorTag.NO_SESSION))
        counted = Counted(shared.stats.pMsgFwds, shared.stats.pMsgFwdsOwn, relay.own)
        counted.add("pRequests")
        relay.waiting += 1
        try:
            reply = await self._forward(relay)
        except RelayError as failure:
            counted.add("pErrorsOther")
            return broker_error(failure.error)
        finally:
            relay.waiting -= 1
        protocol_error = (
            isinstance(reply, ERR) and isinstance(reply.error, Proxy) and isinstance(reply.error.error, ProxyProtocol)
        )
        counted.add("pSuccesses" if isinstance(reply, PRES) or protocol_error else "pErrorsOther")
        return reply

    async def _forward(self, relay: Relay) -> Reply:
        """Send RFWD to the relay under a nonce of this router, and return the answer for the client."""
        command = self.t.command
        assert isinstance(command, PFWD)
        secret = relay.client.connection.session_secret
        if secret is None:
            raise RelayError(BrokerTransport(TransportError.NO_AUTH))
        nonce = os.urandom(24)
        forward = FwdTransmission(self.t.corr_id, command.version, command.key, command.transmission)
        try:
            reply = await relay.client.send(RFWD(seal_forward(secret, nonce, forward)), corr_id=nonce)
        except ReplyTimeout:
            raise RelayError(BrokerErrorTag.TIMEOUT) from None
        except ConnectionClosed:
            raise RelayError(BrokerErrorTag.NETWORK) from None
        except CommandNotSent as failure:
            raise RelayError(BrokerTransport(failure.error)) from None
        if isinstance(reply, RRES):
            opened = open_forward_response(secret, nonce, reply.response)
            return ERR(Simple.CRYPTO) if opened is None else PRES(opened.response)
        if isinstance(reply, ERR):
            return ERR(Proxy(ProxyProtocol(reply.error)))
        # The relay has answered something else, or something that cannot be read.
        text = type(reply).__name__ if isinstance(reply, Reply) else "BLOCK"
        return broker_error(BrokerResponse(text, unexpected=isinstance(reply, Reply)))
