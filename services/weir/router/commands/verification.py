"""Verification of one command against a queue's keys and the session's service.

The order of checks is the reference's: the queue must exist, then the role, then the service's signature, then the
queue's key. weir/runtime/verification.py compares an authorisation with a key.

Signatures of the service on commands that wait for their turn are verified together, as authenticators are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from weir.crypto import multibuffer
from weir.crypto.authenticator import AUTHENTICATOR_SIZE, verify, verify_signature
from weir.router.store.records import QueueRecord
from weir.runtime.verification import Ahead, KeyVerifier, Waiting
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import DECLARATIONS, QueueMode, ServiceRole
from weir.wire.smp.transmission import ClientTransmission

_ROLES = {kind: declared.role for kind, declared in DECLARATIONS.items()}
_SERVICE_SIGNED = frozenset(kind for kind, declared in DECLARATIONS.items() if declared.service_signed)
_SECURING = (cmd.SKEY, cmd.LKEY)
_MOST_AHEAD = 64  # signatures verified ahead; those whose command never asks for them are dropped


Command = Waiting[ClientTransmission]


class Service(Protocol):
    """The service a session authenticated as in its handshake."""

    @property
    def service_id(self) -> bytes: ...
    @property
    def role(self) -> ServiceRole: ...
    @property
    def cert_hash(self) -> bytes: ...
    @property
    def key(self) -> bytes: ...


def is_contact(record: QueueRecord) -> bool:
    """Contact addresses from before SKEY have no mode."""
    if record.mode is None:
        return record.snd_key is None
    return record.mode is QueueMode.CONTACT


def is_secured_messaging(record: QueueRecord) -> bool:
    return record.mode is not QueueMode.CONTACT and record.snd_key is not None


class Verifier(KeyVerifier[ClientTransmission]):
    """Verifies the commands of one session."""

    __slots__ = ("_verified_ahead", "service")

    def __init__(self, session_key: bytes, service: Service | None) -> None:
        super().__init__(session_key)
        self._verified_ahead: dict[bytes, bytes | None] = {}  # service signature → the bytes it signs, None if wrong
        self.service = service

    def look_ahead(self, first: Command, waiting: Iterable[Command]) -> None:
        if self._lanes == 1:
            return
        t = first.t
        signature = t.service_sig
        if signature is not None and self.service is not None and signature not in self._verified_ahead:
            self._verify_signatures([first, *islice(waiting, self._lanes - 1)], self.service.key)
        super().look_ahead(first, waiting)

    def _verify_signatures(self, commands: list[Command], key: bytes) -> None:
        verified = self._verified_ahead
        signed = [
            (signature, command.t.authorized)
            for command in commands
            if (signature := command.t.service_sig) is not None and signature not in verified
        ]
        if len(signed) == 1:
            return
        if len(verified) >= _MOST_AHEAD:
            verified.clear()
        for (signature, authorized), correct in zip(signed, multibuffer.verify_many(key, signed), strict=True):
            verified[signature] = authorized if correct else None

    def forwarded(self) -> Verifier:
        """Return a verifier for commands that a proxy forwards: without a service, with the same cached secrets."""
        verifier = Verifier(self._session_key, None)
        verifier._secrets = self._secrets
        return verifier

    def is_cheap(self, t: ClientTransmission, key: bytes | None) -> bool:
        """Whether verifying this command with this key costs no public-key operation."""
        if t.service_sig is not None:
            return False
        auth = t.auth
        return not auth or (len(auth) == AUTHENTICATOR_SIZE and key is not None and self._secrets.get(key) is not None)

    def at_once(self, t: ClientTransmission, key: bytes | None) -> bool | None:
        """Do what `queue` does for the hot case: one key whose secret is cached, no service. None: another case."""
        auth = t.auth
        if len(auth) != AUTHENTICATOR_SIZE or key is None or t.service_sig is not None or self.service is not None:
            return None
        secret = self._secrets.recent.get(key) or self._secrets.get(key)
        return None if secret is None else verify(secret, t.corr_id, auth, t.authorized)

    def _sender(self, t: ClientTransmission, record: QueueRecord, ahead: Ahead | None) -> ErrorType | None:
        """Verify SEND, which needs no authorisation until the queue is secured."""
        if self.service is not None or t.service_sig is not None:
            error = self.session(t)
            if error is not None:
                return error
        key = record.snd_key
        if key is None:
            if not t.auth:
                return None
            self.dummy(t, ahead)
            return Simple.AUTH
        return None if self.authorised(t, t.authorized, key, ahead) else Simple.AUTH

    def queue(self, t: ClientTransmission, record: QueueRecord, ahead: Ahead | None = None) -> ErrorType | None:
        """Verify a command on a queue that exists. Return None if the command may be executed."""
        command = t.command
        kind = type(command)
        if kind is cmd.SEND:
            return self._sender(t, record, ahead)
        authorized = t.authorized
        if self.service is not None or t.service_sig is not None:
            error = self.session(t)
            if error is not None:
                return error
            if self.service is not None and t.service_sig is not None:
                authorized = self.service.cert_hash + authorized
        if isinstance(command, _SECURING):
            allowed = record.mode is QueueMode.MESSAGING and record.snd_key in (None, command.key)
            keys: tuple[bytes, ...] = (command.key,) if allowed else ()
        elif kind is cmd.LGET:
            return None if is_contact(record) else Simple.AUTH
        elif kind is cmd.NSUB:
            keys = () if record.ntf_key is None else (record.ntf_key,)
        else:
            keys = record.rcv_keys
        if not keys:
            self.dummy(t, ahead)
            return Simple.AUTH
        for key in keys:
            if self.authorised(t, authorized, key, ahead):
                return None
        return Simple.AUTH

    def missing(self, t: ClientTransmission, ahead: Ahead | None = None) -> ErrorType:
        """Refuse a command on a queue that does not exist, after the same work as for a queue that exists."""
        self.session(t)
        self.dummy(t, ahead)
        return Simple.AUTH

    def other(self, t: ClientTransmission, ahead: Ahead | None = None) -> ErrorType | None:
        """Verify a command without a queue: NEW, SUBS, NSUBS, PRXY, PFWD, RFWD."""
        command = t.command
        error = self.session(t)
        if error is not None:
            return error
        if isinstance(command, cmd.NEW):
            authorized = t.authorized
            if self.service is not None and t.service_sig is not None:
                authorized = self.service.cert_hash + authorized
            return None if self.authorised(t, authorized, command.rcv_auth_key, ahead) else Simple.AUTH
        if isinstance(command, (cmd.SUBS, cmd.NSUBS)):
            service = self.service
            if (
                service is not None
                and t.entity_id == service.service_id
                and verify_signature("ed25519", service.key, t.auth, t.authorized)
            ):
                return None
            return Simple.SERVICE
        return None

    def session(self, t: ClientTransmission) -> ErrorType | None:
        """Check that the command fits the service's role, and that the service has signed it exactly if it must."""
        service, signature, kind = self.service, t.service_sig, type(t.command)
        if service is not None:
            role = _ROLES[kind]
            if role is not None and role is not service.role:
                return CommandError.PROHIBITED
        if kind in _SERVICE_SIGNED:
            if service is None or signature is None:
                return None if service is None and signature is None else Simple.SERVICE
            if self._verified_ahead.pop(signature, None) == t.authorized:
                return None
            return None if verify_signature("ed25519", service.key, signature, t.authorized) else Simple.SERVICE
        return None if signature is None else Simple.SERVICE
