import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.ntf import codec
from weir.wire.ntf import transmission as t
from weir.wire.ntf import types as n
from weir.wire.ntf.session import NtfSession

_SESSION_ID = bytes(range(32))
_CORR, _ENTITY = b"c" * 24, b"e" * 24
_auths = st.sampled_from([b"", bytes(64), bytes(80), bytes(114)])


@given(s.NTF_VERSIONS, s.ntf_commands, _auths, s.ids, s.ids)
def test_commands_round_trip(
    version: int, command: n.NtfCommand, auth: bytes, corr_id: bytes, entity_id: bytes
) -> None:
    session = NtfSession(_SESSION_ID, version)
    authorized, sent = t.for_auth(session, corr_id, entity_id, codec.encode_command(version, command))
    encoded = t.encode_client(session, sent, auth, None)
    [decoded] = t.decode_block(session, b"\x01" + encoded if session.batch else encoded[2:])
    error = n.DECLARATIONS[type(command)].credential_errors()[2 * bool(auth) + bool(entity_id)]
    if error is not None:
        assert decoded == t.TransmissionError(corr_id, entity_id, error)
    else:
        assert decoded == t.NtfTransmission(auth, authorized, corr_id, entity_id, command)


@given(st.sampled_from([1, 3]), s.ntf_replies, s.ids, s.ids)
def test_replies_round_trip(version: int, reply: n.NtfReply, corr_id: bytes, entity_id: bytes) -> None:
    session = NtfSession(_SESSION_ID, version)
    encoded = t.encode_server(session, corr_id, entity_id, codec.encode_reply(3, reply))
    content = b"\x01" + encoded if session.batch else encoded[2:]
    expected = t.check_reply(reply, entity_id) or reply
    assert t.decode_replies(session, content) == [t.NtfServerTransmission(corr_id, entity_id, expected)]


@given(s.NTF_VERSIONS, st.binary(max_size=200))
def test_total(version: int, content: bytes) -> None:
    session = NtfSession(_SESSION_ID, version)
    assert t.decode_block(session, content)
    assert t.decode_replies(session, content)


def _client(version: int, command: bytes, auth: bytes = b"", entity_id: bytes = _ENTITY) -> bytes:
    session = NtfSession(_SESSION_ID, version)
    [content] = t.pack(
        session, [t.encode_client(session, t.for_auth(session, _CORR, entity_id, command)[1], auth, None)]
    )
    return content


@pytest.mark.parametrize(
    ("version", "content", "corr_id", "entity_id", "error"),
    [
        (1, b"", b"", b"", Simple.BLOCK),
        (2, b"", b"", b"", Simple.BLOCK),
        (2, b"\x00", b"", b"", Simple.BLOCK),
        (1, _client(1, b"PING").replace(_SESSION_ID, bytes(32)), _CORR, b"", Simple.SESSION),
        (2, _client(2, b"PING", bytes(63)), _CORR, b"", Simple.BLOCK),
        (2, _client(2, b"NOPE"), _CORR, _ENTITY, CommandError.UNKNOWN),
        (2, _client(2, b"PING x"), _CORR, _ENTITY, CommandError.SYNTAX),
        (2, _client(2, b"PING"), _CORR, _ENTITY, CommandError.HAS_AUTH),
        (2, _client(2, b"TCHK"), _CORR, _ENTITY, CommandError.NO_AUTH),
        (2, _client(2, b"TCHK", bytes(80), b""), _CORR, b"", CommandError.NO_AUTH),
    ],
)
def test_order_of_checks(version: int, content: bytes, corr_id: bytes, entity_id: bytes, error: ErrorType) -> None:
    assert t.decode_block(NtfSession(_SESSION_ID, version), content) == [t.TransmissionError(corr_id, entity_id, error)]


_TOKEN = n.DeviceToken(n.PushProvider.APNS_TEST, b"t")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (n.PING(), (None, CommandError.HAS_AUTH, CommandError.HAS_AUTH, CommandError.HAS_AUTH)),
        (n.TNEW(_TOKEN, b"", b""), (CommandError.NO_AUTH, CommandError.NO_AUTH, None, CommandError.HAS_AUTH)),
        (n.TCHK(), (CommandError.NO_AUTH, CommandError.NO_AUTH, CommandError.NO_AUTH, None)),
    ],
)
def test_credentials(command: n.NtfCommand, expected: tuple[CommandError | None, ...]) -> None:
    assert n.DECLARATIONS[type(command)].credential_errors() == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x01\x00\x05\x00\x00\x00OK", t.NtfServerTransmission(b"", b"", CommandError.NO_ENTITY)),
        (b"\x01\x00\x08\x00\x00\x01ePONG", t.NtfServerTransmission(b"", b"e", CommandError.HAS_AUTH)),
        (b"\x01\x00\x06\x00\x00\x01eOK", t.NtfServerTransmission(b"", b"e", n.OK())),
        (b"\x01\x00\x00", t.NtfServerTransmission(b"", b"", Simple.BLOCK)),
        (b"", t.NtfServerTransmission(b"", b"", Simple.BLOCK)),
    ],
)
def test_what_a_client_makes_of_a_block(content: bytes, expected: t.NtfServerTransmission) -> None:
    assert t.decode_replies(NtfSession(_SESSION_ID, 3), content) == [expected]


def test_session_in_a_reply() -> None:
    encoded = t.encode_server(NtfSession(bytes(32), 1), b"c", b"", b"PONG")
    assert t.decode_replies(NtfSession(_SESSION_ID, 1), encoded[2:]) == [
        t.NtfServerTransmission(b"c", b"", Simple.SESSION)
    ]


def test_blocks_are_small() -> None:
    session = NtfSession(_SESSION_ID, 3)
    one = t.encode_server(session, _CORR, _ENTITY, b"OK")
    contents = t.pack(session, [one] * 20)
    assert len(contents) > 1
    assert all(len(content) <= 512 - 18 for content in contents)
