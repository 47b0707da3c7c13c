"""Verification of one command against a queue's keys and the session's service.

The order of checks is the reference's: the queue must exist, then the role, then the service's signature, then the
queue's key. If a queue is missing, or a key is of another kind than the authorisation, dummy keys do the same work.

Public-key operations of commands that wait for their turn are done together, as many as the accelerator has lanes
(weir/crypto/multibuffer.py): the X25519 secrets for authenticators, and the service's signatures. A missing queue
occupies a lane with a dummy key, so a miss still takes as long as a hit. Only commands of one connection are put
together. Across connections it would not pay: once a secret is cached, SEND and ACK need no public-key operation, and
the first command of a connection saves 30 µs by it where the connection's handshake has taken 1,000.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, Protocol

from weir.crypto import multibuffer
from weir.crypto.authenticator import AUTHENTICATOR_SIZE, DUMMY_X25519, dummy_verify, verify, verify_signature
from weir.crypto.boxes import nonce_of
from weir.crypto.keys import dh, parse_spki, parse_x25519
from weir.router.cache import Cache
from weir.router.store.records import QueueRecord
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import DECLARATIONS, QueueMode, ServiceRole
from weir.wire.smp.transmission import ClientTransmission

_SECRETS = 1024  # DH secrets that one connection keeps: 0.2 MB at most

_ROLES = {kind: declared.role for kind, declared in DECLARATIONS.items()}
_SERVICE_SIGNED = frozenset(kind for kind, declared in DECLARATIONS.items() if declared.service_signed)
_SECURING = (cmd.SKEY, cmd.LKEY)
_MOST_AHEAD = 64  # signatures verified ahead; those whose command never asks for them are dropped


class Ahead(NamedTuple):
    """A box key that was computed together with others, ahead of its command's verification."""

    key: bytes | None  # as in the queue's record; None: the queue is missing
    is_x25519: bool  # otherwise the secret is the dummy key's
    secret: bytes


class Waiting(Protocol):
    """A command that waits for its turn."""

    ahead: Ahead | None

    @property
    def t(self) -> ClientTransmission: ...

    def likely_key(self) -> bytes | None:
        """Return the key that will most likely authorise the command; None if its queue is missing."""


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


class Verifier:
    """Verifies the commands of one session, and keeps the DH secrets of keys that have authorised a command."""

    __slots__ = ("_lanes", "_secrets", "_session_key", "_verified_ahead", "service")

    def __init__(self, session_key: bytes, service: Service | None) -> None:
        self._lanes = multibuffer.lanes()
        self._session_key = session_key
        self._secrets: Cache[bytes] = Cache(_SECRETS)
        self._verified_ahead: dict[bytes, bytes | None] = {}  # service signature → the bytes it signs, None if wrong
        self.service = service

    def look_ahead(self, first: Waiting, waiting: Iterable[Waiting]) -> None:
        """Do the public-key operations of `first` together with those of the commands that wait behind it."""
        if self._lanes == 1:
            return
        t = first.t
        signature = t.service_sig
        if signature is not None and self.service is not None and signature not in self._verified_ahead:
            self._verify_signatures([first, *islice(waiting, self._lanes - 1)], self.service.key)
        if first.ahead is None and len(t.auth) == AUTHENTICATOR_SIZE:
            self._compute_secrets([first, *islice(waiting, self._lanes - 1)])

    def _verify_signatures(self, commands: list[Waiting], key: bytes) -> None:
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

    def _compute_secrets(self, commands: list[Waiting]) -> None:
        wanted: list[tuple[Waiting, bytes | None, bytes | None]] = []
        pairs: list[tuple[bytes, bytes]] = []
        known, session_key, dummy = self._secrets, self._session_key, DUMMY_X25519.public
        for command in commands:
            if command.ahead is not None or len(command.t.auth) != AUTHENTICATOR_SIZE:
                continue
            key = command.likely_key()
            if key is not None and (key in known.recent or known.get(key) is not None):
                continue
            raw = None if key is None else parse_x25519(key)
            wanted.append((command, key, raw))
            pairs.append((raw or dummy, session_key))
        if len(pairs) > 1:
            for (command, key, raw), secret in zip(wanted, multibuffer.dh_many(pairs), strict=True):
                command.ahead = Ahead(key, raw is not None, secret)

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
            self._dummy(t, ahead)
            return Simple.AUTH
        return None if self._authorised(t, t.authorized, key, ahead) else Simple.AUTH

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
            self._dummy(t, ahead)
            return Simple.AUTH
        for key in keys:
            if self._authorised(t, authorized, key, ahead):
                return None
        return Simple.AUTH

    def missing(self, t: ClientTransmission, ahead: Ahead | None = None) -> ErrorType:
        """Refuse a command on a queue that does not exist, after the same work as for a queue that exists."""
        self.session(t)
        self._dummy(t, ahead)
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
            return None if self._authorised(t, authorized, command.rcv_auth_key, ahead) else Simple.AUTH
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

    def _dummy(self, t: ClientTransmission, ahead: Ahead | None) -> None:
        """Verify with a dummy key. A secret that was computed ahead has cost as much as the dummy's."""
        if ahead is not None and len(t.auth) == AUTHENTICATOR_SIZE:
            verify(ahead.secret, nonce_of(t.corr_id), t.auth, t.authorized)
        else:
            dummy_verify(self._session_key, nonce_of(t.corr_id), t.auth, t.authorized)

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

    def _authorised(self, t: ClientTransmission, authorized: bytes, key: bytes, ahead: Ahead | None) -> bool:
        auth = t.auth
        if len(auth) == AUTHENTICATOR_SIZE:
            nonce = nonce_of(t.corr_id)
            if ahead is not None and ahead.key == key:
                secret, is_x25519 = ahead.secret, ahead.is_x25519
            else:
                cached = self._secrets.get(key)
                if cached is not None:
                    return verify(cached, nonce, auth, authorized)
                raw = parse_x25519(key)
                secret, is_x25519 = dh(raw or DUMMY_X25519.public, self._session_key), raw is not None
            if verify(secret, nonce, auth, authorized) and is_x25519:
                self._secrets.put(key, secret)
                return True
            return False
        if not auth:
            return False
        parsed = parse_spki(key)
        if parsed is None or parsed[0] != ("ed25519" if len(auth) == 64 else "ed448"):
            dummy_verify(self._session_key, t.corr_id, auth, authorized)
            return False
        return verify_signature(parsed[0], parsed[1], auth, authorized)
