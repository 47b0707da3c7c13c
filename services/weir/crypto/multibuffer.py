"""Ed25519 signatures of one key, verified eight at a time: a fifth of libsodium's time for each.

The library is crypto_mb of Intel's Cryptography Primitives, from the wheel ipp-crypto, and needs a processor with IFMA
instructions (Ice Lake, Zen 4 and later). Nothing secret enters it, and it never refuses: what it does not find right is
libsodium's to judge, as is all that the two might see differently. Where it cannot be loaded, `lanes` is 1.
"""

import functools
import os
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any, Final

import nacl.bindings
from cffi import FFI  # type: ignore[import-untyped, unused-ignore]

from weir.crypto import sodium

_LANES: Final = 8
# Runtimes of Intel's compiler that the library names as needed and calls nothing in: 130 MB, and not free software.
_UNUSED: Final = frozenset((b"libimf.so", b"libintlc.so.5", b"libirng.so", b"libsvml.so"))
_LOAD, _DYNAMIC = 1, 2  # p_type of an ELF segment
_END, _NEEDED, _STRINGS, _DEBUG = 0, 1, 5, 21  # d_tag of a dynamic entry; the loader ignores DEBUG in a library

_IDENTITY: Final = b"\1" + bytes(31)
_NONE: Final = bytes(64)

_ffi = FFI()
_ffi.cdef(
    """
    int mbx_is_crypto_mb_applicable(uint64_t features);
    uint32_t mbx_ed25519_verify_mb8(const unsigned char *const r[8], const unsigned char *const s[8],
                                    const unsigned char *const message[8], const uint32_t length[8],
                                    const unsigned char *const public_key[8]);
    """
)

_from_buffer = sodium.ffi.from_buffer  # PyNaCl's compiled FFI: the other's is a wrapper in Python


def lanes() -> int:
    """How many signatures are worth being verified together: 1 where they cannot."""
    return 1 if _library() is None else _LANES


def right(public: bytes, signed: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    """Of at most `lanes()` pairs of a signature and its message, which are right for sure."""
    library = _library()
    usable = [_is_usable(signature) for signature, _ in signed]
    if library is None or not _is_sound(public) or not any(usable):
        return [False] * len(signed)
    if len(signed) > _LANES:
        raise ValueError("more signatures than are verified together")
    nobody = [_ffi.NULL] * (_LANES - len(signed))  # lanes without a key are left out, but C reads all eight
    signatures = [_from_buffer(signature if ok else _NONE) for ok, (signature, _) in zip(usable, signed, strict=True)]
    status = library.mbx_ed25519_verify_mb8(
        signatures + nobody,
        [signature + 32 for signature in signatures] + nobody,
        [_from_buffer(message) for _, message in signed] + nobody,
        [len(message) for _, message in signed] + [0] * len(nobody),
        [_from_buffer(public)] * len(signed) + nobody,
    )
    return [ok and not status >> 4 * lane & 15 for lane, ok in enumerate(usable)]


def _is_usable(signature: bytes) -> bool:
    """s is below 2²⁵², so below the order, whose words the library compares each by itself (of 2¹²⁷ signatures one is
    not); r is not 0, which libsodium refuses."""
    return len(signature) == 64 and signature[63] < 16 and not signature.startswith(_IDENTITY)


@functools.lru_cache(maxsize=64)
def _is_sound(public: bytes) -> bool:
    """A canonical point of the prime order subgroup."""
    return len(public) == 32 and bool(nacl.bindings.crypto_core_ed25519_is_valid_point(public))


@functools.cache
def _library() -> Any | None:
    with suppress(Exception):  # whatever it is that does not fit, libsodium does without
        library = _load(_without_unused(_file()))
        if library.mbx_is_crypto_mb_applicable(0):
            return library
    return None


def _file() -> bytearray:
    for file in metadata.files("ipp-crypto") or ():
        if file.name == "libcrypto_mb.so":
            return bytearray(file.read_binary())
    raise ValueError("the wheel holds no crypto_mb")


def _without_unused(elf: bytearray) -> bytearray:
    """The same library, without the names of libraries that it does not use."""
    start, size, count = (*struct.unpack_from("<Q", elf, 32), *struct.unpack_from("<HH", elf, 54))
    segments = [struct.unpack_from("<IIQQQQ", elf, start + size * n) for n in range(count)]
    dynamic = next(offset for kind, _, offset, *_ in segments if kind == _DYNAMIC)
    entries: list[tuple[int, int]] = []
    while (entry := struct.unpack_from("<QQ", elf, dynamic + 16 * len(entries)))[0] != _END:
        entries.append(entry)
    address = next(value for tag, value in entries if tag == _STRINGS)
    strings = next(
        offset + address - at
        for kind, _, offset, at, _, length in segments
        if kind == _LOAD and at <= address < at + length
    )
    for n, (tag, value) in enumerate(entries):
        name = strings + value
        if tag == _NEEDED and bytes(elf[name : elf.index(0, name)]) in _UNUSED:
            struct.pack_into("<Q", elf, dynamic + 16 * n, _DEBUG)
    return elf


def _load(elf: bytearray) -> Any:
    """From memory: a file beside the wheel's would have to be written at each start."""
    if sys.platform != "linux":
        raise OSError("no library for this system")
    descriptor = os.memfd_create("libcrypto_mb")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(elf)
        return _ffi.dlopen(f"/proc/self/fd/{descriptor}", _ffi.RTLD_NOW)  # fails if it does use them after all
    finally:
        os.close(descriptor)
