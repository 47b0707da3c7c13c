import os

import http_ece  # type: ignore[import-untyped]
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import p256, web_push

# RFC 8291, 5 and appendix A
_PLAINTEXT = b"When I grow up, I want to be a watermelon"
_SALT = p256.from_base64url(b"DGv6ra1nlYgDCS1FRnbzlw")
_AUTH = p256.from_base64url(b"BTBZMqHH6r4Tts7J_aSIgg")
_BODY = (
    b"DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    b"7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def _private(scalar: bytes) -> p256.PrivateKey:
    return ec.derive_private_key(int.from_bytes(p256.from_base64url(scalar), "big"), ec.SECP256R1())


_SENDER = _private(b"yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
_RECEIVER = _private(b"q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")


def test_the_example_of_rfc_8291() -> None:
    body = web_push.encrypt(_RECEIVER.public_key(), _AUTH, _PLAINTEXT, key=_SENDER, salt=_SALT)
    assert p256.base64url(body) == _BODY
    assert web_push.decrypt(_RECEIVER, _AUTH, body) == _PLAINTEXT


def test_keys_and_salt_are_new_for_each_message() -> None:
    one, other = (web_push.encrypt(_RECEIVER.public_key(), _AUTH, b"x") for _ in range(2))
    assert one[:16] != other[:16]
    assert one[21:86] != other[21:86]


@given(st.binary(max_size=300))
def test_another_implementation_decrypts(plaintext: bytes) -> None:
    key, auth = p256.generate(), os.urandom(16)
    body = web_push.encrypt(key.public_key(), auth, plaintext)
    assert http_ece.decrypt(body, private_key=key, auth_secret=auth, version="aes128gcm") == plaintext


@given(st.binary(min_size=1, max_size=300))  # of no bytes, http-ece makes no record at all
def test_what_another_implementation_encrypted(plaintext: bytes) -> None:
    key, auth = p256.generate(), os.urandom(16)
    body = http_ece.encrypt(
        plaintext, private_key=p256.generate(), dh=p256.point(key.public_key()), auth_secret=auth, version="aes128gcm"
    )
    assert web_push.decrypt(key, auth, body) == plaintext


def test_the_largest_message_fits_a_push_service() -> None:
    largest = web_push.encrypt(_RECEIVER.public_key(), _AUTH, bytes(web_push.LARGEST_PLAINTEXT))
    assert len(largest) == web_push.LARGEST_BODY
    with pytest.raises(ValueError, match="do not fit"):
        web_push.encrypt(_RECEIVER.public_key(), _AUTH, bytes(web_push.LARGEST_PLAINTEXT + 1))


@given(st.binary(max_size=200))
def test_decrypting_is_total(body: bytes) -> None:
    assert web_push.decrypt(_RECEIVER, _AUTH, body) is None


@given(st.integers(0, 143), st.integers(1, 255))
def test_a_changed_message_is_refused(at: int, change: int) -> None:
    """The record size may change: a message of one record does not need it."""
    body = bytearray(p256.from_base64url(_BODY))
    body[at] ^= change
    expected = _PLAINTEXT if 16 <= at < 20 else None
    assert web_push.decrypt(_RECEIVER, _AUTH, bytes(body)) == expected


def test_another_subscription_cannot_decrypt() -> None:
    body = p256.from_base64url(_BODY)
    assert web_push.decrypt(p256.generate(), _AUTH, body) is None
    assert web_push.decrypt(_RECEIVER, bytes(16), body) is None
