"""X25519 and Ed25519 for up to eight keys in one call, where the system has a library for it.

The library is crypto_mb of Intel's Cryptography Primitives, an ordinary package of Debian and other distributions. It
needs a processor with AVX-512 IFMA instructions: Ice Lake, Zen 4 and later. One call computes eight independent
results, one in each 64-bit lane of the vector registers, in about the time libsodium needs for two. An unused lane
costs as much as a used one.

The library is optional. Where it cannot be loaded, or the processor cannot run it, libsodium does the work and `lanes`
is 1. A self-test decides about each function: in Debian 13's package (libcrypto-mb11) X25519 is right, but Ed25519
refuses every signature, so libsodium keeps verifying there. Debian 14's package has both.

Callers see no difference but time. Libsodium computes again whatever the library refuses, and decides alone about keys
and signatures of an unusual form, for which the library is wrong or not known to be right (`_UNUSUAL`, `_is_sound`,
`_is_plain`).

X25519 passes secrets to the library; docs/security.md says which, and what is known about its timing.
"""

import functools
import os
import threading
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import nacl.bindings
from cffi import FFI  # type: ignore[import-untyped, unused-ignore]

from weir.crypto import sodium
from weir.crypto.keys import dh

VARIABLE: Final = "WEIR_CRYPTO_MB"  # the library's path, or `off`
_NAMES: Final = ("libcrypto_mb.so.13", "libcrypto_mb.so.11")  # tested versions, the newest first
_LANES: Final = 8
_KEY: Final = 32
_SIGNATURE: Final = 64
_WORTHWHILE: Final = 2  # a single operation is faster in libsodium

# X25519 keys that libsodium computes, by their middle bytes: those near zero, near the prime, and of order 8.
# The library takes an intermediate result for reduced that may still be a little above the prime. This goes wrong where
# intermediate results are tiny, as with the first keys below the prime, one of which is of order 4. The other keys for
# which it goes wrong were chosen for that (such as 1/2 - n); who chose them does not know their secret key, so that no
# authenticator fits them with either result. For a key made from a secret key the chance is below 2⁻²⁰⁰.
_MIDDLE: Final = slice(8, 24)
_UNUSUAL: Final = frozenset(
    (
        bytes(16),
        b"\xff" * 16,
        bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")[_MIDDLE],  # order 8
        bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")[_MIDDLE],  # order 8
    )
)

_IDENTITY: Final = b"\1" + bytes(31)  # the encoding of the neutral point
_NO_SIGNATURE: Final = bytes(_SIGNATURE)
_NO_KEYS: Final = bytes(_LANES * _KEY)

_ffi = FFI()
_ffi.cdef(
    """
    int mbx_is_crypto_mb_applicable(uint64_t features);
    uint32_t mbx_x25519_mb8(unsigned char *const shared[8], const unsigned char *const secret[8],
                            const unsigned char *const public_key[8]);
    uint32_t mbx_ed25519_verify_mb8(const unsigned char *const r[8], const unsigned char *const s[8],
                                    const unsigned char *const message[8], const uint32_t length[8],
                                    const unsigned char *const public_key[8]);
    """
)
_move = _ffi.memmove
_from_buffer = sodium.ffi.from_buffer  # PyNaCl's compiled FFI: the other's is a wrapper in Python


def lanes() -> int:
    """How many operations one call can do: 8 with the library, 1 without."""
    return 1 if _library() is None else _LANES


def dh_many(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """`keys.dh` of each pair of a public key and a secret key."""
    library = _library()
    if library is None or not library.computes_x25519 or len(pairs) < _WORTHWHILE:
        return [dh(public, secret) for public, secret in pairs]
    found: list[bytes] = []
    for start in range(0, len(pairs), _LANES):
        found += library.dh(pairs[start : start + _LANES])
    return found


def verify_many(public: bytes, signed: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    """Whether each signature and message are of the Ed25519 key `public`."""
    library = _library()
    if library is None or not library.verifies_ed25519 or len(signed) < _WORTHWHILE or not _is_sound(public):
        return [_verify(public, *pair) for pair in signed]
    found: list[bool] = []
    for start in range(0, len(signed), _LANES):
        part = signed[start : start + _LANES]
        accepted = library.accepted(public, part)
        found += [yes or _verify(public, *pair) for yes, pair in zip(accepted, part, strict=True)]
    return found


def _verify(public: bytes, signature: bytes, message: bytes) -> bool:
    return len(signature) == _SIGNATURE and sodium.ed25519_verify(public, signature, message)


@functools.lru_cache(maxsize=64)
def _is_sound(public: bytes) -> bool:
    """Whether the key is a canonical point of the prime-order subgroup.

    For other keys libraries differ in what they accept, so libsodium verifies their signatures.
    """
    return len(public) == _KEY and bool(nacl.bindings.crypto_core_ed25519_is_valid_point(public))


def _is_plain(signature: bytes) -> bool:
    """Whether libsodium and the library agree about a signature of this form.

    Only libsodium refuses r = 0. An s below 2²⁵² is below the group's order. Whether a larger s is below it as well
    cannot be left to the library, which compares the four words of s and of the order one by one instead of as one
    number. Of the honest signatures one in 2¹²⁷ has such an s.
    """
    return len(signature) == _SIGNATURE and signature[63] < 16 and not signature.startswith(_IDENTITY)


class _Library:
    """The loaded library, and the buffers that X25519 reads and writes.

    The buffers are made once, because eight pointers cost more to build than a key costs to copy. A lock keeps
    threads from sharing them: cffi releases the interpreter's lock during a call.
    """

    __slots__ = (
        "_c",
        "_lock",
        "_pointers",
        "_public",
        "_secret",
        "_shared",
        "_shared_bytes",
        "computes_x25519",
        "verifies_ed25519",
    )

    def __init__(self, name: str) -> None:
        """OSError where the library cannot be used."""
        self._c: Any = _ffi.dlopen(name, _ffi.RTLD_NOW)
        if not self._c.mbx_is_crypto_mb_applicable(0):
            raise OSError("the processor lacks instructions that crypto_mb needs")
        self._shared, self._secret, self._public = (_ffi.new("unsigned char[]", _LANES * _KEY) for _ in range(3))
        self._shared_bytes = _ffi.buffer(self._shared)
        self._pointers = [
            _ffi.new("unsigned char *[]", [buffer + lane * _KEY for lane in range(_LANES)])
            for buffer in (self._shared, self._secret, self._public)
        ]
        self._lock = threading.Lock()
        self.computes_x25519 = self._x25519_test()
        self.verifies_ed25519 = self._ed25519_test()

    def dh(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """`keys.dh` of at most eight pairs."""
        unusual = []
        for lane, (public, secret) in enumerate(pairs):
            if len(public) != _KEY or len(secret) != _KEY:
                raise ValueError("an X25519 key is not 32 bytes long")
            if public[_MIDDLE] in _UNUSUAL:
                unusual.append(lane)
        size = len(pairs) * _KEY
        publics, secrets = map(b"".join, zip(*pairs, strict=True))
        with self._lock:
            _move(self._public, publics, size)
            _move(self._secret, secrets, size)
            status = self._c.mbx_x25519_mb8(*self._pointers)
            shared = self._shared_bytes[:size]
            _move(self._secret, _NO_KEYS, size)  # nothing secret stays in buffers that live as long as the process
            _move(self._shared, _NO_KEYS, size)
        found = [sodium.hsalsa20(shared[at : at + _KEY]) for at in range(0, size, _KEY)]
        if status:
            unusual += [lane for lane in range(len(pairs)) if status >> 4 * lane & 15]
        for lane in unusual:
            found[lane] = dh(*pairs[lane])
        return found

    def accepted(self, public: bytes, signed: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """Whether each of at most eight signatures is certainly valid. A signature without a yes may be valid too."""
        plain = [_is_plain(signature) for signature, _ in signed]
        unused = [_ffi.NULL] * (_LANES - len(signed))  # the library skips such a lane
        signatures = [
            _from_buffer(signature if ok else _NO_SIGNATURE) for ok, (signature, _) in zip(plain, signed, strict=True)
        ]
        status = self._c.mbx_ed25519_verify_mb8(
            signatures + unused,
            [signature + _KEY for signature in signatures] + unused,
            [_from_buffer(message) for _, message in signed] + unused,
            [len(message) for _, message in signed] + [0] * len(unused),
            [_from_buffer(public)] * len(signed) + unused,
        )
        return [ok and not status >> 4 * lane & 15 for lane, ok in enumerate(plain)]

    def _x25519_test(self) -> bool:
        """Whether the library computes what libsodium does."""
        secrets = _self_test_secrets()
        pairs = [(sodium.x25519_public(secret), secret[::-1]) for secret in secrets]
        return self.dh(pairs) == [dh(*pair) for pair in pairs]

    def _ed25519_test(self) -> bool:
        """Whether the library accepts valid signatures, of messages of one and more SHA-512 blocks, and no other."""
        secrets = _self_test_secrets()
        signed = [(sodium.ed25519_sign(secrets[0], secret * n), secret * n) for n, secret in enumerate(secrets)]
        signed[-1] = signed[0][0], signed[-1][1]
        return self.accepted(sodium.ed25519_public(secrets[0]), signed) == [True] * (_LANES - 1) + [False]


def _self_test_secrets() -> list[bytes]:
    return [sha256(bytes((lane,))).digest() for lane in range(_LANES)]


@functools.cache
def _library() -> _Library | None:
    named = os.environ.get(VARIABLE)
    if named == "off":
        return None
    for name in (named,) if named else _NAMES:
        try:
            library = _Library(name)
        except (OSError, AttributeError):  # AttributeError: the library lacks a function
            continue
        if library.computes_x25519 or library.verifies_ed25519:
            return library
    return None
