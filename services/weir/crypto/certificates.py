"""Certificates and chains: who a router or a service is (protocol, "Router certificate", "Client services").

A chain is DER certificates, leaf first. The identity certificate's SHA-256 is the fingerprint in an address,
and what a service is known by.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum
from hashlib import sha256
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey, Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from weir.crypto.keys import KeyPair, KeyType, generate

CERTIFICATE_DAYS: Final = 36500
_CLOCK_SKEW: Final = timedelta(days=1)
_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)


class Issued(NamedTuple):
    """A certificate (DER) and its private key."""

    certificate: bytes
    key: KeyPair


class Chain(NamedTuple):
    """The certificates of a chain that have a role. In a chain of one certificate all three are the same."""

    leaf: bytes
    identity: bytes
    ca: bytes


class ChainError(Enum):
    EMPTY = "no certificate"
    LONG = "more certificates than the protocol knows"
    MALFORMED = "not a certificate with an Ed25519 or Ed448 key"
    EXPIRED = "expired, or not yet valid"
    UNTRUSTED = "not signed by the next one"


def fingerprint(certificate: bytes) -> bytes:
    return sha256(certificate).digest()


def split_chain(chain: tuple[bytes, ...]) -> Chain | ChainError:
    """[identity] · [leaf, identity] · [leaf, identity, operator] · [leaf, identity, operator, network]."""
    if not chain:
        return ChainError.EMPTY
    if len(chain) > 4:
        return ChainError.LONG
    return Chain(chain[0], chain[1] if len(chain) > 1 else chain[0], chain[-1])


def _load(certificate: bytes) -> x509.Certificate | None:
    """Parse a certificate. None if it, its names or its dates are malformed, or its key is of another type."""
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        fields = (parsed.issuer, parsed.subject, parsed.not_valid_before_utc, parsed.not_valid_after_utc)
        usable = isinstance(parsed.public_key(), (Ed25519PublicKey, Ed448PublicKey)) and None not in fields
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        return None
    return parsed if usable else None


def _may_issue(certificate: x509.Certificate) -> bool:
    """Whether a certificate may sign others: an intermediate certificate must say that it is a CA's."""
    try:
        if not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    except x509.ExtensionNotFound as error:
        return error.oid == x509.KeyUsage.oid
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return False
    return usage.value.key_cert_sign


def _signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def validate_chain(chain: tuple[bytes, ...], now: datetime | None = None) -> ChainError | None:
    """Whether each certificate is valid now and signed by the next one. The last signs itself or is trusted anyway."""
    parts = split_chain(chain)
    if isinstance(parts, ChainError):
        return parts
    now = now or datetime.now(UTC)
    known: list[x509.Certificate] = []
    for der in chain:
        certificate = _load(der)
        if certificate is None:
            return ChainError.MALFORMED
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            return ChainError.EXPIRED
        known.append(certificate)
    signed = all(_signed_by(*pair) for pair in zip(known, known[1:] or known, strict=False))
    return None if signed and all(map(_may_issue, known[1:-1])) else ChainError.UNTRUSTED


def certificate_key(certificate: bytes) -> tuple[KeyType, bytes] | None:
    """Return the public key in a certificate."""
    parsed = _load(certificate)
    if parsed is None:
        return None
    key = parsed.public_key()
    if isinstance(key, Ed25519PublicKey):
        return "ed25519", key.public_bytes_raw()
    return ("ed448", key.public_bytes_raw()) if isinstance(key, Ed448PublicKey) else None


def days_to_expiry(certificate: bytes, now: datetime | None = None) -> float | None:
    parsed = _load(certificate)
    if parsed is None:
        return None
    return (parsed.not_valid_after_utc - (now or datetime.now(UTC))) / timedelta(days=1)


# --- making ---


def private_key(pair: KeyPair) -> Ed25519PrivateKey | Ed448PrivateKey:
    if pair.type == "ed448":
        return Ed448PrivateKey.from_private_bytes(pair.private)
    return Ed25519PrivateKey.from_private_bytes(pair.private)


_NAME_LENGTH = 64  # X.509's limit. Host names may be longer; clients ignore this name


def _name(common_name: str, organisation: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_NAME_LENGTH])]
    if organisation is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _builder(subject: x509.Name, issuer: x509.Name, key: KeyPair, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC).replace(microsecond=0)
    left = (_END_OF_TIME - now).days
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(private_key(key).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=min(days, left)))
    )


def _sign(builder: x509.CertificateBuilder, key: KeyPair) -> bytes:
    return builder.sign(private_key(key), None).public_bytes(Encoding.DER)


def make_ca(
    key_type: KeyType = "ed25519",
    common_name: str = "SMP server CA",
    organisation: str | None = "SimpleX",
    days: int = CERTIFICATE_DAYS,
) -> Issued:
    """Make the identity of a router or service: a self-signed certificate, kept offline. Its hash is in the address."""
    key = generate(key_type)
    name = _name(common_name, organisation)
    identifier = x509.SubjectKeyIdentifier.from_public_key(private_key(key).public_key())
    builder = (
        _builder(name, name, key, days)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return Issued(_sign(builder, key), key)


def make_online(
    ca: Issued, common_name: str, key_type: KeyType = "ed25519", days: int = CERTIFICATE_DAYS, *, client: bool = False
) -> Issued:
    """Make the certificate presented in TLS, signed by a CA: of a router, or with `client` of a service."""
    key = generate(key_type)
    issuer = x509.load_der_x509_certificate(ca.certificate)
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=True,
        key_agreement=True,
        key_encipherment=False,
        data_encipherment=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(_name(common_name), issuer.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=False)
        .add_extension(usage, critical=False)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    )
    return Issued(_sign(builder, ca.key), key)


def make_self_signed(
    common_name: str = "simplex", key_type: KeyType = "ed25519", days: int = CERTIFICATE_DAYS
) -> Issued:
    """Make a service identity of a single certificate, which is identity and leaf at once."""
    key = generate(key_type)
    name = _name(common_name)
    return Issued(_sign(_builder(name, name, key, days), key), key)
