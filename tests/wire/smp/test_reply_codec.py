import pytest
from hypothesis import given

from tests.wire import strategies as s
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import ids_hash
from weir.wire.smp import replies as r
from weir.wire.smp.reply_codec import decode_reply, encode_reply

UNKNOWN, SYNTAX = CommandError.UNKNOWN, CommandError.SYNTAX


@given(s.SMP_VERSIONS, s.replies)
def test_round_trip(version: int, reply: r.Reply) -> None:
    assert decode_reply(version, encode_reply(version, reply)) == s.reply_at(version, reply)


@given(s.SMP_VERSIONS, s.mutated(s.replies.map(lambda reply: encode_reply(19, reply))))
def test_total(version: int, data: bytes) -> None:
    reply = decode_reply(version, data)
    if not isinstance(reply, CommandError) and not (isinstance(reply, r.SOK) and version < 16):
        assert decode_reply(version, encode_reply(version, reply)) == s.reply_at(version, reply)


@pytest.mark.parametrize(
    ("version", "data", "expected"),
    [
        (19, b"", UNKNOWN),
        (19, b"ok", UNKNOWN),
        (19, b"OK", r.OK()),
        (19, b"OK ", SYNTAX),
        (19, b"OKS", UNKNOWN),
        (19, b"RNAMEX", UNKNOWN),
        (19, b"X" * 400, UNKNOWN),
        (19, b"SOK", SYNTAX),
        (19, b"SOK 0", r.SOK()),
        (19, b"SOK 1\x01a", r.SOK(b"a")),
        (15, b"SOK 0", r.SOK()),
        (18, b"SOKS " + bytes(8), r.SOKS(0, ids_hash.EMPTY)),
        (18, b"SOKS " + bytes(8) + b"\x00", SYNTAX),
        (19, b"SOKS " + bytes(8), SYNTAX),
        (19, b"ENDS " + bytes(8) + b"\x01a", r.ENDS(0, b"a")),
        (19, b"ERR", SYNTAX),
        (19, b"ERR ", SYNTAX),
        (19, b"ERR AUTH", r.ERR(Simple.AUTH)),
        (19, b"ERR AUTH x", SYNTAX),
        (19, b"MSG \x01ab", r.MSG(b"a", b"b")),
        (19, b"MSG \x01a", r.MSG(b"a", b"")),
        (19, b"MSG \x02a", SYNTAX),
        (19, b"NMSG " + bytes(24) + b"\x00", r.NMSG(bytes(24), b"")),
        (19, b"NMSG " + bytes(23), SYNTAX),
        (19, b"PRES ", r.PRES(b"")),
        (19, b"INFO {}", SYNTAX),
        (19, b"INFO ", SYNTAX),
        (19, b"INFO " + b"[" * 15000, SYNTAX),
        (19, b"PKEY \x00\x00\x07\x00\x06\x01\x00\x00\x00\x00", SYNTAX),
    ],
)
def test_decode(version: int, data: bytes, expected: object) -> None:
    assert decode_reply(version, data) == expected


@pytest.mark.parametrize(
    ("version", "reply", "expected"),
    [
        (9, r.DELD(), b"END"),
        (10, r.DELD(), b"DELD"),
        (15, r.SOK(b"s"), b"OK"),
        (16, r.SOK(b"s"), b"SOK 1\x01s"),
        (18, r.SOKS(2, b"h"), b"SOKS " + bytes(7) + b"\x02"),
        (19, r.SOKS(2, b"h"), b"SOKS " + bytes(7) + b"\x02\x01h"),
    ],
)
def test_version_gates(version: int, reply: r.Reply, expected: bytes) -> None:
    assert encode_reply(version, reply) == expected
