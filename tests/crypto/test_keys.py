import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_der_public_key
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import keys
from weir.crypto.keys import KeyType

_TYPES: list[KeyType] = ["ed25519", "ed448", "x25519"]


@pytest.mark.parametrize("key_type", _TYPES)
def test_both_ways(key_type: KeyType) -> None:
    pair = keys.generate(key_type)
    assert keys.key_pair(key_type, pair.private) == pair
    assert keys.spki(key_type, pair.public) == pair.spki
    assert keys.parse_spki(pair.spki) == (key_type, pair.public)
    assert keys.parse_private(pair.pkcs8) == (key_type, pair.private)
    packed = keys.pack_key(pair.spki)
    assert len(packed) == len(pair.public) + 1 <= 64
    assert keys.packed_spki(packed) == pair.spki


@pytest.mark.parametrize("key_type", _TYPES)
def test_der_is_what_others_read(key_type: KeyType) -> None:
    pair = keys.generate(key_type)
    assert load_der_public_key(pair.spki).public_bytes_raw() == pair.public  # type: ignore[union-attr]
    assert load_der_private_key(pair.pkcs8, None).private_bytes_raw() == pair.private  # type: ignore[union-attr]


def test_packed_keys_differ_by_type() -> None:
    raw = bytes(32)
    assert keys.pack_key(keys.spki("ed25519", raw)) != keys.pack_key(keys.spki("x25519", raw))


@given(st.binary(max_size=80))
def test_total(der: bytes) -> None:
    assert keys.parse_spki(der) is None
    assert keys.parse_x25519(der) is None
    assert keys.parse_private(der) is None


@pytest.mark.parametrize("key_type", _TYPES)
def test_lengths_are_exact(key_type: KeyType) -> None:
    pair = keys.generate(key_type)
    for der in (pair.spki[:-1], pair.spki + b"\0"):
        assert keys.parse_spki(der) is None
        assert keys.parse_x25519(der) is None
    for der in (pair.pkcs8[:-1], pair.pkcs8 + b"\0"):
        assert keys.parse_private(der) is None


def test_dh_is_the_same_on_both_sides() -> None:
    one, other = keys.generate(), keys.generate()
    assert keys.dh(one.public, other.private) == keys.dh(other.public, one.private)
    assert keys.dh_raw(one.public, other.private) == keys.dh_raw(other.public, one.private)
    assert keys.dh(one.public, other.private) != keys.dh_raw(one.public, other.private)


def test_parse_x25519() -> None:
    pair = keys.generate()
    assert keys.parse_x25519(pair.spki) == pair.public
    assert keys.parse_x25519(keys.generate("ed25519").spki) is None


def test_keys_are_not_shown() -> None:
    pair = keys.generate()
    assert repr(pair) == str(pair) == "KeyPair(x25519)"
