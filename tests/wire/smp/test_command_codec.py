import pytest
from hypothesis import given

from tests.wire import strategies as s
from weir.wire.errors import CommandError
from weir.wire.smp import command_codec, ids_hash
from weir.wire.smp import commands as c
from weir.wire.smp.command_codec import decode_command, decode_send, encode_command
from weir.wire.versions import SMP_RANGE

UNKNOWN, SYNTAX = CommandError.UNKNOWN, CommandError.SYNTAX


@given(s.SMP_VERSIONS, s.commands)
def test_round_trip(version: int, command: c.Command) -> None:
    decoded = decode_command(version, encode_command(version, command))
    assert decoded == s.command_at(version, command)


@given(s.SMP_VERSIONS, s.mutated(s.commands.map(lambda command: encode_command(19, command))))
def test_total(version: int, data: bytes) -> None:
    command = decode_command(version, data)
    if not isinstance(command, CommandError):
        assert decode_command(version, encode_command(version, command)) == command


@pytest.mark.parametrize("kind", c.DECLARATIONS, ids=lambda kind: kind.__name__)
def test_every_declared_command_has_a_codec(kind: type[c.Command]) -> None:
    assert kind in command_codec._ENCODERS
    assert decode_command(SMP_RANGE.max, c.DECLARATIONS[kind].tag + b" ") is not UNKNOWN


_KEY = bytes.fromhex("302a300506032b656e032100") + bytes(32)
_NEW = b"NEW \x2c" + _KEY + b"\x2c" + _KEY


@pytest.mark.parametrize(
    ("version", "data", "expected"),
    [
        (19, b"", UNKNOWN),
        (19, b" ", UNKNOWN),
        (19, b" SUB", UNKNOWN),
        (19, b"sub", UNKNOWN),
        (19, b"SUBX", UNKNOWN),
        (19, b"NSUBSX", UNKNOWN),
        (19, b"NSUBSXY PING", UNKNOWN),
        (19, b"X" * 1000, UNKNOWN),
        (19, b"SUB", c.SUB()),
        (19, b"SUB ", SYNTAX),
        (19, b"SUB x", SYNTAX),
        (19, b"PING\0", UNKNOWN),
        (19, b"ACK", SYNTAX),
        (19, b"ACK ", SYNTAX),
        (19, b"ACK \x00", c.ACK(b"")),
        (19, b"ACK \x01", SYNTAX),
        (19, b"ACK \x01ab", SYNTAX),
        (19, b"KEY", SYNTAX),
        (19, b"KEY \x2c" + _KEY, c.KEY(_KEY)),
        (19, b"KEY \x2c" + _KEY + b"x", SYNTAX),
        (19, b"KEY \x2b" + _KEY[:-1], SYNTAX),
        (19, b"RKEY \x00", SYNTAX),
        (19, b"RKEY \x02\x2c" + _KEY, SYNTAX),
        (18, b"SUBS", c.SUBS(-1, ids_hash.EMPTY)),
        (18, b"NSUBS", c.NSUBS(-1, ids_hash.EMPTY)),
        (18, b"SUBS ", SYNTAX),
        (18, b"SUBS " + bytes(8) + b"\x10" + bytes(16), SYNTAX),
        (19, b"SUBS", SYNTAX),
        (19, b"SUBS " + bytes(7), SYNTAX),
        (19, b"SUBS " + bytes(8) + b"\x10" + bytes(16), c.SUBS(0, bytes(16))),
        (19, b"NSUBS " + b"\xff" * 8 + b"\x00", c.NSUBS(-1, b"")),
        (19, b"SEND", SYNTAX),
        (19, b"SEND ", SYNTAX),
        (19, b"SEND F", SYNTAX),
        (19, b"SEND  ", SYNTAX),
        (19, b"SEND F ", c.SEND(False, b"")),
        (19, b"SEND T hello", c.SEND(True, b"hello")),
        (19, b"SEND Tabc hello", c.SEND(True, b"hello")),
        (19, b"SEND X hello", SYNTAX),
        (19, b"RFWD ", c.RFWD(b"")),
        (19, b"RFWD", SYNTAX),
        (8, _NEW + b"S", c.NEW(_KEY, bytes(32))),
        (8, _NEW + b"A\x01aC", c.NEW(_KEY, bytes(32), b"a", False)),
        (8, _NEW + b"A\x01 C", SYNTAX),
        (8, _NEW + b"SX", SYNTAX),
        (8, _NEW, SYNTAX),
        (8, _NEW + b"X", SYNTAX),
        (9, _NEW + b"S", SYNTAX),
        (9, _NEW + b"0ST", c.NEW(_KEY, bytes(32), queue_req=c.MessagingReq())),
        (9, _NEW + b"0SF", c.NEW(_KEY, bytes(32), queue_req=c.ContactReq())),
        (14, _NEW + b"0SX", SYNTAX),
        (15, _NEW + b"0S0", c.NEW(_KEY, bytes(32))),
        (15, _NEW + b"0S1M0", c.NEW(_KEY, bytes(32), queue_req=c.MessagingReq())),
        (15, _NEW + b"0S1X0", SYNTAX),
        (16, _NEW + b"0S1M00", SYNTAX),
        (17, _NEW + b"0S1M00", c.NEW(_KEY, bytes(32), queue_req=c.MessagingReq())),
        (17, _NEW + b"0S1M02", SYNTAX),
        (19, b"RSLV alice.simplex", c.RSLV(b"alice.simplex")),
        (19, b"RSLV Alice.Simplex more", c.RSLV(b"alice.simplex")),
        (19, b"RSLV alice", SYNTAX),
        (19, b"RSLV " + b"a" * 64 + b".org", SYNTAX),
        (19, b"RSLV a..b", SYNTAX),
        (19, b"RSLV -a.b", SYNTAX),
        (19, b"RSLV " + b"a.b." * 64 + b"c", SYNTAX),
        (19, b"RSLV", SYNTAX),
        (19, b"RSLV ", SYNTAX),
    ],
)
def test_decode(version: int, data: bytes, expected: object) -> None:
    assert decode_command(version, data) == expected


@pytest.mark.parametrize(
    ("data", "at", "end", "expected"),
    [
        (b"..F hello..", 2, 9, c.SEND(False, b"hello")),
        (b"..T hello", 2, 9, c.SEND(True, b"hello")),
        (b"..F ..", 2, 4, c.SEND(False, b"")),
        (b"..F .", 2, 3, None),
        (b"..F .", 2, 2, None),
        (b"..FFF  x", 2, 8, c.SEND(False, b" x")),
        (b"..XFF x", 2, 7, None),
        (b"F ", 0, 1, None),
    ],
)
def test_send_within_a_block(data: bytes, at: int, end: int, expected: c.SEND | None) -> None:
    assert decode_send(data, at, end) == expected
