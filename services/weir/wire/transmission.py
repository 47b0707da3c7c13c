"""SMP transmissions: a block's content to commands or replies, and back (protocol, "SMP transmission …")."""

from typing import Final, NamedTuple

from weir.wire.command_codec import decode_command, decode_send
from weir.wire.commands import Command
from weir.wire.credentials import check_command, check_reply
from weir.wire.encoding import LENGTH
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.frame import (
    AUTH_SIZES,
    BATCH_OVERHEAD,
    MAX_BATCH,
    authorized_bytes,
    encode_client,
    encode_server,
    fits,
    for_auth,
    pack,
    pack_forward,
    spans,
    take_apart,
)
from weir.wire.replies import Reply
from weir.wire.reply_codec import decode_reply
from weir.wire.session import Session

__all__ = [
    "BATCH_OVERHEAD",
    "MAX_BATCH",
    "ClientTransmission",
    "ServerTransmission",
    "TransmissionError",
    "block_spans",
    "decode_block",
    "decode_client",
    "decode_replies",
    "encode_client",
    "encode_msg",
    "encode_server",
    "fits",
    "for_auth",
    "pack",
    "pack_forward",
]


class ClientTransmission(NamedTuple):
    """`auth` is b"" when absent; 80 bytes are a box authenticator, 64 and 114 a signature."""

    auth: bytes
    service_sig: bytes | None
    authorized: bytes
    corr_id: bytes
    entity_id: bytes
    command: Command


class TransmissionError(NamedTuple):
    """What to answer `ERR error` with."""

    corr_id: bytes
    entity_id: bytes
    error: ErrorType


class ServerTransmission(NamedTuple):
    """`reply` is an error when it could not be understood (not when it is an ERR)."""

    corr_id: bytes
    entity_id: bytes
    reply: Reply | ErrorType


_BAD_BLOCK: Final = TransmissionError(b"", b"", Simple.BLOCK)
_UNREADABLE: Final = [(0, 0)]
_BAD_REPLY: Final = ServerTransmission(b"", b"", Simple.BLOCK)


def decode_client(session: Session, content: bytes, at: int, end: int) -> ClientTransmission | TransmissionError:
    """The order of checks: form, session, size of the authorisation, command's tag, its syntax, its credentials."""
    raw = take_apart(session, content, at, end)
    if raw is None:
        return _BAD_BLOCK
    auth, service_sig, authorized_at, session_id, corr_id, entity_id, command_at = raw
    if session_id is not None and session_id != session.session_id:
        return TransmissionError(corr_id, b"", Simple.SESSION)
    if len(auth) not in AUTH_SIZES:
        return TransmissionError(corr_id, b"", Simple.BLOCK)
    command: Command | CommandError
    if content.startswith(b"SEND ", command_at, end):  # the body is copied once
        command = decode_send(content, command_at + 5, end) or CommandError.SYNTAX
    else:
        command = decode_command(session.version, content[command_at:end])
    if isinstance(command, CommandError):
        return TransmissionError(corr_id, entity_id, command)
    error = check_command(command, bool(auth), entity_id)
    if error is not None:
        return TransmissionError(corr_id, entity_id, error)
    authorized = authorized_bytes(session, content, authorized_at, end)
    return ClientTransmission(auth, service_sig, authorized, corr_id, entity_id, command)


def block_spans(content: bytes) -> list[tuple[int, int]]:
    """Where a client's block has its transmissions, for `decode_client`: at least one, though it may be unreadable."""
    size = len(content)
    if size > 3 and content[0] == 1 and content[1] << 8 | content[2] == size - 3:
        return [(3, size)]
    return spans(content) or _UNREADABLE


def decode_block(session: Session, content: bytes) -> list[ClientTransmission | TransmissionError]:
    """What a router makes of a client's block: always at least one transmission or error."""
    return [decode_client(session, content, at, end) for at, end in block_spans(content)]


def _decode_server(session: Session, content: bytes, at: int, end: int) -> ServerTransmission:
    raw = take_apart(session, content, at, end)
    if raw is None:
        return _BAD_REPLY
    _, _, _, session_id, corr_id, entity_id, reply_at = raw
    if session_id is not None and session_id != session.session_id:
        return ServerTransmission(corr_id, b"", Simple.SESSION)
    reply = decode_reply(session.version, content[reply_at:end])
    if isinstance(reply, CommandError):
        return ServerTransmission(corr_id, entity_id, reply)
    return ServerTransmission(corr_id, entity_id, check_reply(reply, entity_id) or reply)


def decode_replies(session: Session, content: bytes) -> list[ServerTransmission]:
    """What a client makes of a router's block."""
    found = spans(content)
    if found is None:
        return [_BAD_REPLY]
    return [_decode_server(session, content, at, end) for at, end in found]


def encode_msg(session: Session, corr_id: bytes, rcv_id: bytes, msg_id: bytes, body: bytes) -> bytes:
    """`encode_server` of MSG, with the body copied once."""
    prefix = session.server_prefix
    size = len(prefix) + 7 + len(corr_id) + len(rcv_id) + len(msg_id) + len(body)
    return b"".join(
        (
            size.to_bytes(2, "big"),
            prefix,
            LENGTH[len(corr_id)],
            corr_id,
            LENGTH[len(rcv_id)],
            rcv_id,
            b"MSG ",
            LENGTH[len(msg_id)],
            msg_id,
            body,
        )
    )
