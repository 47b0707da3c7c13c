import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto.keys import KeyType, generate
from weir.crypto.session_key import sign_session_key, verify_session_key

_SIGNER = generate("ed25519")
_SIGNED = sign_session_key(_SIGNER, generate().spki)


@pytest.mark.parametrize("signer_type", ["ed25519", "ed448"])
@pytest.mark.parametrize("session_type", ["x25519", "ed25519"])
def test_both_ways(signer_type: KeyType, session_type: KeyType) -> None:
    signer, session = generate(signer_type), generate(session_type)
    der = sign_session_key(signer, session.spki)
    assert len(der) == {"ed25519": 122, "ed448": 173}[signer_type]
    assert verify_session_key((signer_type, signer.public), der) == (session_type, session.public)
    other = generate(signer_type)
    assert verify_session_key((signer_type, other.public), der) is None


def test_the_signers_kind_must_match() -> None:
    signer = generate("ed448")
    assert verify_session_key(("ed448", signer.public), _SIGNED) is None
    assert verify_session_key(("x25519", bytes(32)), _SIGNED) is None


@given(st.integers(0, len(_SIGNED) - 1), st.integers(1, 255))
def test_every_byte_counts(at: int, change: int) -> None:
    der = _SIGNED[:at] + bytes((_SIGNED[at] ^ change,)) + _SIGNED[at + 1 :]
    assert verify_session_key(("ed25519", _SIGNER.public), der) is None


@given(st.binary(max_size=200))
def test_total(der: bytes) -> None:
    assert verify_session_key(("ed25519", bytes(32)), der) is None
    assert verify_session_key(("ed448", bytes(57)), der) is None


def test_cut_and_lengthened() -> None:
    for der in (b"", _SIGNED[:-1], _SIGNED + b"\0", _SIGNED[:46]):
        assert verify_session_key(("ed25519", _SIGNER.public), der) is None


def test_a_signed_key_of_another_kind() -> None:
    """The signature is right, but what it covers is not a key the protocol knows."""
    assert verify_session_key(("ed25519", _SIGNER.public), sign_session_key(_SIGNER, bytes(44))) is None
