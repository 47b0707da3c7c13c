"""The primitives that all messages are made of (protocol, "SMP transmission and transport block structure").

A reader takes the bytes and a position, and returns the value and the position after the value. It raises `Malformed`
if bytes are missing or have an unexpected value. Each decoder turns `Malformed` into an error of its protocol.
"""

import struct
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Malformed(Exception):
    """The bytes do not have the expected form. Decoders catch this exception: it never leaves `weir.wire`."""


LENGTH = tuple(bytes((n,)) for n in range(256))
"""The length byte of a short string."""

_INT64 = struct.Struct(">q")
_pack_int64 = _INT64.pack


def short(value: bytes) -> bytes:
    """shortString: one length byte and the value."""
    return LENGTH[len(value)] + value


def large(value: bytes) -> bytes:
    """Large: two length bytes and the value."""
    return len(value).to_bytes(2, "big") + value


def boolean(value: bool) -> bytes:
    return b"T" if value else b"F"


def word16(value: int) -> bytes:
    return value.to_bytes(2, "big")


def int64(value: int) -> bytes:
    return _pack_int64(value)


def maybe(value: T | None, encode: Callable[[T], bytes]) -> bytes:
    """`0`, or `1` and the value."""
    return b"0" if value is None else b"1" + encode(value)


def items(values: tuple[bytes, ...]) -> bytes:
    """A list: one count byte and the values, which the caller has encoded."""
    return LENGTH[len(values)] + b"".join(values)


def read_short(data: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(data):
        raise Malformed
    end = at + 1 + data[at]
    if end > len(data):
        raise Malformed
    return data[at + 1 : end], end


def read_large(data: bytes, at: int) -> tuple[bytes, int]:
    if at + 2 > len(data):
        raise Malformed
    end = at + 2 + (data[at] << 8 | data[at + 1])
    if end > len(data):
        raise Malformed
    return data[at + 2 : end], end


def read_bytes(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    end = at + count
    if end > len(data):
        raise Malformed
    return data[at:end], end


def read_byte(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise Malformed
    return data[at], at + 1


def read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    char = data[at : at + 1]
    if char == b"T":
        return True, at + 1
    if char == b"F":
        return False, at + 1
    raise Malformed


def read_word16(data: bytes, at: int) -> tuple[int, int]:
    if at + 2 > len(data):
        raise Malformed
    return data[at] << 8 | data[at + 1], at + 2


def read_int64(data: bytes, at: int) -> tuple[int, int]:
    if at + 8 > len(data):
        raise Malformed
    return int.from_bytes(data[at : at + 8], "big", signed=True), at + 8


def read_maybe(data: bytes, at: int, read: Callable[[bytes, int], tuple[T, int]]) -> tuple[T | None, int]:
    char = data[at : at + 1]
    if char == b"0":
        return None, at + 1
    if char == b"1":
        return read(data, at + 1)
    raise Malformed


def read_items(data: bytes, at: int, read: Callable[[bytes, int], tuple[T, int]]) -> tuple[tuple[T, ...], int]:
    """Read a list. The protocol has no empty lists."""
    count, at = read_byte(data, at)
    if count == 0:
        raise Malformed
    values = []
    for _ in range(count):
        value, at = read(data, at)
        values.append(value)
    return tuple(values), at


def expect_end(data: bytes, at: int) -> None:
    """Raise `Malformed` unless the bytes end at `at`."""
    if at != len(data):
        raise Malformed
