"""The libsodium functions the hot path calls, taken from the library that PyNaCl bundles.

PyNaCl's own wrappers copy more than is needed here, and leave out HSalsa20 and detached signatures. C trusts the
lengths of keys and nonces, so they are checked here: a wrong length raises ValueError.
"""

import functools
from typing import Any

import nacl._sodium
from cffi import FFI  # type: ignore[import-untyped, unused-ignore]

ffi: Any = nacl._sodium.ffi
lib: Any = nacl._sodium.lib

_extra_ffi = FFI()
_extra_ffi.cdef(
    """
    int crypto_core_hsalsa20(unsigned char *out, const unsigned char *in, const unsigned char *k,
                             const unsigned char *c);
    int crypto_sign_verify_detached(const unsigned char *sig, const unsigned char *m, unsigned long long mlen,
                                    const unsigned char *pk);
    int crypto_sign_detached(unsigned char *sig, unsigned long long *siglen_p, const unsigned char *m,
                             unsigned long long mlen, const unsigned char *sk);
    int crypto_sign_seed_keypair(unsigned char *pk, unsigned char *sk, const unsigned char *seed);
    """
)
_extra: Any = _extra_ffi.dlopen(nacl._sodium.__file__)

if lib.sodium_init() < 0:  # pragma: no cover
    raise ImportError("libsodium could not be initialised")

_UCHARS = ffi.typeof("unsigned char[]")
_new = ffi.new_allocator(should_clear_after_alloc=False)
_buffer = ffi.buffer
_secretbox_easy = lib.crypto_secretbox_easy
_secretbox_open_easy = lib.crypto_secretbox_open_easy
_scalarmult = lib.crypto_scalarmult
_scalarmult_base = lib.crypto_scalarmult_base
_beforenm = lib.crypto_box_beforenm

_NULL = ffi.NULL
_hsalsa20 = _extra.crypto_core_hsalsa20
_verify_detached = _extra.crypto_sign_verify_detached
_sign_detached = _extra.crypto_sign_detached
_seed_keypair = _extra.crypto_sign_seed_keypair

_ZERO_16 = bytes(16)
_ZERO_32 = bytes(32)


def _wrong() -> ValueError:
    return ValueError("a key or nonce of the wrong length")


def hsalsa20(key: bytes) -> bytes:
    """HSalsa20(key, 0), which NaCl applies to a DH result, and this protocol to every box key."""
    if len(key) != 32:
        raise _wrong()
    out = _new(_UCHARS, 32)
    _hsalsa20(out, _ZERO_16, key, _NULL)
    return _buffer(out)[:]  # type: ignore[no-any-return]


def secretbox(key: bytes, nonce: bytes, message: bytes) -> bytes:
    """XSalsa20-Poly1305 with a key that HSalsa20 has been applied to. Returns tag ‖ ciphertext."""
    if len(key) != 32 or len(nonce) != 24:
        raise _wrong()
    length = len(message)
    out = _new(_UCHARS, length + 16)
    _secretbox_easy(out, message, length, nonce, key)
    return _buffer(out)[:]  # type: ignore[no-any-return]


def secretbox_open(key: bytes, nonce: bytes, box: bytes) -> bytes | None:
    if len(key) != 32 or len(nonce) != 24:
        raise _wrong()
    length = len(box)
    if length < 16:
        return None
    out = _new(_UCHARS, length - 16)
    if _secretbox_open_easy(out, box, length, nonce, key):
        return None
    return _buffer(out)[:]  # type: ignore[no-any-return]


def x25519(public: bytes, private: bytes) -> bytes:
    """Return the raw DH result; zeros for a public key of low order, as implementations do that do not reject those."""
    if len(public) != 32 or len(private) != 32:
        raise _wrong()
    out = _new(_UCHARS, 32)
    if _scalarmult(out, private, public):
        return _ZERO_32
    return _buffer(out)[:]  # type: ignore[no-any-return]


def box_key(public: bytes, private: bytes) -> bytes:
    """Return HSalsa20 of the DH result (NaCl's beforenm), in one call of C.

    libsodium refuses a public key of low order. Its DH result is zeros, as `x25519` says.
    """
    if len(public) != 32 or len(private) != 32:
        raise _wrong()
    out = _new(_UCHARS, 32)
    if _beforenm(out, public, private):
        return hsalsa20(_ZERO_32)
    return _buffer(out)[:]  # type: ignore[no-any-return]


def x25519_public(private: bytes) -> bytes:
    if len(private) != 32:
        raise _wrong()
    out = _new(_UCHARS, 32)
    _scalarmult_base(out, private)
    return _buffer(out)[:]  # type: ignore[no-any-return]


def ed25519_verify(public: bytes, signature: bytes, message: bytes) -> bool:
    if len(public) != 32 or len(signature) != 64:
        raise _wrong()
    return not _verify_detached(signature, message, len(message), public)


@functools.lru_cache(maxsize=64)
def _ed25519_secret(seed: bytes) -> tuple[bytes, bytes]:
    if len(seed) != 32:
        raise _wrong()
    public, secret = _new(_UCHARS, 32), _new(_UCHARS, 64)
    _seed_keypair(public, secret, seed)
    return _buffer(public)[:], _buffer(secret)[:]


def ed25519_public(seed: bytes) -> bytes:
    return _ed25519_secret(seed)[0]


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    signature = _new(_UCHARS, 64)
    _sign_detached(signature, _NULL, message, len(message), _ed25519_secret(seed)[1])
    return _buffer(signature)[:]  # type: ignore[no-any-return]
