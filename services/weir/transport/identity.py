"""The identity a running router presents: its online certificate may be replaced, its address stays.

A certificate may expire while the router runs. Connected clients stay, because nobody checks a certificate after the
handshake. New clients refuse the router until it has a new certificate. The log warns of the expiry beforehand.
"""

import logging
import ssl
from pathlib import Path

from weir.crypto.certificates import days_to_expiry
from weir.crypto.identity import Identity, IdentityPaths, load_identity
from weir.crypto.pem import UnusableFile, key_to_pem
from weir.crypto.session_key import sign_session_key
from weir.transport.tls import server_context

_log = logging.getLogger(__name__)

_EXPIRES_SOON = 14.0  # days

_Stamp = tuple[tuple[int, int], ...]
"""Time of change and inode of each file."""


class OnlineIdentity:
    """One online certificate with its TLS context. A handshake keeps the certificate it began with."""

    __slots__ = ("_key", "chain", "context", "fingerprint")

    def __init__(self, identity: Identity, alpn: str, ask_client_certificate: bool) -> None:
        self.chain = identity.chain
        self.fingerprint = identity.fingerprint
        self.context: ssl.SSLContext = server_context(
            identity.chain, key_to_pem(identity.key), alpn, ask_client_cert=ask_client_certificate
        )
        self._key = identity.key

    def sign_session_key(self, spki: bytes) -> bytes:
        return sign_session_key(self._key, spki)


class ServerIdentity:
    """An identity directory (see crypto/identity.py). The CA's key is never read."""

    def __init__(self, directory: Path, *, alpn: str, ask_client_certificate: bool) -> None:
        """Load the identity. Raises UnusableFile or OSError. `Protocol.identity` knows the other arguments."""
        self._directory = directory
        self._alpn = alpn
        self._ask_client_certificate = ask_client_certificate
        self._stamp = self._files()
        self.problem: str | None = None
        """Why the last changed certificate is not in use."""
        self._failed: _Stamp | None = None  # the files that the last reload could not use
        self._logged = False
        self._warned: tuple[bytes, bool] | None = None  # the certificate of the last warning; whether it had expired
        self.online = self._load(load_identity(directory))
        self._warn_of_expiry()

    def _load(self, identity: Identity) -> OnlineIdentity:
        return OnlineIdentity(identity, self._alpn, self._ask_client_certificate)

    @property
    def fingerprint(self) -> bytes:
        return self.online.fingerprint

    def days_to_expiry(self) -> float:
        """Return the days until the online certificate expires."""
        return days_to_expiry(self.online.chain[0]) or 0.0

    def reload(self) -> bool:
        """Use a changed online certificate for new handshakes. Return whether there was one. Clients stay connected."""
        changed = self._reload()
        self._warn_of_expiry()
        return changed

    def _reload(self) -> bool:
        stamp = self._files()
        if stamp == self._stamp:
            return False
        try:
            identity = load_identity(self._directory)
            if identity.fingerprint != self.fingerprint:
                raise UnusableFile("ca.crt: another identity; a running router keeps its address")
            self.online = self._load(identity)
        except (UnusableFile, OSError, ssl.SSLError) as error:
            self._note_problem(str(error), stamp)
            return False
        self._stamp, self.problem, self._failed = stamp, None, None
        return True

    def _warn_of_expiry(self) -> None:
        """Log once that the certificate expires soon, and once that it has expired."""
        days = self.days_to_expiry()
        warning = self.online.chain[0], days <= 0
        if days > _EXPIRES_SOON or warning == self._warned:
            return
        self._warned = warning
        if days > 0:
            _log.warning("the online certificate expires in %d days: make a new one (weir smp cert)", days)
        else:
            _log.error("the online certificate has expired, so new clients refuse it: make a new one (weir smp cert)")

    def _note_problem(self, problem: str, stamp: _Stamp) -> None:
        """Keep the problem. Log it when the next reload finds the same files: at first they may be half written."""
        self.problem = problem
        if stamp != self._failed:
            self._failed, self._logged = stamp, False
        elif not self._logged:
            self._logged = True
            _log.warning("the new online certificate is not in use: %s", problem)

    def _files(self) -> _Stamp:
        stamps = []
        paths = IdentityPaths.of(self._directory)
        for path in (paths.certificate, paths.key, paths.ca_certificate):
            try:
                status = path.stat()
            except OSError:
                stamps.append((0, 0))
            else:
                stamps.append((status.st_mtime_ns, status.st_ino))
        return tuple(stamps)
