"""NTF transmissions. Blocks have 512 bytes and hold one transmission at version 1, a batch from version 2 on."""

from typing import Final, NamedTuple

from weir.wire.credentials import reply_check
from weir.wire.errors import CommandError, ErrorType
from weir.wire.frame import batch_spans, encode_client, encode_server, for_auth
from weir.wire.frame import fits as fits_batch
from weir.wire.frame import pack as pack_batches
from weir.wire.ntf.codec import decode_command, decode_reply
from weir.wire.ntf.session import NtfSession
from weir.wire.ntf.types import DECLARATIONS, ERR, IDSUB, IDTKN, PONG, NtfCommand, NtfReply
from weir.wire.transmission import TransmissionError, block_spans, client_decoder, reply_decoder
from weir.wire.versions import NTF_BLOCK_SIZE

__all__ = [
    "NtfServerTransmission",
    "NtfTransmission",
    "TransmissionError",
    "check_reply",
    "decode_block",
    "decode_replies",
    "encode_client",
    "encode_server",
    "fits",
    "for_auth",
    "pack",
]


class NtfTransmission(NamedTuple):
    auth: bytes
    authorized: bytes
    corr_id: bytes
    entity_id: bytes
    command: NtfCommand


class NtfServerTransmission(NamedTuple):
    corr_id: bytes
    entity_id: bytes
    reply: NtfReply | ErrorType


def _build(
    auth: bytes, service_sig: bytes | None, authorized: bytes, corr_id: bytes, entity_id: bytes, command: NtfCommand
) -> NtfTransmission:
    """NTF has no service signatures."""
    del service_sig
    return NtfTransmission(auth, authorized, corr_id, entity_id, command)


def _decode_command(version: int, content: bytes, at: int, end: int) -> NtfCommand | CommandError:
    return decode_command(version, content[at:end])


check_reply: Final = reply_check(either=frozenset((ERR,)), without_entity=frozenset((IDTKN, IDSUB, PONG)))
_decode_client: Final = client_decoder(_decode_command, DECLARATIONS, _build)
_decode_replies: Final = reply_decoder(decode_reply, check_reply, NtfServerTransmission)


def decode_block(session: NtfSession, content: bytes) -> list[NtfTransmission | TransmissionError]:
    """Decode a client's block: always at least one transmission or error."""
    spans = block_spans(content) if session.batch else [(0, len(content))]
    return [_decode_client(session, content, at, end) for at, end in spans]


def decode_replies(session: NtfSession, content: bytes) -> list[NtfServerTransmission]:
    """Decode a router's block."""
    return _decode_replies(session, content, batch_spans(content) if session.batch else [(0, len(content))])


def fits(session: NtfSession, encoded: bytes) -> bool:
    """Whether a length-prefixed transmission fits into a block."""
    return fits_batch(encoded, NTF_BLOCK_SIZE) if session.batch else len(encoded) <= NTF_BLOCK_SIZE


def pack(session: NtfSession, encoded: list[bytes]) -> list[bytes]:
    """Pack transmissions into block contents. At version 1 each has a block of its own, without count and length."""
    if session.batch:
        return pack_batches(encoded, NTF_BLOCK_SIZE)
    return [one[2:] for one in encoded]
