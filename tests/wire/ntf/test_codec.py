from dataclasses import replace

import pytest
from hypothesis import given

from tests.wire import strategies as s
from weir.wire.errors import CommandError
from weir.wire.ntf import codec
from weir.wire.ntf import types as n

UNKNOWN, SYNTAX = CommandError.UNKNOWN, CommandError.SYNTAX


@given(s.NTF_VERSIONS, s.ntf_commands)
def test_commands(version: int, command: n.NtfCommand) -> None:
    assert codec.decode_command(version, codec.encode_command(version, command)) == command


@given(s.NTF_VERSIONS, s.ntf_replies)
def test_replies(version: int, reply: n.NtfReply) -> None:
    expected = reply
    if isinstance(reply, n.TKN) and isinstance(reply.status, n.TokenInvalid) and version < 3:
        expected = replace(reply, status=n.TokenInvalid())
    assert codec.decode_reply(version, codec.encode_reply(version, reply)) == expected


@given(s.NTF_VERSIONS, s.mutated(s.ntf_commands.map(lambda command: codec.encode_command(3, command))))
def test_commands_total(version: int, data: bytes) -> None:
    command = codec.decode_command(version, data)
    if not isinstance(command, CommandError):
        assert codec.decode_command(version, codec.encode_command(version, command)) == command


@given(s.mutated(s.ntf_replies.map(lambda reply: codec.encode_reply(3, reply))))
def test_replies_total(data: bytes) -> None:
    reply = codec.decode_reply(3, data)
    if not isinstance(reply, CommandError):
        assert codec.decode_reply(3, codec.encode_reply(3, reply)) == reply


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", UNKNOWN),
        (b"NOPE x", UNKNOWN),
        (b"PING", n.PING()),
        (b"PING ", SYNTAX),
        (b"TVFY", SYNTAX),
        (b"TVFY \x01a", n.TVFY(b"a")),
        (b"TVFY \x01ab", SYNTAX),
        (b"TCRN \x00\x14", n.TCRN(20)),
        (b"TCRN \x00", SYNTAX),
        (b"TCRN \x00\x14x", SYNTAX),
        (b"TRPL AD\x01a", n.TRPL(n.DeviceToken(n.PushProvider.APNS_DEV, b"a"))),
        (b"TRPL XX\x01a", SYNTAX),
        (b"TRPL A", SYNTAX),
        (b"TNEW SAD", SYNTAX),
        (b"TNEW T", SYNTAX),
        (b"SNEW T", SYNTAX),
        (b"SNEW S\x01t\x01\x01h\x00\x00\x01n\x03key", SYNTAX),
    ],
)
def test_decode_command(data: bytes, expected: object) -> None:
    assert codec.decode_command(3, data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", UNKNOWN),
        (b"NOPE", UNKNOWN),
        (b"OK", n.OK()),
        (b"OK ", SYNTAX),
        (b"TKN", SYNTAX),
        (b"TKN ", SYNTAX),
        (b"TKN ACTIVE", n.TKN(n.TokenStatus.ACTIVE)),
        (b"TKN ACTIVE,BAD", SYNTAX),
        (b"TKN INVALID,", SYNTAX),
        (b"TKN INVALID,NOPE", SYNTAX),
        (b"TKN INVALID,TOPIC", n.TKN(n.TokenInvalid(n.InvalidReason.TOPIC))),
        (b"SUB ERR", SYNTAX),
        (b"SUB ERR ", n.SUB(n.SubError(b""))),
        (b"SUB AUTH", n.SUB(n.SubStatus.AUTH)),
        (b"SUB AUTH x", SYNTAX),
        (b"IDSUB \x01ab", SYNTAX),
        (b"IDTKN \x01a", SYNTAX),
        (b"ERR NOPE", SYNTAX),
    ],
)
def test_decode_reply(data: bytes, expected: object) -> None:
    assert codec.decode_reply(3, data) == expected
