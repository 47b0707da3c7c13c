"""RFWD: a command that a proxy forwards for a sender who stays unknown to this router.

The inner transmission is encrypted between the sender and this router with a key that is used once. It is verified
without any service identity, and only the commands that a sender needs are allowed.
"""

from __future__ import annotations

from weir.crypto.boxes import cb_decrypt_no_pad, nonce_of
from weir.crypto.keys import dh
from weir.router.commands.handler import Handler, PublicKeyHandler, handles
from weir.router.commands.verification import Verifier
from weir.router.session.subscriptions import Sub
from weir.router.store.records import Entry
from weir.runtime.incoming import Hold
from weir.wire.errors import BrokerTransport, CommandError, ErrorType, Proxy, ProxyBroker, Simple, TransportError
from weir.wire.smp import commands as cmd
from weir.wire.smp.forward import (
    FwdResponse,
    FwdTransmission,
    decode_fwd_transmission,
    open_transmission,
    seal_forward_response,
    seal_response,
)
from weir.wire.smp.session import Session as Framing
from weir.wire.smp.transmission import TransmissionError, decode_block, encode_server, fits, pack

_ALLOWED = (cmd.SEND, cmd.SKEY, cmd.LKEY, cmd.LGET, cmd.RSLV)
_NO_AUTH = Proxy(ProxyBroker(BrokerTransport(TransportError.NO_AUTH)))


@handles(cmd.RFWD)
class RfwdHandler(PublicKeyHandler):
    __slots__ = ("_hold",)

    _hold: Hold

    def begin(self) -> None:
        error = self.origin.verifier.other(self.t)
        if error is None:
            self._hold = self.session.incoming.hold()
            self.session.incoming.share.add(self)
        else:
            self.fail(error)

    def step(self) -> None:
        with self._hold:
            error = self._begin_inner()
            if error is not None:
                self.fail(error)

    def _begin_inner(self) -> ErrorType | None:
        """Decrypt the inner command and begin it. Return the error if there is no inner command."""
        conn = self.session.conn
        command = self.t.command
        assert isinstance(command, cmd.RFWD)
        secret = conn.session_secret
        if secret is None:
            return _NO_AUTH
        plain = cb_decrypt_no_pad(secret, nonce_of(self.t.corr_id), command.transmission)
        if plain is None:
            return Simple.CRYPTO
        opened = decode_fwd_transmission(plain)
        if opened is None:
            return CommandError.SYNTAX
        inner_secret = dh(opened.key, conn.session_key)
        content = open_transmission(inner_secret, opened.corr_id, opened.transmission)
        if content is None:
            return Simple.CRYPTO
        framing = Framing.forwarded(conn.session.session_id, opened.version)
        transmissions = decode_block(framing, content)
        if len(transmissions) != 1:
            return Simple.BLOCK
        origin = _Forwarded(self, framing, self.origin.verifier.forwarded(), opened, inner_secret)
        t = transmissions[0]
        if not isinstance(t, TransmissionError) and not isinstance(t.command, _ALLOWED):
            t = TransmissionError(t.corr_id, t.entity_id, CommandError.PROHIBITED)
        self.session.dispatch(t, origin, 0)
        return None


class _Forwarded:
    """The origin of a forwarded command: its answer goes through two boxes back to the proxy."""

    __slots__ = ("_forward", "_outer", "_secret", "framing", "verifier")

    def __init__(
        self, outer: RfwdHandler, framing: Framing, verifier: Verifier, forward: FwdTransmission, secret: bytes
    ) -> None:
        self._outer = outer
        self.framing = framing
        self.verifier = verifier
        self._forward = forward
        self._secret = secret

    def answer(self, handler: Handler, reply: bytes) -> None:
        self._outer.session.shared.answers.by_command[handler.t.command.__class__] += 1
        self.put(0, handler.t.corr_id, handler.t.entity_id, reply)

    def answer_sub(self, handler: Handler, reply: bytes, sub: Sub, entry: Entry) -> None:
        raise NotImplementedError  # SUB is not allowed

    def detach(self, handler: Handler) -> None:
        raise NotImplementedError  # PFWD is not allowed

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        outer = self._outer
        encoded = encode_server(self.framing, corr_id, entity_id, reply)
        if not fits(encoded):
            outer.fail(Simple.BLOCK)
            return
        session_secret = outer.session.conn.session_secret
        assert session_secret is not None
        box = seal_response(self._secret, self._forward.corr_id, pack([encoded])[0])
        response = seal_forward_response(session_secret, outer.t.corr_id, FwdResponse(self._forward.corr_id, box))
        outer.session.shared.stats.pMsgFwdsRecv += 1
        outer.answer(b"RRES " + response)
