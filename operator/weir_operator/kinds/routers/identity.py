"""A router's identity, and the online certificate that its edges present: decisions, without the API server.

An address contains the fingerprint of the identity's CA, and clients cannot be told of another. So once a router has an
address, a missing or different CA is reported as a problem. A new one is made only after the administrator has named
the fingerprint that may be given up.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from weir.crypto import certificates
from weir.crypto.keys import KeyType
from weir.crypto.pem import (
    UnusableFile,
    certificates_from_pem,
    certificates_to_pem,
    key_from_pem,
    key_to_pem,
)
from weir_operator.kinds import names
from weir_operator.kinds.secrets import Data, decode, encode, fingerprint_text
from weir_operator.kube.conditions import Problem


@dataclass(frozen=True, slots=True)
class Online:
    """The online certificate that the edges have now."""

    fingerprint: str  # of the CA that signed it
    leaf: str  # fingerprint of the certificate itself
    not_after: datetime
    valid: bool  # the chain fits together and the key belongs to it
    ed448: tuple[bool, bool] = (False, False)  # whether its key is an Ed448 key, and whether the CA's is


@dataclass(frozen=True, slots=True)
class IdentitySecret:
    """An identity Secret without the CA's key."""

    ca: bytes  # DER
    fingerprint: str
    has_ca_key: bool
    online: Data | None  # a ready-made online certificate, when the CA's key is kept elsewhere


@dataclass(frozen=True, slots=True)
class Wanted:
    """The identity that the router's spec, status and annotations ask for."""

    given: str | None  # name of the Secret in the spec
    known: str | None  # fingerprint in the address clients have
    replaceable: str | None  # fingerprint that may be given up
    renew_before_days: int
    renew: str | None  # the last request to renew at once
    renewed: str | None  # the last such request that was carried out


class Generate:
    """Make an identity, then decide once more."""


class Issue:
    """Make a new online certificate with the CA's key."""


class Copy:
    """Give the edges the online certificate in the identity's Secret."""


class Keep:
    """Leave the edges' certificate as it is."""


Decision = Generate | Issue | Copy | Keep | Problem


def read_identity(data: Data, has_ca_key: bool, name: str) -> IdentitySecret | Problem:
    kept = (names.CA_CERT, names.SERVER_CERT, names.SERVER_KEY)
    return _read_identity(tuple((key, data[key]) for key in kept if key in data), has_ca_key, name)


@lru_cache(maxsize=4096)
def _read_identity(items: tuple[tuple[str, str], ...], has_ca_key: bool, name: str) -> IdentitySecret | Problem:
    data = dict(items)
    pem = decode(data, names.CA_CERT)
    if pem is None:
        return Problem("IdentityInvalid", f"Secret {name} has no {names.CA_CERT}")
    try:
        (ca, *_) = certificates_from_pem(pem, f"{names.CA_CERT} of Secret {name}")
    except (UnusableFile, ValueError) as error:
        return Problem("IdentityInvalid", str(error))
    if certificates.certificate_key(ca) is None:
        return Problem("IdentityInvalid", f"{names.CA_CERT} of Secret {name} has neither an Ed25519 nor an Ed448 key")
    online = None
    if names.SERVER_CERT in data and names.SERVER_KEY in data:
        online = {key: data[key] for key in (names.CA_CERT, names.SERVER_CERT, names.SERVER_KEY)}
    if not has_ca_key and online is None:
        text = f"Secret {name} has neither {names.CA_KEY} nor {names.SERVER_CERT} and {names.SERVER_KEY}"
        return Problem("IdentityInvalid", text)
    return IdentitySecret(ca, fingerprint_text(ca), has_ca_key, online)


def read_online(data: Data | None) -> Online | None:
    """The edges' certificate. None when there is none, or when it cannot be read."""
    texts = [(data or {}).get(key) for key in (names.SERVER_CERT, names.SERVER_KEY, names.CA_CERT)]
    return _read_online(*(text or "" for text in texts)) if all(texts) else None


@lru_cache(maxsize=4096)
def _read_online(certificate_text: str, key_text: str, ca_text: str) -> Online | None:
    """Cached, so this does not check whether the certificate has expired: that changes with time alone."""
    try:
        (leaf, *rest) = certificates_from_pem(base64.b64decode(certificate_text, validate=True))
        (issuer, *_) = certificates_from_pem(base64.b64decode(ca_text, validate=True))
        pair = key_from_pem(base64.b64decode(key_text, validate=True))
        now = datetime.now(UTC)
        days = certificates.days_to_expiry(leaf, now)
    except ValueError:
        return None
    if days is None:
        return None
    end = (now + timedelta(days=days, seconds=0.5)).replace(microsecond=0)
    chain = (leaf, rest[0] if rest else issuer)
    error = certificates.validate_chain(chain, now)
    matches = certificates.certificate_key(leaf) == (pair.type, pair.public) and chain[1] == issuer
    # An expired certificate counts as valid here. It is renewed because of its date.
    fits = matches and error in (None, certificates.ChainError.EXPIRED)
    ed448 = (_is_ed448(leaf), _is_ed448(issuer))
    return Online(fingerprint_text(issuer), fingerprint_text(leaf), end, fits, ed448)


def _is_ed448(certificate: bytes) -> bool:
    key = certificates.certificate_key(certificate)
    return key is not None and key[0] == "ed448"


def decide(wanted: Wanted, identity: IdentitySecret | Problem | None, online: Online | None, now: datetime) -> Decision:
    """All rules about identities. The tests go through them in a table."""
    known = wanted.known or (online.fingerprint if online else None)
    may_replace = known is not None and wanted.replaceable == known
    if isinstance(identity, Problem):
        return identity
    if identity is None:
        if wanted.given is not None:
            return Problem("IdentityMissing", f"there is no Secret {wanted.given}")
        if known is not None and not may_replace:
            return Problem(
                "IdentityLost",
                f"the identity behind {known} is gone; restore its Secret from a backup. Nothing was made in its place,"
                f" because clients know this address only; to give it up, set {names.REPLACE_ADDRESS}={known}",
            )
        return Generate()
    if known is not None and identity.fingerprint != known and not may_replace:
        return Problem(
            "IdentityChanged",
            f"the identity's fingerprint is {identity.fingerprint}, clients know {known}; put the old one back, or set"
            f" {names.REPLACE_ADDRESS}={known} to give that address up",
        )
    if not identity.has_ca_key:
        theirs = read_online(identity.online)
        if theirs is None or not theirs.valid or theirs.fingerprint != identity.fingerprint:
            return Problem("IdentityInvalid", "the online certificate is not one of this CA, or not of its key")
        return Keep() if online == theirs else Copy()
    if online is None or not online.valid or online.fingerprint != identity.fingerprint:
        return Issue()
    if wanted.renew is not None and wanted.renew != wanted.renewed:
        return Issue()
    return Issue() if online.not_after - now <= timedelta(days=wanted.renew_before_days) else Keep()


def make_identity(key_type: KeyType, authority: str) -> dict[str, str]:
    """Data of a new identity Secret. `authority` is the common name of its CA."""
    ca = certificates.make_ca(key_type, common_name=authority)
    return {
        names.CA_CERT: encode(certificates_to_pem((ca.certificate,))),
        names.CA_KEY: encode(key_to_pem(ca.key)),
    }


def issue_online(identity_data: Data, common_name: str, key_type: KeyType, days: int) -> dict[str, str] | Problem:
    """An online certificate with a key of its own, under the CA in the Secret."""
    ca_pem, key_pem = decode(identity_data, names.CA_CERT), decode(identity_data, names.CA_KEY)
    if ca_pem is None or key_pem is None:
        return Problem("IdentityInvalid", f"the identity has no {names.CA_CERT} or no {names.CA_KEY}")
    try:
        (ca, *_) = certificates_from_pem(ca_pem, names.CA_CERT)
        pair = key_from_pem(key_pem, names.CA_KEY)
    except ValueError as error:
        return Problem("IdentityInvalid", str(error))
    if certificates.certificate_key(ca) != (pair.type, pair.public):
        return Problem("IdentityInvalid", f"{names.CA_KEY} is not the key of {names.CA_CERT}")
    online = certificates.make_online(certificates.Issued(ca, pair), common_name, key_type, days)
    return {
        names.CA_CERT: encode(certificates_to_pem((ca,))),
        names.SERVER_CERT: encode(certificates_to_pem((online.certificate,))),
        names.SERVER_KEY: encode(key_to_pem(online.key)),
    }
