"""The verification of authorisations against keys, the same for every protocol.

If an entity is missing, or its key is of another kind than the authorisation, dummy keys do the same work.

X25519 secrets for authenticators of commands that wait for their turn are computed together, as many as the accelerator
has lanes (weir/crypto/multibuffer.py). A missing entity occupies a lane with a dummy key, so a miss still takes as long
as a hit. Only commands of one connection are put together. Across connections it would not pay: once a secret is
cached, a command needs no public-key operation, and the first command of a connection saves 30 µs by it where the
connection's handshake has taken 1,000.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from weir.crypto import multibuffer
from weir.crypto.authenticator import AUTHENTICATOR_SIZE, DUMMY_X25519, dummy_verify, verify, verify_signature
from weir.crypto.boxes import nonce_of
from weir.crypto.keys import dh, parse_spki, parse_x25519
from weir.runtime.cache import Cache

_SECRETS = 1024  # DH secrets that one connection keeps: 0.2 MB at most


class Ahead(NamedTuple):
    """A box key that was computed together with others, ahead of its command's verification."""

    key: bytes | None  # as in the entity's record; None: the entity is missing
    is_x25519: bool  # otherwise the secret is the dummy key's
    secret: bytes


class Transmission(Protocol):
    @property
    def auth(self) -> bytes: ...
    @property
    def authorized(self) -> bytes: ...
    @property
    def corr_id(self) -> bytes: ...


T = TypeVar("T", bound=Transmission, covariant=True)


class Waiting(Protocol[T]):
    """A command that waits for its turn."""

    ahead: Ahead | None

    @property
    def t(self) -> T: ...

    def likely_key(self) -> bytes | None:
        """Return the key that will most likely authorise the command; None if its entity is missing."""


class KeyVerifier(Generic[T]):
    """Verifies authorisations of one session, and keeps the DH secrets of keys that have authorised a command."""

    __slots__ = ("_lanes", "_secrets", "_session_key")

    def __init__(self, session_key: bytes) -> None:
        self._lanes = multibuffer.lanes()
        self._session_key = session_key
        self._secrets: Cache[bytes] = Cache(_SECRETS)

    def look_ahead(self, first: Waiting[T], waiting: Iterable[Waiting[T]]) -> None:
        """Do the public-key operations of `first` together with those of the commands that wait behind it."""
        if self._lanes > 1 and first.ahead is None and len(first.t.auth) == AUTHENTICATOR_SIZE:
            self._compute_secrets([first, *islice(waiting, self._lanes - 1)])

    def _compute_secrets(self, commands: list[Waiting[T]]) -> None:
        wanted: list[tuple[Waiting[T], bytes | None, bytes | None]] = []
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

    def authorised(self, t: Transmission, authorized: bytes, key: bytes, ahead: Ahead | None = None) -> bool:
        """Whether this key has authorised the bytes."""
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

    def dummy(self, t: Transmission, ahead: Ahead | None = None) -> None:
        """Verify with a dummy key. A secret that was computed ahead has cost as much as the dummy's."""
        if ahead is not None and len(t.auth) == AUTHENTICATOR_SIZE:
            verify(ahead.secret, nonce_of(t.corr_id), t.auth, t.authorized)
        else:
            dummy_verify(self._session_key, nonce_of(t.corr_id), t.auth, t.authorized)
