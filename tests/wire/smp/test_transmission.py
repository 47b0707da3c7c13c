import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.smp import commands as c
from weir.wire.smp import replies as r
from weir.wire.smp.codec import encode_command, encode_reply
from weir.wire.smp.credentials import check_reply
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import (
    ClientTransmission,
    ServerTransmission,
    TransmissionError,
    decode_block,
    decode_replies,
    encode_client,
    encode_msg,
    encode_server,
    for_auth,
    pack,
)

_SESSION_ID = bytes(range(32))
_CORR, _ENTITY = b"c" * 24, b"e" * 24
_auths = st.sampled_from([b"", bytes(64), bytes(80), bytes(114)])


@given(s.SMP_VERSIONS, s.commands, _auths, st.none() | st.binary(min_size=64, max_size=64), s.ids, s.ids)
def test_commands_round_trip(
    version: int, command: c.Command, auth: bytes, service_sig: bytes | None, corr_id: bytes, entity_id: bytes
) -> None:
    session = Session(_SESSION_ID, version)
    authorized, sent = for_auth(session, corr_id, entity_id, encode_command(version, command))
    [decoded] = decode_block(session, b"\x01" + encode_client(session, sent, auth, service_sig))
    error = c.DECLARATIONS[type(command)].credential_errors()[2 * bool(auth) + bool(entity_id)]
    if error is not None:
        assert decoded == TransmissionError(corr_id, entity_id, error)
    else:
        sig = service_sig if auth and version >= 16 else None
        expected = s.command_at(version, command)
        assert decoded == ClientTransmission(auth, sig, authorized, corr_id, entity_id, expected)


@given(s.SMP_VERSIONS, s.replies, s.ids, s.ids)
def test_replies_round_trip(version: int, reply: r.Reply, corr_id: bytes, entity_id: bytes) -> None:
    session = Session(_SESSION_ID, version)
    encoded = encode_server(session, corr_id, entity_id, encode_reply(version, reply))
    seen = s.reply_at(version, reply)
    expected = check_reply(seen, entity_id) or seen
    assert decode_replies(session, b"\x01" + encoded) == [ServerTransmission(corr_id, entity_id, expected)]


def _client(version: int, command: bytes, auth: bytes = b"", entity_id: bytes = _ENTITY) -> bytes:
    session = Session(_SESSION_ID, version)
    return encode_client(session, for_auth(session, _CORR, entity_id, command)[1], auth, None)


@given(s.SMP_VERSIONS, s.mutated(s.commands.map(lambda cmd: b"\x01" + _client(19, encode_command(19, cmd), bytes(80)))))
def test_total_for_a_router(version: int, content: bytes) -> None:
    assert decode_block(Session(_SESSION_ID, version), content)


@given(s.SMP_VERSIONS, s.mutated(s.replies.map(lambda reply: encode_reply(19, reply))))
def test_total_for_a_client(version: int, content: bytes) -> None:
    session = Session(_SESSION_ID, version)
    assert decode_replies(session, content)
    assert decode_replies(session, b"\x01" + encode_server(session, b"", b"", content))


_AUTH = bytes(80)


@pytest.mark.parametrize(
    ("version", "content", "corr_id", "entity_id", "error"),
    [
        # a block that is not a batch
        (19, b"", b"", b"", Simple.BLOCK),
        (19, b"\x00", b"", b"", Simple.BLOCK),
        (19, b"\x01" + _client(19, b"PING") + b"x", b"", b"", Simple.BLOCK),
        # a transmission whose fields do not fit
        (19, b"\x01\x00\x00", b"", b"", Simple.BLOCK),
        (19, b"\x01\x00\x01\x05", b"", b"", Simple.BLOCK),
        (19, b"\x01\x00\x02\x00\x18", b"", b"", Simple.BLOCK),
        (19, b"\x01\x00\x03\x00\x00\x01", b"", b"", Simple.BLOCK),
        # the service's field is missing, is neither 0 nor 1, is not an Ed25519 signature, or is cut
        (19, b"\x01\x00\x41\x40" + bytes(64), b"", b"", Simple.BLOCK),
        (19, b"\x01\x00\x44\x40" + bytes(64) + b"2\x00\x00", b"", b"", Simple.BLOCK),
        (19, b"\x01\x00\x86\x40" + bytes(64) + b"1\x3f" + bytes(63) + b"\0\0\0\0", b"", b"", Simple.BLOCK),
        (19, b"\x01\x00\x43\x40" + bytes(64) + b"1\x40", b"", b"", Simple.BLOCK),
        # the session before the size of the authorisation, that before the command
        (6, b"\x01" + _client(6, b"NOPE", bytes(63)).replace(_SESSION_ID, bytes(32)), _CORR, b"", Simple.SESSION),
        (6, b"\x01" + _client(6, b"NOPE", bytes(63)), _CORR, b"", Simple.BLOCK),
        (19, b"\x01" + _client(19, b"NOPE", bytes(63)), _CORR, b"", Simple.BLOCK),
        # the tag before the syntax, the syntax before the credentials
        (19, b"\x01" + _client(19, b"NOPE x"), _CORR, _ENTITY, CommandError.UNKNOWN),
        (19, b"\x01" + _client(19, b"PING x"), _CORR, _ENTITY, CommandError.SYNTAX),
        (19, b"\x01" + _client(19, b"ACK"), _CORR, _ENTITY, CommandError.SYNTAX),
        (19, b"\x01" + _client(19, b"SEND F", b"", b""), _CORR, b"", CommandError.SYNTAX),
        (19, b"\x01" + _client(19, b"SEND F x", _AUTH, b""), _CORR, b"", CommandError.NO_ENTITY),
        (19, b"\x01" + _client(19, b"ACK \x00"), _CORR, _ENTITY, CommandError.NO_AUTH),
        (19, b"\x01" + _client(19, b"ACK \x00", _AUTH, b""), _CORR, b"", CommandError.NO_AUTH),
        (19, b"\x01" + _client(19, b"PING", b"", _ENTITY), _CORR, _ENTITY, CommandError.HAS_AUTH),
    ],
)
def test_order_of_checks(version: int, content: bytes, corr_id: bytes, entity_id: bytes, error: ErrorType) -> None:
    assert decode_block(Session(_SESSION_ID, version), content) == [TransmissionError(corr_id, entity_id, error)]


def test_one_bad_transmission_does_not_spoil_the_others() -> None:
    session = Session(_SESSION_ID, 19)
    good = _client(19, b"SUB", _AUTH)
    [content] = pack([good, _client(19, b"NOPE"), good])
    first, second, third = decode_block(session, content)
    assert isinstance(first, ClientTransmission)
    assert second == TransmissionError(_CORR, _ENTITY, CommandError.UNKNOWN)
    assert third == first


@pytest.mark.parametrize(
    ("version", "content", "expected"),
    [
        (19, b"", ServerTransmission(b"", b"", Simple.BLOCK)),
        (19, b"\x01\x00\x00", ServerTransmission(b"", b"", Simple.BLOCK)),
        (6, b"\x01\x00\x0a\x00\x03abc\x01c\x00OK", ServerTransmission(b"c", b"", Simple.SESSION)),
        (19, b"\x01\x00\x05\x00\x00\x00OK", ServerTransmission(b"", b"", CommandError.NO_ENTITY)),
        (19, b"\x01\x00\x08\x00\x00\x01ePONG", ServerTransmission(b"", b"e", CommandError.HAS_AUTH)),
        (19, b"\x01\x00\x06\x00\x00\x01eOK", ServerTransmission(b"", b"e", r.OK())),
        (19, b"\x01\x00\x06\x00\x00\x01ok!", ServerTransmission(b"", b"o", CommandError.UNKNOWN)),
    ],
)
def test_what_a_client_makes_of_a_block(version: int, content: bytes, expected: ServerTransmission) -> None:
    assert decode_replies(Session(_SESSION_ID, version), content) == [expected]


@given(s.SMP_VERSIONS, s.ids, s.some_id, s.ids, s.large)
def test_encode_msg_is_encode_server_of_msg(
    version: int, corr_id: bytes, rcv_id: bytes, msg_id: bytes, body: bytes
) -> None:
    session = Session(_SESSION_ID, version)
    slow = encode_server(session, corr_id, rcv_id, encode_reply(version, r.MSG(msg_id, body)))
    assert encode_msg(session, corr_id, rcv_id, msg_id, body) == slow
