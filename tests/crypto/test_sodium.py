from collections.abc import Callable

import nacl.bindings
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import sodium

_key = st.binary(min_size=32, max_size=32)
_nonce = st.binary(min_size=24, max_size=24)


@given(_key, _nonce, st.binary(max_size=200))
def test_secretbox_is_nacls(key: bytes, nonce: bytes, message: bytes) -> None:
    box = sodium.secretbox(key, nonce, message)
    assert box == nacl.bindings.crypto_secretbox(message, nonce, key)
    assert sodium.secretbox_open(key, nonce, box) == message
    assert sodium.secretbox_open(key, nonce, box[:-1]) is None
    assert sodium.secretbox_open(key, nonce, bytes((box[0] ^ 1,)) + box[1:]) is None


def test_too_short_to_be_a_box() -> None:
    assert sodium.secretbox_open(bytes(32), bytes(24), bytes(15)) is None


@given(_key, _key)
def test_hsalsa20_over_x25519_is_nacls_box_key(one: bytes, other: bytes) -> None:
    public = sodium.x25519_public(one)
    assert public == nacl.bindings.crypto_scalarmult_base(one)
    secret = sodium.x25519(public, other)
    assert secret == nacl.bindings.crypto_scalarmult(other, public)
    assert sodium.hsalsa20(secret) == nacl.bindings.crypto_box_beforenm(public, other) == sodium.box_key(public, other)


@pytest.mark.parametrize("public", [bytes(32), b"\x01" + bytes(31)])
def test_the_box_key_of_a_low_order_key_is_hsalsa20_of_zeros(public: bytes) -> None:
    assert sodium.box_key(public, bytes(range(32))) == sodium.hsalsa20(bytes(32))


def test_low_order_keys_give_zeros() -> None:
    assert sodium.x25519(bytes(32), bytes(range(32))) == bytes(32)
    assert sodium.x25519(b"\x01" + bytes(31), bytes(range(32))) == bytes(32)


@given(_key, st.binary(max_size=100))
def test_ed25519(seed: bytes, message: bytes) -> None:
    other = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = sodium.ed25519_public(seed), sodium.ed25519_sign(seed, message)
    assert public == other.public_key().public_bytes_raw()
    assert signature == other.sign(message)
    assert sodium.ed25519_verify(public, signature, message)
    assert not sodium.ed25519_verify(public, signature, message + b"!")
    assert not sodium.ed25519_verify(bytes(32), signature, message)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sodium.hsalsa20(bytes(31)),
        lambda: sodium.secretbox(bytes(31), bytes(24), b""),
        lambda: sodium.secretbox(bytes(32), bytes(23), b""),
        lambda: sodium.secretbox_open(bytes(33), bytes(24), bytes(16)),
        lambda: sodium.secretbox_open(bytes(32), b"", bytes(16)),
        lambda: sodium.x25519(bytes(31), bytes(32)),
        lambda: sodium.x25519(bytes(32), bytes(33)),
        lambda: sodium.box_key(bytes(31), bytes(32)),
        lambda: sodium.box_key(bytes(32), bytes(33)),
        lambda: sodium.x25519_public(b""),
        lambda: sodium.ed25519_verify(bytes(31), bytes(64), b""),
        lambda: sodium.ed25519_verify(bytes(32), bytes(63), b""),
        lambda: sodium.ed25519_sign(bytes(31), b""),
    ],
)
def test_lengths_are_checked_before_c_trusts_them(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="wrong length"):
        call()
