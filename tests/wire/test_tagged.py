import pytest

from weir.wire.encoding import Malformed
from weir.wire.errors import CommandError
from weir.wire.tagged import tagged_decoder

UNKNOWN, SYNTAX = CommandError.UNKNOWN, CommandError.SYNTAX


def read(version: int, data: bytes, at: int) -> tuple[int, bytes]:
    if data[at:] == b"wrong":
        raise Malformed
    return version, data[at:]


decode = tagged_decoder({b"PING": (0, b"PONG")}, {b"ACK": read})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"PING", (0, b"PONG")),
        (b"PING x", SYNTAX),
        (b"PING ", SYNTAX),
        (b"ACK abc", (7, b"abc")),
        (b"ACK  abc", (7, b" abc")),
        (b"ACK ", (7, b"")),
        (b"ACK", SYNTAX),
        (b"ACK wrong", SYNTAX),
        (b"PINGS", UNKNOWN),
        (b"PINGS x", UNKNOWN),
        (b"A abc", UNKNOWN),
        (b" abc", UNKNOWN),
        (b"", UNKNOWN),
        (bytes(16_000), UNKNOWN),
    ],
)
def test_decoder(data: bytes, expected: object) -> None:
    assert decode(7, data) == expected
