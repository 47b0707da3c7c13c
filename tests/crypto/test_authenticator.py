import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import authenticator as a
from weir.crypto.boxes import nonce_of
from weir.crypto.keys import KeyType, dh, generate

_QUEUE, _SESSION = generate(), generate()
_NONCE = bytes(range(24))
_SIGNERS = {key_type: generate(key_type) for key_type in ("ed25519", "ed448")}


@given(st.binary(max_size=100))
def test_authenticator(message: bytes) -> None:
    made = a.authenticate(dh(_SESSION.public, _QUEUE.private), _NONCE, message)
    secret = dh(_QUEUE.public, _SESSION.private)
    assert len(made) == a.AUTHENTICATOR_SIZE
    assert a.verify(secret, _NONCE, made, message)
    assert not a.verify(secret, _NONCE, made, message + b"!")
    assert not a.verify(secret, bytes(24), made, message)
    assert not a.verify(bytes(32), _NONCE, made, message)


@given(st.binary(max_size=40))
def test_correlation_ids_of_any_length(corr_id: bytes) -> None:
    secret = bytes(range(32))
    made = a.authenticate(secret, corr_id, b"message")
    assert a.verify(secret, corr_id, made, b"message")
    assert a.verify(secret, nonce_of(corr_id), made, b"message")


@given(st.binary(max_size=100))
def test_no_authenticator(data: bytes) -> None:
    assert not a.verify(bytes(32), _NONCE, data, b"message")


@pytest.mark.parametrize("key_type", ["ed25519", "ed448"])
def test_signatures(key_type: KeyType) -> None:
    pair = _SIGNERS[key_type]
    signature = a.sign(key_type, pair.private, b"message")
    assert len(signature) == {"ed25519": 64, "ed448": 114}[key_type]
    assert a.verify_signature(key_type, pair.public, signature, b"message")
    assert not a.verify_signature(key_type, pair.public, signature, b"massage")
    assert not a.verify_signature(key_type, pair.public, signature[:-1], b"message")


@pytest.mark.parametrize(
    ("key_type", "public", "size"),
    [
        ("ed25519", bytes(32), 64),
        ("ed25519", b"\xff" * 32, 64),
        ("ed25519", bytes(32), 114),
        ("ed448", _SIGNERS["ed448"].public, 114),
        ("ed448", b"\xff" * 57, 114),
        ("ed448", bytes(57), 64),
        ("x25519", bytes(32), 64),
        ("x25519", bytes(32), 80),
        ("ed25519", bytes(32), 0),
    ],
)
def test_kinds_that_do_not_match(key_type: KeyType, public: bytes, size: int) -> None:
    assert not a.verify_signature(key_type, public, bytes(size), b"message")


def test_x25519_does_not_sign() -> None:
    with pytest.raises(ValueError, match="does not sign"):
        a.sign("x25519", bytes(32), b"")


def test_there_is_a_dummy_of_each_kind() -> None:
    assert [dummy.type for dummy in (a.DUMMY_X25519, a.DUMMY_ED25519, a.DUMMY_ED448)] == ["x25519", "ed25519", "ed448"]


@pytest.mark.parametrize("size", [0, 64, 80, 114])
def test_dummy_verification_says_no(size: int) -> None:
    assert not a.dummy_verify(_SESSION.private, _NONCE, bytes(size), b"message")


def test_a_dummys_owner_is_not_let_in() -> None:
    made = a.authenticate(dh(_SESSION.public, a.DUMMY_X25519.private), _NONCE, b"message")
    assert not a.dummy_verify(_SESSION.private, _NONCE, made, b"message")
    signature = a.sign("ed25519", a.DUMMY_ED25519.private, b"message")
    assert not a.dummy_verify(_SESSION.private, _NONCE, signature, b"message")
