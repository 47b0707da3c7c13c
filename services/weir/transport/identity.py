"""Who the router is, while it runs: the online certificate may change under it, the address may not."""

import ssl
from pathlib import Path

from weir.crypto.certificates import days_to_expiry
from weir.crypto.identity import Identity, IdentityPaths, load_identity
from weir.crypto.pem import UnusableFile, key_to_pem
from weir.crypto.session_key import sign_session_key
from weir.transport.tls import server_context
from weir.wire.versions import SMP_ALPN


class OnlineIdentity:
    """One online certificate and what is made of it. Handshakes hold on to the one they began with."""

    __slots__ = ("_key", "chain", "context", "fingerprint")

    def __init__(self, identity: Identity, alpn: str) -> None:
        self.chain = identity.chain
        self.fingerprint = identity.fingerprint
        self.context: ssl.SSLContext = server_context(identity.chain, key_to_pem(identity.key), alpn)
        self._key = identity.key

    def sign_session_key(self, spki: bytes) -> bytes:
        return sign_session_key(self._key, spki)


class ServerIdentity:
    """An identity directory (see crypto/identity.py); the CA's key is never read."""

    def __init__(self, directory: Path, *, alpn: str = SMP_ALPN) -> None:
        """Raises UnusableFile or OSError when there is no usable identity."""
        self._directory = directory
        self._alpn = alpn
        self._stamp = self._files()
        self.problem: str | None = None
        """Why the last changed certificate was not taken up."""
        self.online = OnlineIdentity(load_identity(directory), alpn)

    @property
    def fingerprint(self) -> bytes:
        return self.online.fingerprint

    def days_to_expiry(self) -> float:
        """Of the online certificate."""
        return days_to_expiry(self.online.chain[0]) or 0.0

    def reload(self) -> bool:
        """Take up a changed online certificate for new handshakes; True when it did. Clients stay."""
        stamp = self._files()
        if stamp == self._stamp:
            return False
        try:
            identity = load_identity(self._directory)
            if identity.fingerprint != self.fingerprint:
                raise UnusableFile("ca.crt: another identity; a running router keeps its address")
            self.online = OnlineIdentity(identity, self._alpn)
        except (UnusableFile, OSError, ssl.SSLError) as error:
            # Half written perhaps: it is looked at again next time.
            self.problem = str(error)
            return False
        self._stamp, self.problem = stamp, None
        return True

    def _files(self) -> tuple[tuple[int, int], ...]:
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
