"""PRXY and PFWD: forwarding senders' commands to other routers, without telling those who sends."""

from __future__ import annotations

import asyncio
import os

from weir.client.smp import CannotSend, Closed, ReplyTimeout
from weir.router.op import Op
from weir.router.queues import password_fits
from weir.router.relays import Relay, RelayError
from weir.router.stats import ProxyStats
from weir.wire.commands import PFWD, PRXY, RFWD
from weir.wire.errors import (
    BrokerErrorTag,
    BrokerErrorType,
    BrokerResponse,
    BrokerTransport,
    ErrorType,
    Proxy,
    ProxyBroker,
    ProxyErrorTag,
    ProxyProtocol,
    Simple,
    TransportError,
)
from weir.wire.forward import FwdTransmission, open_forward_response, seal_forward
from weir.wire.replies import ERR, PKEY, PRES, RRES, Reply
from weir.wire.smp import encode_reply
from weir.wire.versions import SENDING_PROXY, SMP_PROXIED_RANGE

_WAITING = 2  # times as many as may be under way: then the client is not read from
_VERSION = Proxy(ProxyBroker(BrokerTransport(TransportError.VERSION)))


def _broker(error: BrokerErrorType) -> ERR:
    return ERR(Proxy(ProxyBroker(error)))


class _ProxiedOp(Op):
    """Answered on its own, whenever the relay has: other commands of the connection do not wait, unless so many of
    these wait for their turn that they would fill the memory."""

    __slots__ = ()

    def begin(self) -> None:
        error = self.origin.verifier.other(self.t)
        if error is not None:
            self.fail(error)
            return
        refused = self._refused()
        if refused is not None:
            self.fail(refused)
            return
        client = self.client
        client.forwarding += 1
        behind = client.forwarding > _WAITING * client.router.config.proxy.client_concurrency
        if not behind:
            self.origin.detach(self)
        client.spawn(self._turn(behind))

    def _refused(self) -> ErrorType | None:
        return None

    async def _turn(self, behind: bool) -> None:
        """A counted number at once for each client; who waits too long is told."""
        client = self.client
        config = client.router.config.proxy
        try:
            async with asyncio.timeout(config.client_wait):
                await client.forwards.acquire()
        except TimeoutError:
            self._push(_broker(BrokerErrorTag.TIMEOUT))
            return
        finally:
            client.forwarding -= 1
            if behind:
                self.origin.detach(self)
        try:
            self._push(await self.work())
        finally:
            client.forwards.release()

    async def work(self) -> Reply:
        raise NotImplementedError

    def _push(self, reply: Reply) -> None:
        self.client.push(self.t.corr_id, self.t.entity_id, encode_reply(self.client.session.version, reply))


class PrxyOp(_ProxiedOp):
    __slots__ = ()

    def _refused(self) -> ErrorType | None:
        command, config = self.t.command, self.client.router.config
        assert isinstance(command, PRXY)
        if not config.proxy.enable or not password_fits(config.auth.create_password, command.basic_auth):
            return Proxy(ProxyErrorTag.BASIC_AUTH)
        return None

    async def work(self) -> Reply:
        command, router = self.t.command, self.client.router
        assert isinstance(command, PRXY)
        relays = router.relays
        counted = _Counted(router.stats.pRelays, router.stats.pRelaysOwn, relays.is_own(command.server))
        counted.add("pRequests")
        try:
            relay = await relays.get(command.server)
        except RelayError as failure:
            temporary = failure.error in (BrokerErrorTag.NETWORK, BrokerErrorTag.TIMEOUT)
            counted.add("pErrorsConnect" if temporary else "pErrorsOther")
            return _broker(failure.error)
        reply = _pkey(relay)
        counted.add("pSuccesses" if isinstance(reply, PKEY) else "pErrorsCompat")
        return reply


def _pkey(relay: Relay) -> Reply:
    """The relay's session, with versions capped so that a client's own cannot be told from them."""
    connection = relay.client.connection
    versions = connection.server_versions.compatible(SMP_PROXIED_RANGE)
    if versions is None or connection.session.version < SENDING_PROXY:
        return ERR(_VERSION)
    if connection.cert_key is None:
        return _broker(BrokerTransport(TransportError.NO_AUTH))
    return PKEY(connection.session.session_id, versions, connection.cert_key)


class PfwdOp(_ProxiedOp):
    __slots__ = ()

    def _refused(self) -> ErrorType | None:
        router = self.client.router
        if router.relays.session(self.t.entity_id) is None:
            router.stats.pMsgFwds.pRequests += 1
            router.stats.pMsgFwds.pErrorsConnect += 1
            return Proxy(ProxyErrorTag.NO_SESSION)
        return None

    async def work(self) -> Reply:
        router = self.client.router
        relay = router.relays.session(self.t.entity_id)
        if relay is None:
            return ERR(Proxy(ProxyErrorTag.NO_SESSION))
        counted = _Counted(router.stats.pMsgFwds, router.stats.pMsgFwdsOwn, relay.own)
        counted.add("pRequests")
        relay.waiting += 1
        try:
            reply = await self._forward(relay)
        except RelayError as failure:
            counted.add("pErrorsOther")
            return _broker(failure.error)
        finally:
            relay.waiting -= 1
        protocol_error = (
            isinstance(reply, ERR) and isinstance(reply.error, Proxy) and isinstance(reply.error.error, ProxyProtocol)
        )
        counted.add("pSuccesses" if isinstance(reply, PRES) or protocol_error else "pErrorsOther")
        return reply

    async def _forward(self, relay: Relay) -> Reply:
        """RFWD to the relay under a nonce of our own, and its answer back to the client."""
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
        except Closed:
            raise RelayError(BrokerErrorTag.NETWORK) from None
        except CannotSend as failure:
            raise RelayError(BrokerTransport(failure.error)) from None
        if isinstance(reply, RRES):
            opened = open_forward_response(secret, nonce, reply.response)
            return ERR(Simple.CRYPTO) if opened is None else PRES(opened.response)
        if isinstance(reply, ERR):
            return ERR(Proxy(ProxyProtocol(reply.error)))
        # A relay that answers something else, or nothing that can be read.
        text = type(reply).__name__ if isinstance(reply, Reply) else "BLOCK"
        return _broker(BrokerResponse(text, unexpected=isinstance(reply, Reply)))


class _Counted:
    """Counts for all relays, and for the operator's own."""

    __slots__ = ("_sets",)

    def __init__(self, all_: ProxyStats, own: ProxyStats, is_own: bool) -> None:
        self._sets = (all_, own) if is_own else (all_,)

    def add(self, name: str) -> None:
        for stats in self._sets:
            setattr(stats, name, getattr(stats, name) + 1)
