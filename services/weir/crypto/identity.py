"""A router's identity as a directory: ca.key, ca.crt, server.key, server.crt, fingerprint (the reference's names).

`ca.key` is needed to make an online certificate, never to run an edge: it may be kept elsewhere.
"""

import base64
from pathlib import Path
from typing import NamedTuple

from weir.crypto.certificates import (
    CERTIFICATE_DAYS,
    ChainError,
    Issued,
    certificate_key,
    fingerprint,
    make_ca,
    make_online,
    validate_chain,
)
from weir.crypto.keys import KeyPair, KeyType
from weir.crypto.pem import UnusableFile, load_certificates, load_key, save_certificates, save_key, write_file


class IdentityPaths(NamedTuple):
    ca_key: Path
    ca_certificate: Path
    key: Path
    certificate: Path
    fingerprint: Path

    @staticmethod
    def of(directory: Path) -> "IdentityPaths":
        names = ("ca.key", "ca.crt", "server.key", "server.crt", "fingerprint")
        return IdentityPaths(*(directory / name for name in names))


class Identity(NamedTuple):
    """The identity of an edge: the chain [online certificate, CA], the online key, and the fingerprint in addresses."""

    chain: tuple[bytes, ...]
    key: KeyPair
    fingerprint: bytes


def init_identity(
    directory: Path, common_name: str, key_type: KeyType = "ed25519", days: int = CERTIFICATE_DAYS
) -> Identity:
    """Create a CA and its first online certificate. Refuse to overwrite an identity: its address would be lost."""
    paths = IdentityPaths.of(directory)
    if paths.ca_certificate.exists():
        raise UnusableFile(f"{paths.ca_certificate}: there is an identity already")
    for left in (paths.ca_key, paths.certificate, paths.key):
        if left.exists():
            raise UnusableFile(
                f"{paths.ca_certificate}: missing, but {left.name} is there: put it back to keep the address"
            )
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca = make_ca(key_type)
    save_key(paths.ca_key, ca.key)
    save_certificates(paths.ca_certificate, (ca.certificate,))
    text = base64.urlsafe_b64encode(fingerprint(ca.certificate))
    write_file(paths.fingerprint, text + b"\n", 0o644)
    return renew_online(directory, common_name, key_type, days)


def renew_online(
    directory: Path, common_name: str, key_type: KeyType = "ed25519", days: int = CERTIFICATE_DAYS
) -> Identity:
    """Create a new online certificate under the same CA. The key is written first, so that a mismatch is short."""
    paths = IdentityPaths.of(directory)
    (ca_certificate, *_) = load_certificates(paths.ca_certificate)
    ca = Issued(ca_certificate, load_key(paths.ca_key))
    if certificate_key(ca.certificate) != (ca.key.type, ca.key.public):
        raise UnusableFile(f"{paths.ca_key}: not the key of {paths.ca_certificate.name}")
    online = make_online(ca, common_name, key_type, days)
    save_key(paths.key, online.key)
    save_certificates(paths.certificate, (online.certificate,))
    return load_identity(directory)


def load_identity(directory: Path) -> Identity:
    """Load the online certificate and key, and the CA's certificate. `server.crt` may hold the whole chain."""
    paths = IdentityPaths.of(directory)
    online = load_certificates(paths.certificate)
    (ca_certificate, *_) = load_certificates(paths.ca_certificate)
    chain = online if online[1:] else (online[0], ca_certificate)
    key = load_key(paths.key)
    if certificate_key(chain[0]) != (key.type, key.public):
        raise UnusableFile(f"{paths.certificate}: the certificate is not for {paths.key.name}")
    if validate_chain(chain) is ChainError.UNTRUSTED:
        raise UnusableFile(f"{paths.certificate}: not signed by {paths.ca_certificate.name}")
    return Identity(chain, key, fingerprint(chain[1]))
