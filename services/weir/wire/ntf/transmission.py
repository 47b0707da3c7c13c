"""NTF transmissions: blocks of 512 bytes; one transmission each at version 1, batches from version 2 on."""

from typing import Final, NamedTuple

from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.frame import AUTH_SIZES, authorized_bytes, encode_client, encode_server, for_auth, spans, take_apart
from weir.wire.frame import pack as pack_batches
from weir.wire.ntf.codec import decode_command, decode_reply
from weir.wire.ntf.types import ERR, IDSUB, IDTKN, PING, PONG, SNEW, TNEW, NtfCommand, NtfReply
from weir.wire.session import NtfSession
from weir.wire.versions import NTF_BLOCK_SIZE

__all__ = [
    "NtfServerTransmission",
    "NtfTransmission",
    "NtfTransmissionError",
    "check_command",
    "check_reply",
    "decode_block",
    "decode_replies",
    "encode_client",
    "encode_server",
    "for_auth",
    "pack",
]

_NO_ENTITY_REPLIES: Final = (IDTKN, IDSUB, PONG)


class NtfTransmission(NamedTuple):
    auth: bytes
    authorized: bytes
    corr_id: bytes
    entity_id: bytes
    command: NtfCommand


class NtfTransmissionError(NamedTuple):
    corr_id: bytes
    entity_id: bytes
    error: ErrorType


class NtfServerTransmission(NamedTuple):
    corr_id: bytes
    entity_id: bytes
    reply: NtfReply | ErrorType


def check_command(command: NtfCommand, has_auth: bool, entity_id: bytes) -> CommandError | None:
    """PING has neither authorisation nor entity, TNEW and SNEW only the first, all others both."""
    if isinstance(command, PING):
        return CommandError.HAS_AUTH if has_auth or entity_id else None
    if isinstance(command, (TNEW, SNEW)):
        if not has_auth:
            return CommandError.NO_AUTH
        return CommandError.HAS_AUTH if entity_id else None
    return None if has_auth and entity_id else CommandError.NO_AUTH


def check_reply(reply: NtfReply, entity_id: bytes) -> CommandError | None:
    if isinstance(reply, ERR):
        return None
    if isinstance(reply, _NO_ENTITY_REPLIES):
        return CommandError.HAS_AUTH if entity_id else None
    return None if entity_id else CommandError.NO_ENTITY


def _spans(session: NtfSession, content: bytes) -> list[tuple[int, int]] | None:
    return spans(content) if session.batch else [(0, len(content))]


def _decode_client(session: NtfSession, content: bytes, at: int, end: int) -> NtfTransmission | NtfTransmissionError:
    """The same order of checks as in SMP."""
    raw = take_apart(session, content, at, end)
    if raw is None:
        return NtfTransmissionError(b"", b"", Simple.BLOCK)
    auth, _, authorized_at, session_id, corr_id, entity_id, command_at = raw
    if session_id is not None and session_id != session.session_id:
        return NtfTransmissionError(corr_id, b"", Simple.SESSION)
    if len(auth) not in AUTH_SIZES:
        return NtfTransmissionError(corr_id, b"", Simple.BLOCK)
    command = decode_command(session.version, content[command_at:end])
    if isinstance(command, CommandError):
        return NtfTransmissionError(corr_id, entity_id, command)
    error = check_command(command, bool(auth), entity_id)
    if error is not None:
        return NtfTransmissionError(corr_id, entity_id, error)
    authorized = authorized_bytes(session, content, authorized_at, end)
    return NtfTransmission(auth, authorized, corr_id, entity_id, command)


def decode_block(session: NtfSession, content: bytes) -> list[NtfTransmission | NtfTransmissionError]:
    found = _spans(session, content)
    if found is None:
        return [NtfTransmissionError(b"", b"", Simple.BLOCK)]
    return [_decode_client(session, content, at, end) for at, end in found]


def _decode_server(session: NtfSession, content: bytes, at: int, end: int) -> NtfServerTransmission:
    raw = take_apart(session, content, at, end)
    if raw is None:
        return NtfServerTransmission(b"", b"", Simple.BLOCK)
    _, _, _, session_id, corr_id, entity_id, reply_at = raw
    if session_id is not None and session_id != session.session_id:
        return NtfServerTransmission(corr_id, b"", Simple.SESSION)
    reply = decode_reply(session.version, content[reply_at:end])
    if isinstance(reply, CommandError):
        return NtfServerTransmission(corr_id, entity_id, reply)
    return NtfServerTransmission(corr_id, entity_id, check_reply(reply, entity_id) or reply)


def decode_replies(session: NtfSession, content: bytes) -> list[NtfServerTransmission]:
    found = _spans(session, content)
    if found is None:
        return [NtfServerTransmission(b"", b"", Simple.BLOCK)]
    return [_decode_server(session, content, at, end) for at, end in found]


def pack(session: NtfSession, encoded: list[bytes]) -> list[bytes]:
    """Block contents; at version 1 a transmission fills a block by itself, without count and length."""
    if session.batch:
        return pack_batches(encoded, NTF_BLOCK_SIZE)
    return [one[2:] for one in encoded]
