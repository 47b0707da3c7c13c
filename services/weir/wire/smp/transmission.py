"""SMP transmissions: decoding of blocks, and encoding of MSG (protocol, "SMP transmission …").

`weir.wire.transmission` holds the decoder that SMP shares with NTF.
"""

from typing import Final, NamedTuple

from weir.wire.encoding import LENGTH
from weir.wire.errors import CommandError, ErrorType
from weir.wire.frame import (
    BATCH_OVERHEAD,
    MAX_BATCH,
    batch_spans,
    encode_client,
    encode_server,
    fits,
    for_auth,
    pack,
    pack_forward,
)
from weir.wire.smp.command_codec import decode_command, decode_send
from weir.wire.smp.commands import DECLARATIONS, Command
from weir.wire.smp.credentials import check_reply
from weir.wire.smp.replies import Reply
from weir.wire.smp.reply_codec import decode_reply
from weir.wire.smp.session import Session
from weir.wire.transmission import TransmissionError, block_spans, client_decoder, reply_decoder

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
    """`auth` is a box authenticator of 80 bytes, a signature of 64 or 114 bytes, or b""."""

    auth: bytes
    service_sig: bytes | None
    authorized: bytes
    corr_id: bytes
    entity_id: bytes
    command: Command


class ServerTransmission(NamedTuple):
    """`reply` is an error if the bytes could not be understood. An error that the router sent is an ERR."""

    corr_id: bytes
    entity_id: bytes
    reply: Reply | ErrorType


def _decode_command(version: int, content: bytes, at: int, end: int) -> Command | CommandError:
    """Decode a command in a block. SEND is decoded in place, so that its body is copied only once."""
    if content.startswith(b"SEND ", at, end):
        return decode_send(content, at + 5, end) or CommandError.SYNTAX
    return decode_command(version, content[at:end])


decode_client: Final = client_decoder(_decode_command, DECLARATIONS, ClientTransmission)
_decode_replies: Final = reply_decoder(decode_reply, check_reply, ServerTransmission)


def decode_block(session: Session, content: bytes) -> list[ClientTransmission | TransmissionError]:
    """Decode a client's block: always at least one transmission or error."""
    return [decode_client(session, content, at, end) for at, end in block_spans(content)]


def decode_replies(session: Session, content: bytes) -> list[ServerTransmission]:
    """Decode a router's block."""
    return _decode_replies(session, content, batch_spans(content))


def encode_msg(session: Session, corr_id: bytes, rcv_id: bytes, msg_id: bytes, body: bytes) -> bytes:
    """Encode MSG as `encode_server` does, but copy the body only once."""
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
