import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire import encoding as enc
from weir.wire.encoding import Malformed


@given(s.short, s.large, st.booleans(), s.word16, s.int64)
def test_round_trips(short: bytes, large: bytes, flag: bool, word: int, number: int) -> None:
    data = enc.short(short) + enc.large(large) + enc.boolean(flag) + enc.word16(word) + enc.int64(number)
    got_short, at = enc.read_short(data, 0)
    got_large, at = enc.read_large(data, at)
    got_flag, at = enc.read_boolean(data, at)
    got_word, at = enc.read_word16(data, at)
    got_number, at = enc.read_int64(data, at)
    enc.expect_end(data, at)
    assert (got_short, got_large, got_flag, got_word, got_number) == (short, large, flag, word, number)


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (enc.short(b"abc"), b"\x03abc"),
        (enc.large(b"abc"), b"\x00\x03abc"),
        (enc.boolean(True), b"T"),
        (enc.boolean(False), b"F"),
        (enc.word16(0x1234), b"\x12\x34"),
        (enc.int64(-1), b"\xff" * 8),
        (enc.maybe(None, enc.short), b"0"),
        (enc.maybe(b"a", enc.short), b"1\x01a"),
        (enc.items((b"a", b"b")), b"\x02ab"),
    ],
)
def test_bytes(encoded: bytes, expected: bytes) -> None:
    assert encoded == expected


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (enc.read_short, b""),
        (enc.read_short, b"\x02a"),
        (enc.read_large, b"\x00"),
        (enc.read_large, b"\x00\x02a"),
        (enc.read_boolean, b""),
        (enc.read_boolean, b"X"),
        (enc.read_word16, b"\x00"),
        (enc.read_int64, b"\x00" * 7),
        (enc.read_byte, b""),
        (lambda data, at: enc.read_bytes(data, at, 3), b"ab"),
        (lambda data, at: enc.read_maybe(data, at, enc.read_short), b""),
        (lambda data, at: enc.read_maybe(data, at, enc.read_short), b"2"),
        (lambda data, at: enc.read_maybe(data, at, enc.read_short), b"1\x02a"),
        (lambda data, at: enc.read_items(data, at, enc.read_short), b"\x00"),
        (lambda data, at: enc.read_items(data, at, enc.read_short), b"\x02\x01a"),
        (enc.expect_end, b"a"),
    ],
)
def test_malformed(read: object, data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data, 0)  # type: ignore[operator]


def test_too_long_is_the_callers_mistake() -> None:
    with pytest.raises(IndexError):
        enc.short(bytes(256))
    with pytest.raises(OverflowError):
        enc.large(bytes(65536))
