"""Certificates and private keys on disk, as PEM. Key files are readable by their owner only."""

import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from weir.crypto.certificates import private_key
from weir.crypto.keys import KeyPair, key_pair


class UnusableFile(ValueError):
    """A file has the wrong content. The message names the file and the fault."""


def certificates_to_pem(chain: tuple[bytes, ...]) -> bytes:
    return b"".join(x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in chain)


def key_to_pem(pair: KeyPair) -> bytes:
    return private_key(pair).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificates_from_pem(pem: bytes, name: str = "certificate") -> tuple[bytes, ...]:
    try:
        return tuple(one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(pem))
    except ValueError:
        raise UnusableFile(f"{name}: no certificate in PEM form") from None


def key_from_pem(pem: bytes, name: str = "key") -> KeyPair:
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise UnusableFile(f"{name}: no unencrypted private key in PEM form") from None
    if isinstance(key, Ed448PrivateKey):
        return key_pair("ed448", key.private_bytes_raw())
    if isinstance(key, Ed25519PrivateKey):
        return key_pair("ed25519", key.private_bytes_raw())
    raise UnusableFile(f"{name}: the key is neither Ed25519 nor Ed448")


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically: an edge that reads it meanwhile gets the old content or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_key(path: Path, pair: KeyPair) -> None:
    write_file(path, key_to_pem(pair), 0o600)


def save_certificates(path: Path, chain: tuple[bytes, ...]) -> None:
    write_file(path, certificates_to_pem(chain), 0o644)


def load_key(path: Path) -> KeyPair:
    return key_from_pem(path.read_bytes(), path.name)


def load_certificates(path: Path) -> tuple[bytes, ...]:
    return certificates_from_pem(path.read_bytes(), path.name)
