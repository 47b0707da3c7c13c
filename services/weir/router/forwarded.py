"""RFWD: a command that a proxy forwards for somebody it does not tell us of.

The inner transmission is encrypted between the sender and this router with a key made for it alone; it is verified
without any service identity, and only what a sender needs is allowed.
"""

from __future__ import annotations

from weir.crypto.boxes import cb_decrypt_no_pad, nonce_of
from weir.crypto.keys import dh
from weir.router.op import Op, encode_error
from weir.router.subscriptions import Sub
from weir.router.verification import Verifier
from weir.store.records import Entry
from weir.wire import commands as cmd
from weir.wire.errors import BrokerTransport, CommandError, ErrorType, Proxy, ProxyBroker, Simple, TransportError
from weir.wire.forward import (
    FwdResponse,
    FwdTransmission,
    decode_fwd_transmission,
    open_transmission,
    seal_forward_response,
    seal_response,
)
from weir.wire.session import Session
from weir.wire.transmission import TransmissionError, decode_block, encode_server, fits, pack

_ALLOWED = (cmd.SEND, cmd.SKEY, cmd.LKEY, cmd.LGET, cmd.RSLV)
_NO_AUTH = Proxy(ProxyBroker(BrokerTransport(TransportError.NO_AUTH)))


class RfwdOp(Op):
    __slots__ = ()

    def begin(self) -> None:
        error = self.origin.verifier.other(self.t)
        if error is None:
            self.client.hold += 1
            self.client.router.scheduler.add(self.client, self)
        else:
            self.fail(error)

    def step(self) -> None:
        error = self._forward()
        if error is not None:
            self.fail(error)
        self.client.release()

    def _forward(self) -> ErrorType | None:
        """Begin the inner command; the error when there is none."""
        conn = self.client.conn
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
        session = Session.forwarded(conn.session.session_id, opened.version)
        transmissions = decode_block(session, content)
        if len(transmissions) != 1:
            return Simple.BLOCK
        origin = _Forwarded(self, session, self.origin.verifier.forwarded(), opened, inner_secret)
        t = transmissions[0]
        if isinstance(t, TransmissionError):
            origin.put(0, t.corr_id, t.entity_id, encode_error(session.version, t.error))
        elif isinstance(t.command, _ALLOWED):
            self.client.begin(t, origin, 0)
        else:
            origin.put(0, t.corr_id, t.entity_id, encode_error(session.version, CommandError.PROHIBITED))
        return None


class _Forwarded:
    """Where a forwarded command's answer goes: through two boxes, back to the proxy."""

    __slots__ = ("_forward", "_op", "_secret", "session", "verifier")

    def __init__(
        self, op: RfwdOp, session: Session, verifier: Verifier, forward: FwdTransmission, secret: bytes
    ) -> None:
        self._op = op
        self.session = session
        self.verifier = verifier
        self._forward = forward
        self._secret = secret

    def answer(self, op: Op, reply: bytes) -> None:
        self.put(0, op.t.corr_id, op.t.entity_id, reply)

    def answer_sub(self, op: Op, reply: bytes, sub: Sub, entry: Entry) -> None:
        raise NotImplementedError  # SUB is not allowed

    def detach(self, op: Op) -> None:
        raise NotImplementedError  # PFWD is not allowed

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        op = self._op
        encoded = encode_server(self.session, corr_id, entity_id, reply)
        if not fits(encoded):
            op.fail(Simple.BLOCK)
            return
        session_secret = op.client.conn.session_secret
        assert session_secret is not None
        box = seal_response(self._secret, self._forward.corr_id, pack([encoded])[0])
        response = seal_forward_response(session_secret, op.t.corr_id, FwdResponse(self._forward.corr_id, box))
        op.client.router.stats.pMsgFwdsRecv += 1
        op.answer(b"RRES " + response)
