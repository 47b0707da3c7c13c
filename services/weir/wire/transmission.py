"""The decoder of transmissions. SMP and NTF share it.

A protocol supplies its codec, its declarations and the classes of its transmissions. `client_decoder` and
`reply_decoder` make its decoders from them. The decoders never raise: malformed bytes become an error that carries the
correlation id and the entity id as far as they could be read.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from weir.wire.declaration import Declaration
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.frame import AUTH_SIZES, Framing, authorized_bytes, batch_spans, split_transmission

T = TypeVar("T")


class TransmissionError(NamedTuple):
    """A client's transmission that a router answers with `ERR error`."""

    corr_id: bytes
    entity_id: bytes
    error: ErrorType


_BAD_BLOCK: Final = TransmissionError(b"", b"", Simple.BLOCK)
_UNREADABLE: Final = [(0, 0)]  # an empty transmission, which no decoder can read


def client_decoder(
    decode: Callable[[int, bytes, int, int], Any],
    declarations: Mapping[type, Declaration],
    build: Callable[[bytes, bytes | None, bytes, bytes, bytes, Any], T],
) -> Callable[[Framing, bytes, int, int], T | TransmissionError]:
    """Make the decoder of one transmission of a client, which a router uses.

    `decode` reads the command between two positions of a block. `build` takes the authorisation, the service's
    signature, the authorised bytes, the correlation id, the entity id and the command.
    """

    errors_of = {kind: declaration.credential_errors() for kind, declaration in declarations.items()}

    def decode_client(session: Framing, content: bytes, at: int, end: int) -> T | TransmissionError:
        """Check in this order: form, session, size of the authorisation, command's tag, its syntax, its credentials."""
        raw = split_transmission(session, content, at, end)
        if raw is None:
            return _BAD_BLOCK
        auth, service_sig, authorized_at, session_id, corr_id, entity_id, command_at = raw
        if session_id is not None and session_id != session.session_id:
            return TransmissionError(corr_id, b"", Simple.SESSION)
        if len(auth) not in AUTH_SIZES:
            return TransmissionError(corr_id, b"", Simple.BLOCK)
        command = decode(session.version, content, command_at, end)
        if isinstance(command, CommandError):
            return TransmissionError(corr_id, entity_id, command)
        error = errors_of[type(command)][(2 if auth else 0) + (1 if entity_id else 0)]
        if error is not None:
            return TransmissionError(corr_id, entity_id, error)
        authorized = authorized_bytes(session, content, authorized_at, end)
        return build(auth, service_sig, authorized, corr_id, entity_id, command)

    return decode_client


def reply_decoder(
    decode: Callable[[int, bytes], Any],
    check: Callable[[object, bytes], CommandError | None],
    build: Callable[[bytes, bytes, Any], T],
) -> Callable[[Framing, bytes, list[tuple[int, int]] | None], list[T]]:
    """Make the decoder of a router's block, which a client uses. `build` takes correlation id, entity id and reply.

    The decoder takes the positions of the block's transmissions (`batch_spans`), or None if the block is not a batch.
    """
    bad_block = build(b"", b"", Simple.BLOCK)

    def decode_server(session: Framing, content: bytes, at: int, end: int) -> T:
        raw = split_transmission(session, content, at, end)
        if raw is None:
            return bad_block
        _, _, _, session_id, corr_id, entity_id, reply_at = raw
        if session_id is not None and session_id != session.session_id:
            return build(corr_id, b"", Simple.SESSION)
        reply = decode(session.version, content[reply_at:end])
        if isinstance(reply, CommandError):
            return build(corr_id, entity_id, reply)
        return build(corr_id, entity_id, check(reply, entity_id) or reply)

    def decode_replies(session: Framing, content: bytes, spans: list[tuple[int, int]] | None) -> list[T]:
        if spans is None:
            return [bad_block]
        return [decode_server(session, content, at, end) for at, end in spans]

    return decode_replies


def block_spans(content: bytes) -> list[tuple[int, int]]:
    """The positions of the transmissions in a client's batch: at least one, which may be unreadable."""
    size = len(content)
    if size > 3 and content[0] == 1 and content[1] << 8 | content[2] == size - 3:
        return [(3, size)]
    return batch_spans(content) or _UNREADABLE
