"""With every build of the library the results are libsodium's, for honest inputs and where libraries disagree."""

import threading
from collections.abc import Iterator
from hashlib import sha256, sha512
from itertools import cycle, islice
from pathlib import Path

import nacl.bindings as nb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import crypto_mb
from weir.crypto import multibuffer, sodium
from weir.crypto.authenticator import verify_signature
from weir.crypto.keys import dh
from weir.crypto.multibuffer import dh_many, lanes, verify_many

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_IDENTITY = b"\1" + bytes(31)
_OF_ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
_TOP_BIT = 1 << 255

SEED = bytes(range(32))
PUBLIC = sodium.ed25519_public(SEED)


@pytest.fixture(scope="module", params=["libsodium", "trixie", "forky"], autouse=True)
def build(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs with libsodium alone and with two builds of the library."""
    name: str = request.param
    path = "off" if name == "libsodium" else crypto_mb.builds().get(name)
    if path is None:
        pytest.skip(f"no crypto_mb of Debian's {name} here (scripts/servers.sh fetches it)")
    with crypto_mb.using(path):
        yield name


def le32(number: int) -> bytes:
    return number.to_bytes(32, "little")


def test_which_functions_are_used(build: str) -> None:
    library = multibuffer._library()
    if build == "libsodium" or not crypto_mb.processor_can():
        assert library is None and lanes() == 1
        return
    assert library is not None and lanes() == 8
    assert library.computes_x25519
    # Debian 13's build refuses every Ed25519 signature. The self-test must find that.
    assert library.verifies_ed25519 == (build != "trixie")


# ---- X25519

# u-coordinates of points of small order, and of their twins beyond the field's prime.
_SMALL_ORDER = (
    0,
    1,
    _P - 1,
    _P,
    _P + 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
_STRANGE_POINTS = [
    *(le32(u) for u in _SMALL_ORDER),
    *(le32(u | _TOP_BIT) for u in _SMALL_ORDER),
    *(le32(_P + n) for n in range(2, 19)),  # not canonical
    *(le32(_P + n | _TOP_BIT) for n in range(2, 19)),
    *(le32(_P - n) for n in (2, 3, 4, 1000, 2**12, 2**17, 2**40)),  # the library alone gets some of these wrong
    *(le32(_P - n | _TOP_BIT) for n in (2, 1000)),
    le32(9 | _TOP_BIT),
    le32(2),  # on the twist
    le32(_P - 2),
    le32(2**255 - 1),
    le32(2**256 - 1),
    le32(2**52 - 1),  # limbs of the library's representation, full and empty
    le32((2**52 - 1) << 52),
    le32((2**52 - 1) << 104),
    le32(2**208),
]
_STRANGE_SECRETS = [bytes(32), b"\xff" * 32, le32(1), le32(8), le32(_ORDER), le32(2**254), le32(7), le32(_P)]


def one_by_one(pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [dh(public, secret) for public, secret in pairs]


_keys = st.binary(min_size=32, max_size=32)
_points = st.one_of(_keys, st.sampled_from(_STRANGE_POINTS))
_secrets = st.one_of(_keys, st.sampled_from(_STRANGE_SECRETS))


@given(st.lists(st.tuples(_points, _secrets), max_size=20))
def test_dh_of_any_keys(pairs: list[tuple[bytes, bytes]]) -> None:
    assert dh_many(pairs) == one_by_one(pairs)


@pytest.mark.parametrize("secret", [SEED, *_STRANGE_SECRETS])
def test_dh_with_strange_points(secret: bytes) -> None:
    pairs = [(point, secret) for point in _STRANGE_POINTS]
    assert dh_many(pairs) == one_by_one(pairs)


@pytest.mark.parametrize("point", [le32(0), le32(_P - 1), _STRANGE_POINTS[5], le32(_P + 9)])
def test_dh_with_a_strange_point_in_each_lane(point: bytes) -> None:
    honest = [(sodium.x25519_public(sha256(bytes((n,))).digest()), SEED) for n in range(8)]
    for lane in range(8):
        pairs = [*honest[:lane], (point, SEED), *honest[lane + 1 :]]
        assert dh_many(pairs) == one_by_one(pairs)


def test_dh_of_points_of_small_order_is_that_of_zeros() -> None:
    pairs = [(le32(u), SEED) for u in _SMALL_ORDER]
    assert dh_many(pairs) == [sodium.hsalsa20(bytes(32))] * len(pairs)


def test_dh_of_the_rfc() -> None:
    """RFC 7748, section 5.2."""
    secret = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    expected = bytes.fromhex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    assert dh_many([(point, secret)] * 2) == [sodium.hsalsa20(expected)] * 2


def test_dh_many_times_over() -> None:
    """Each result is the next secret, as in the iterated test of RFC 7748."""
    pairs = [(sodium.x25519_public(sha256(bytes((n,))).digest()), le32(9 + n)) for n in range(8)]
    expected = pairs
    for _ in range(200):
        pairs = [(secret, found) for (_, secret), found in zip(pairs, dh_many(pairs), strict=True)]
        expected = [(secret, found) for (_, secret), found in zip(expected, one_by_one(expected), strict=True)]
    assert pairs == expected


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize(("public", "secret"), [(SEED[1:], SEED), (SEED, SEED + b"\0"), (b"", b""), (SEED * 2, b"")])
def test_dh_refuses_keys_of_wrong_length(public: bytes, secret: bytes, count: int) -> None:
    with pytest.raises(ValueError):
        dh_many([(PUBLIC, SEED)] * (count - 1) + [(public, secret)])


def test_dh_leaves_no_secrets_behind() -> None:
    dh_many([(sodium.x25519_public(SEED), SEED)] * 8)
    library = multibuffer._library()
    if library is not None:
        for buffer in (library._secret, library._shared):
            assert multibuffer._ffi.buffer(buffer)[:] == bytes(256)


def test_dh_in_threads() -> None:
    pairs = [(sodium.x25519_public(sha256(bytes((n,))).digest()), sha256(bytes((n, n))).digest()) for n in range(32)]
    expected = one_by_one(pairs)
    wrong: list[int] = []

    def work(first: int) -> None:
        turned, right = pairs[first:] + pairs[:first], expected[first:] + expected[:first]
        wrong.extend(first for _ in range(50) if dh_many(turned) != right)

    threads = [threading.Thread(target=work, args=(8 * n + n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- Ed25519


def signed(message: bytes, seed: bytes = SEED) -> tuple[bytes, bytes]:
    return sodium.ed25519_sign(seed, message), message


def hashed(r: bytes, public: bytes, message: bytes) -> int:
    return int.from_bytes(sha512(r + public + message).digest(), "little") % _ORDER


def secret_scalar(seed: bytes = SEED) -> int:
    scalar = int.from_bytes(sha512(seed).digest()[:32], "little")
    return scalar & ((1 << 254) - 8) | 1 << 254


def base_multiple(scalar: int) -> bytes:
    return nb.crypto_scalarmult_ed25519_base_noclamp(le32(scalar))


def check(public: bytes, pairs: list[tuple[bytes, bytes]]) -> list[bool]:
    """Return libsodium's verdict. Check that all ways agree: alone, together, and among honest signatures."""
    judged = [verify_signature("ed25519", public, *pair) for pair in pairs]
    assert verify_many(public, pairs) == judged
    for pair, right in zip(pairs, judged, strict=True):
        assert verify_many(public, [pair]) == [right]
        assert verify_many(public, [pair, pair]) == [right, right]
        assert verify_many(public, [signed(b"honest"), pair])[1] == right
    return judged


@given(_keys, st.lists(st.binary(max_size=300), max_size=20))
def test_honest_signatures_are_valid(seed: bytes, messages: list[bytes]) -> None:
    assert verify_many(sodium.ed25519_public(seed), [signed(message, seed) for message in messages]) == [True] * len(
        messages
    )


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 255), st.binary(max_size=8)), min_size=2, max_size=10))
def test_changed_signatures(changes: list[tuple[int, int, bytes]]) -> None:
    pairs = []
    for at, value, appended in changes:
        signature, message = signed(b"message")
        pairs.append((signature[:at] + bytes((value,)) + signature[at + 1 :], message + appended))
    assert verify_many(PUBLIC, pairs) == [sodium.ed25519_verify(PUBLIC, *pair) for pair in pairs]


@pytest.mark.parametrize("count", [2, 7, 8, 9, 20])
def test_each_lane_answers_for_itself(count: int) -> None:
    pairs = [signed(bytes((n,))) for n in range(count)]
    for wrong in range(count):
        mixed = list(pairs)
        mixed[wrong] = (pairs[wrong][0], b"another message")
        assert verify_many(PUBLIC, mixed) == [n != wrong for n in range(count)]


def test_no_second_form_of_a_signature() -> None:
    signature, message = signed(b"message")
    s = int.from_bytes(signature[32:], "little")
    others = [
        (signature[:32] + le32(s + more * _ORDER), message) for more in range(1, 16) if s + more * _ORDER < 2**256
    ]
    assert others and check(PUBLIC, others) == [False] * len(others)


@pytest.mark.parametrize("s", [_ORDER - 1, _ORDER, _ORDER + 1, 2**252 - 1, 2**252, 2**252 + 2**64, 2**256 - 1])
def test_an_s_at_the_order(s: int) -> None:
    r = base_multiple(5)
    valid = (5 + hashed(r, PUBLIC, b"message") * secret_scalar()) % _ORDER
    assert check(PUBLIC, [(r + le32(s), b"message"), (r + le32(valid), b"message")]) == [False, True]


def test_no_signature_whose_nonce_is_zero() -> None:
    """r = 0 satisfies the equation, and gives the key away."""
    s = hashed(_IDENTITY, PUBLIC, b"message") * secret_scalar() % _ORDER
    assert check(PUBLIC, [(_IDENTITY + le32(s), b"message")]) == [False]


@pytest.mark.parametrize(
    "encoded",
    [
        *(le32(y) for y in (0, 1, _P - 1, _P, _P + 1, _P + 2, _P + 18)),
        *(le32(y | _TOP_BIT) for y in (0, 1, _P - 1, _P, _P + 1)),
        _OF_ORDER_8,
    ],
    ids=bytes.hex,
)
def test_an_r_of_small_order_or_not_canonical(encoded: bytes) -> None:
    pairs = []
    for n in range(8):  # h mod 8 decides whether a torsion component vanishes
        message = bytes((n,))
        pairs.append((encoded + le32(hashed(encoded, PUBLIC, message) * secret_scalar() % _ORDER), message))
    check(PUBLIC, pairs)


def test_an_r_with_a_torsion_component() -> None:
    """Only verification that multiplies by the cofactor would accept it."""
    r = nb.crypto_core_ed25519_add(base_multiple(5), _OF_ORDER_8)
    pairs = [
        (r + le32((5 + hashed(r, PUBLIC, message) * secret_scalar()) % _ORDER), message)
        for message in map(bytes, zip(range(16)))
    ]
    assert check(PUBLIC, pairs) == [False] * 16


@pytest.mark.parametrize(
    "public",
    [
        _IDENTITY,
        _OF_ORDER_8,
        bytes(32),
        b"\xff" * 32,
        le32(_P),  # 0, not canonical
        le32(_P + 1),  # the identity, not canonical
        le32(_P + 3),
        le32(1 | _TOP_BIT),
        nb.crypto_core_ed25519_add(PUBLIC, _OF_ORDER_8),
    ],
    ids=[
        "identity",
        "order 8",
        "order 4",
        "no point",
        "zero not canonical",
        "identity not canonical",
        "not canonical",
        "identity with a sign",
        "mixed order",
    ],
)
def test_keys_of_small_or_mixed_order_or_not_canonical(public: bytes) -> None:
    r = base_multiple(5)
    pairs = [(r + le32(5), b"message")]
    for n in range(16):  # with a torsion component, the equation holds for one message of eight
        message = bytes((n,))
        pairs.append((r + le32((5 + hashed(r, public, message) * secret_scalar()) % _ORDER), message))
    judged = [sodium.ed25519_verify(public, *pair) for pair in pairs]
    assert verify_many(public, pairs) == judged
    assert not any(judged) or public == nb.crypto_core_ed25519_add(PUBLIC, _OF_ORDER_8)


def test_signatures_of_wrong_length_are_invalid() -> None:
    good = signed(b"message")
    pairs = [(b"", b"message"), (good[0][:-1], b"message"), (good[0] + b"\0", b"message"), good]
    assert verify_many(PUBLIC, pairs) == [False, False, False, True]
    assert verify_many(PUBLIC, pairs[:3]) == [False, False, False]
    assert verify_many(PUBLIC, []) == []


def test_a_public_key_of_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError):
        verify_many(PUBLIC[:31], list(islice(cycle([signed(b"message")]), 3)))


# ---- libraries that cannot be used


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF" + bytes(60), sha512(b"noise").digest() * 64],
    ids=["empty", "header", "noise"],
)
def test_a_file_that_is_no_library(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "libcrypto_mb.so").write_bytes(content)
    with crypto_mb.using(tmp_path / "libcrypto_mb.so"):
        assert lanes() == 1
        assert verify_many(PUBLIC, [signed(b"message")] * 3) == [True] * 3
        assert dh_many([(PUBLIC, SEED)] * 3) == [dh(PUBLIC, SEED)] * 3


@pytest.mark.parametrize("name", ["libc.so.6", "no-such-library.so"])
def test_another_library(name: str) -> None:
    with crypto_mb.using(name):
        assert lanes() == 1
        assert dh_many([(PUBLIC, SEED)] * 3) == [dh(PUBLIC, SEED)] * 3


def test_a_library_that_computes_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    library = multibuffer._library()
    if library is None:
        return  # libsodium computes everything
    monkeypatch.setattr(multibuffer, "dh", lambda public, secret: bytes(32))
    monkeypatch.setattr(sodium, "ed25519_sign", lambda seed, message: bytes(64))
    assert not library._x25519_test()
    assert not library._ed25519_test()
