"""VAPID (RFC 8292): how the router identifies itself to push services of Web Push.

A key's token for a server is valid for one to two hours, and the same on all edges.

A key file may hold several keys. The first is in the router's address, so it is the key of new subscriptions; the
others are those of older ones. The file is read again when it changes, so that keys are rotated without a restart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from weir.crypto import p256
from weir.crypto.pem import UnusableFile

_log = logging.getLogger(__name__)

_PERIOD: Final = 3600
_MOST_TOKENS: Final = 10_000
_LOOK_SECONDS: Final = 1.0

_Stamp = tuple[int, int]
"""Time of change and inode of the file."""


class Vapid:
    """One key; it authorises requests. `now` is the Unix time."""

    def __init__(self, key: p256.PrivateKey, subject: str | None, *, now: Callable[[], float] = time.time) -> None:
        self._key = key
        self.public = p256.public_text(key)
        self._subject = {} if subject is None else {"sub": subject}
        self._now = now
        self._expires = 0
        self._by_origin: dict[str, bytes] = {}

    def authorization(self, origin: str) -> bytes:
        """Return the value of the authorization header for one server."""
        expires = (int(self._now()) // _PERIOD + 2) * _PERIOD
        if expires != self._expires or len(self._by_origin) >= _MOST_TOKENS:
            self._expires = expires
            self._by_origin.clear()
        value = self._by_origin.get(origin)
        if value is None:
            token = p256.web_token(self._key, {"typ": "JWT"}, {"aud": origin, "exp": expires, **self._subject})
            value = self._by_origin[origin] = b"vapid t=" + token + b",k=" + self.public.encode()
        return value

    def current(self) -> tuple[Vapid, ...]:
        return (self,)


class VapidKeys(Protocol):
    def current(self) -> tuple[Vapid, ...]:
        """The keys, the one of new subscriptions first."""


class VapidFile:
    """The keys of a file. Raises UnusableFile or OSError if they cannot be read at first; later the old ones stay."""

    def __init__(self, path: Path, subject: str | None) -> None:
        self._path = path
        self._subject = subject
        self._looked_at = time.monotonic()
        self._stamp = self._file()
        self._keys: tuple[Vapid, ...] = ()
        self._keys = self._read()

    def current(self) -> tuple[Vapid, ...]:
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self._follow()
        return self._keys

    def _follow(self) -> None:
        stamp = self._file()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._keys = self._read()
        except (OSError, UnusableFile) as error:
            _log.warning("the changed VAPID key is not in use: %s", error)

    def _read(self) -> tuple[Vapid, ...]:
        """A key that stays keeps its tokens."""
        known = {key.public: key for key in self._keys}
        made = p256.keys_from_pem(self._path.read_bytes(), self._path.name)
        return tuple(known.get(p256.public_text(key)) or Vapid(key, self._subject) for key in made)

    def _file(self) -> _Stamp:
        try:
            status = self._path.stat()
        except OSError:
            return (0, 0)
        return status.st_mtime_ns, status.st_ino
