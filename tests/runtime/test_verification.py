"""Authorisations against keys of every kind. tests/router/commands/test_verification.py counts the operations."""

from typing import NamedTuple

import pytest

from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyPair, KeyType, dh, generate, public_of
from weir.runtime.verification import KeyVerifier

SESSION = generate("x25519")
MESSAGE = b"authorised bytes"
TYPES: tuple[KeyType, ...] = ("ed25519", "ed448", "x25519")


class Sent(NamedTuple):
    auth: bytes
    authorized: bytes = MESSAGE
    corr_id: bytes = b"c" * 24


def authorised_by(key: KeyPair, message: bytes = MESSAGE) -> Sent:
    if key.type == "x25519":
        server_key = public_of("x25519", SESSION.private)
        return Sent(authenticate(dh(server_key, key.private), b"c" * 24, message))
    return Sent(sign(key.type, key.private, message))


@pytest.mark.parametrize("kind", TYPES)
def test_only_the_key_itself_authorises(kind: KeyType) -> None:
    verifier: KeyVerifier[Sent] = KeyVerifier(SESSION.private)
    key = generate(kind)
    for _ in range(2):  # the second time, the secret is cached
        assert verifier.authorised(authorised_by(key), MESSAGE, key.spki)
        assert not verifier.authorised(authorised_by(key, b"other bytes"), MESSAGE, key.spki)
        assert not verifier.authorised(authorised_by(generate(kind)), MESSAGE, key.spki)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("other", TYPES)
def test_an_authorisation_of_another_kind_of_key(kind: KeyType, other: KeyType) -> None:
    verifier: KeyVerifier[Sent] = KeyVerifier(SESSION.private)
    assert not verifier.authorised(authorised_by(generate(other)), MESSAGE, generate(kind).spki)
    verifier.dummy(authorised_by(generate(other)))


def test_no_authorisation_and_no_key() -> None:
    verifier: KeyVerifier[Sent] = KeyVerifier(SESSION.private)
    assert not verifier.authorised(Sent(b""), MESSAGE, generate("x25519").spki)
    assert not verifier.authorised(authorised_by(generate("ed25519")), MESSAGE, b"not a key")
