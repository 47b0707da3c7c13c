"""Signatures verified together: what is found right is what libsodium finds right."""

import os
from hashlib import sha512
from pathlib import Path

import nacl.bindings as nb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import multibuffer, sodium

_ORDER = 2**252 + 27742317777372353535851937790883648493
_IDENTITY = b"\1" + bytes(31)
_OF_ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")

SEED = bytes(range(32))
PUBLIC = sodium.ed25519_public(SEED)
together = pytest.mark.skipif(multibuffer.lanes() == 1, reason="this processor verifies one signature at a time")


def signed(message: bytes, seed: bytes = SEED) -> tuple[bytes, bytes]:
    return sodium.ed25519_sign(seed, message), message


def hashed(r: bytes, public: bytes, message: bytes) -> int:
    return int.from_bytes(sha512(r + public + message).digest(), "little") % _ORDER


def secret_scalar(seed: bytes = SEED) -> int:
    scalar = int.from_bytes(sha512(seed).digest()[:32], "little")
    return scalar & ((1 << 254) - 8) | 1 << 254


def test_a_processor_that_can_does() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text().split() if cpuinfo.exists() else []
    assert multibuffer.lanes() == (8 if "avx512ifma" in flags else multibuffer.lanes())


@together
@given(st.binary(min_size=32, max_size=32), st.lists(st.binary(max_size=300), min_size=1, max_size=8))
def test_honest_signatures_are_right(seed: bytes, messages: list[bytes]) -> None:
    pairs = [signed(message, seed) for message in messages]
    assert multibuffer.right(sodium.ed25519_public(seed), pairs) == [True] * len(pairs)


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 255), st.binary(max_size=8)), min_size=1, max_size=8))
def test_nothing_is_right_that_libsodium_refuses(changes: list[tuple[int, int, bytes]]) -> None:
    pairs = []
    for at, value, appended in changes:
        signature, message = signed(b"message")
        pairs.append((signature[:at] + bytes((value,)) + signature[at + 1 :], message + appended))
    judged = [sodium.ed25519_verify(PUBLIC, *pair) for pair in pairs]
    assert multibuffer.right(PUBLIC, pairs) == (judged if multibuffer.lanes() > 1 else [False] * len(pairs))


def test_each_lane_answers_for_itself() -> None:
    pairs = [signed(bytes((n,))) for n in range(8)]
    for wrong in range(8):
        mixed = list(pairs)
        mixed[wrong] = (pairs[wrong][0], b"another message")
        expected = [multibuffer.lanes() > 1 and n != wrong for n in range(8)]
        assert multibuffer.right(PUBLIC, mixed) == expected


def test_no_second_form_of_a_signature() -> None:
    signature, message = signed(b"message")
    s = int.from_bytes(signature[32:], "little")
    for more in range(1, 16):
        if s + more * _ORDER < 2**256:
            other = signature[:32] + (s + more * _ORDER).to_bytes(32, "little")
            assert not sodium.ed25519_verify(PUBLIC, other, message)
            assert multibuffer.right(PUBLIC, [(other, message)]) == [False]


def test_no_signature_without_a_nonce() -> None:
    """r = 0 satisfies the equation, and gives the key away."""
    s = hashed(_IDENTITY, PUBLIC, b"message") * secret_scalar() % _ORDER
    signature = _IDENTITY + s.to_bytes(32, "little")
    assert not sodium.ed25519_verify(PUBLIC, signature, b"message")
    assert multibuffer.right(PUBLIC, [(signature, b"message")]) == [False]


@pytest.mark.parametrize(
    "public",
    [
        _IDENTITY,
        _OF_ORDER_8,
        bytes(32),
        b"\xff" * 32,
        b"\xed" + b"\xff" * 30 + b"\x7f",  # p: 0, not canonical
        nb.crypto_core_ed25519_add(PUBLIC, _OF_ORDER_8),
        PUBLIC[:31],
    ],
    ids=["identity", "small order", "order 4", "no point", "not canonical", "mixed order", "short"],
)
def test_no_signature_by_an_unsound_key(public: bytes) -> None:
    r = nb.crypto_scalarmult_ed25519_base_noclamp((5).to_bytes(32, "little"))
    s = (5 + hashed(r, public, b"message") * secret_scalar()) % _ORDER
    pairs = [(r + (5).to_bytes(32, "little"), b"message"), (r + s.to_bytes(32, "little"), b"message")]
    assert multibuffer.right(public, pairs) == [False, False]


def test_wrong_lengths_are_not_c_s_to_see() -> None:
    good = signed(b"message")
    pairs = [(b"", b"message"), (good[0][:-1], b"message"), (good[0] + b"\0", b"message"), good]
    assert multibuffer.right(PUBLIC, pairs) == [False, False, False, multibuffer.lanes() > 1]
    assert multibuffer.right(PUBLIC, pairs[:3]) == [False, False, False]
    assert multibuffer.right(PUBLIC, []) == []
    if multibuffer.lanes() > 1:
        with pytest.raises(ValueError, match="more signatures"):
            multibuffer.right(PUBLIC, [good] * 9)


@pytest.mark.parametrize("elf", [b"", b"\x7fELF" + bytes(60), os.urandom(4096)], ids=["empty", "bare", "noise"])
def test_without_the_library_nothing_is_right(elf: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multibuffer, "_file", lambda: bytearray(elf))
    multibuffer._library.cache_clear()
    try:
        assert multibuffer.lanes() == 1
        assert multibuffer.right(PUBLIC, [signed(b"message")]) == [False]
    finally:
        multibuffer._library.cache_clear()
