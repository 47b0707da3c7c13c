"""Who may do what: verification of one command against a queue's keys and the session's service.

The order of checks is the reference's: the queue must exist, then role, service signature, then the queue's key.
When a queue is missing, or a key is of another kind than the authorisation, dummy keys do the same work.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final, Protocol

from weir.crypto import multibuffer
from weir.crypto.authenticator import AUTHENTICATOR_SIZE, DUMMY_X25519, dummy_verify, verify, verify_signature
from weir.crypto.boxes import nonce_of
from weir.crypto.keys import dh, parse_spki
from weir.router.cache import Cache
from weir.store.records import QueueRecord
from weir.wire import commands as cmd
from weir.wire.commands import QueueMode, ServiceRole
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.transmission import ClientTransmission

_SECRETS = 1024  # DH secrets one connection keeps: 0.2 MB at most

_ROLES: dict[type[cmd.Command], ServiceRole | None] = {
    cmd.PING: None,
    cmd.NSUB: ServiceRole.NOTIFIER,
    cmd.NSUBS: ServiceRole.NOTIFIER,
    cmd.RFWD: ServiceRole.PROXY,
}
_SERVICE_SIGNED = (cmd.NEW, cmd.SUB, cmd.NSUB)
_SECURING = (cmd.SKEY, cmd.LKEY)
_TOGETHER: Final = multibuffer.lanes()
_AHEAD = 8 * _TOGETHER  # signatures found right ahead of their turn; what their command never asks for is thrown away


class Waiting(Protocol):
    """A command that waits for its turn."""

    @property
    def t(self) -> ClientTransmission: ...


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
    """Verifies the commands of one session; keeps DH secrets of keys that have authorised something."""

    __slots__ = ("_ahead", "_secrets", "_session_key", "service")

    def __init__(self, session_key: bytes, service: Service | None) -> None:
        self._session_key = session_key
        self._secrets: Cache[bytes] = Cache(_SECRETS)
        self._ahead: dict[bytes, bytes | None] = {}  # service signature → what it signs, None if not found right
        self.service = service

    def look_ahead(self, t: ClientTransmission, waiting: Iterable[Waiting]) -> None:
        """Verify the service's signature of `t` together with those of commands that wait behind it."""
        service, ahead, first = self.service, self._ahead, t.service_sig
        if _TOGETHER == 1 or service is None or first is None or first in ahead:
            return
        signed = [(first, t.authorized)]
        for op in islice(waiting, _TOGETHER - 1):
            signature = op.t.service_sig
            if signature is not None and signature not in ahead:
                signed.append((signature, op.t.authorized))
        if len(signed) == 1:
            return
        if len(ahead) >= _AHEAD:
            ahead.clear()
        for (signature, authorized), right in zip(signed, multibuffer.right(service.key, signed), strict=True):
            ahead[signature] = authorized if right else None

    def forwarded(self) -> Verifier:
        """For commands that a proxy forwards: no service identity; its secrets are kept here as well."""
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
        """`queue` for the hot case: one key, whose secret is known, and no service. None: it is another case."""
        auth = t.auth
        if len(auth) != AUTHENTICATOR_SIZE or key is None or t.service_sig is not None or self.service is not None:
            return None
        secret = self._secrets.get(key)
        return None if secret is None else verify(secret, t.corr_id, auth, t.authorized)

    def sender(self, t: ClientTransmission, record: QueueRecord) -> ErrorType | None:
        """SEND, the hot one: unauthorised until the queue is secured."""
        if self.service is not None or t.service_sig is not None:
            error = self.session(t)
            if error is not None:
                return error
        key = record.snd_key
        if key is None:
            if not t.auth:
                return None
            self.dummy(t)
            return Simple.AUTH
        return None if self._authorised(t, t.authorized, key) else Simple.AUTH

    def queue(self, t: ClientTransmission, record: QueueRecord) -> ErrorType | None:
        """Any command on a queue that exists; None when it may be done."""
        command = t.command
        kind = type(command)
        if kind is cmd.SEND:
            return self.sender(t, record)
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
            self.dummy(t)
            return Simple.AUTH
        for key in keys:
            if self._authorised(t, authorized, key):
                return None
        return Simple.AUTH

    def missing(self, t: ClientTransmission) -> ErrorType:
        """A command on a queue that does not exist: the same work, and no."""
        self.session(t)
        self.dummy(t)
        return Simple.AUTH

    def other(self, t: ClientTransmission) -> ErrorType | None:
        """Commands without a queue: NEW, PING, SUBS, NSUBS, PRXY, PFWD, RFWD."""
        command = t.command
        error = self.session(t)
        if error is not None:
            return error
        if isinstance(command, cmd.NEW):
            authorized = t.authorized
            if self.service is not None and t.service_sig is not None:
                authorized = self.service.cert_hash + authorized
            return None if self._authorised(t, authorized, command.rcv_auth_key) else Simple.AUTH
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

    def dummy(self, t: ClientTransmission) -> None:
        dummy_verify(self._session_key, nonce_of(t.corr_id), t.auth, t.authorized)

    def session(self, t: ClientTransmission) -> ErrorType | None:
        """The command fits the service's role, and is signed by the service exactly where it has to be."""
        service, signature, kind = self.service, t.service_sig, type(t.command)
        if service is not None:
            role = _ROLES.get(kind, ServiceRole.MESSAGING)
            if role is not None and role is not service.role:
                return CommandError.PROHIBITED
        if kind in _SERVICE_SIGNED:
            if service is None or signature is None:
                return None if service is None and signature is None else Simple.SERVICE
            if self._ahead.pop(signature, None) == t.authorized:
                return None
            return None if verify_signature("ed25519", service.key, signature, t.authorized) else Simple.SERVICE
        return None if signature is None else Simple.SERVICE

    def _authorised(self, t: ClientTransmission, authorized: bytes, key: bytes) -> bool:
        auth = t.auth
        if len(auth) == AUTHENTICATOR_SIZE:
            nonce = nonce_of(t.corr_id)
            secret = self._secrets.get(key)
            if secret is not None:
                return verify(secret, nonce, auth, authorized)
            parsed = parse_spki(key)
            right_kind = parsed is not None and parsed[0] == "x25519"
            raw = parsed[1] if parsed is not None and right_kind else DUMMY_X25519.public
            secret = dh(raw, self._session_key)
            if verify(secret, nonce, auth, authorized) and right_kind:
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
