"""Batches, and transmissions before their commands are understood: the same for SMP and NTF.

A block's content is a count and that many transmissions, each with two bytes of length (protocol, "SMP transmission
and transport block structure"). A transmission is authorisation, [service signature], [session id], correlation id,
entity id and command.
"""

from typing import Final

from weir.wire.encoding import LENGTH
from weir.wire.session import Framing
from weir.wire.versions import SMP_BLOCK_SIZE

MAX_BATCH: Final = 255
BATCH_OVERHEAD: Final = 19
"""Two bytes of length, one of count, 16 of the block encryption's tag: kept free even where there is none."""

AUTH_SIZES: Final = frozenset((0, 64, 80, 114))
_SERVICE_SIG_SIZE: Final = 64
_LARGE: Final = 4096  # bytes from which a view costs less than a copy

Raw = tuple[bytes, bytes | None, int, bytes | None, bytes, bytes, int]
"""auth, service signature, where the authorised bytes begin, session id (None: implied), corrId, entityId, where
the command begins."""


def spans(content: bytes) -> list[tuple[int, int]] | None:
    """Where a batch's transmissions begin and end. None: it is not a batch."""
    size = len(content)
    if not size or not content[0]:
        return None
    found = []
    at = 1
    for _ in range(content[0]):
        start = at + 2
        if start > size:
            return None
        at = start + (content[at] << 8 | content[at + 1])
        if at > size:
            return None
        found.append((start, at))
    return found if at == size else None


def take_apart(session: Framing, content: bytes, at: int, end: int) -> Raw | None:
    """The transmission between `at` and `end`, or None when its fields do not fit into it."""
    if at >= end:
        return None
    start = at + 1
    at = start + content[at]
    if at >= end:
        return None
    auth = content[start:at]
    service_sig: bytes | None = None
    if auth and session.service_auth:
        flag = content[at]
        at += 1
        if flag == 0x31:
            start = at + 1
            if start + _SERVICE_SIG_SIZE > end or content[at] != _SERVICE_SIG_SIZE:
                return None
            at = start + _SERVICE_SIG_SIZE
            service_sig = content[start:at]
        elif flag != 0x30:
            return None
        if at >= end:
            return None
    authorized_at = at
    session_id: bytes | None = None
    if not session.imply_session_id:
        start = at + 1
        at = start + content[at]
        if at >= end:
            return None
        session_id = content[start:at]
    start = at + 1
    at = start + content[at]
    if at >= end:
        return None
    corr_id = content[start:at]
    start = at + 1
    at = start + content[at]
    if at > end:
        return None
    return auth, service_sig, authorized_at, session_id, corr_id, content[start:at], at


def authorized_bytes(session: Framing, content: bytes, at: int, end: int) -> bytes:
    """What the authorisation covers: the length-prefixed session id, and all from the correlation id on."""
    if not session.imply_session_id:
        return content[at:end]
    if end - at < _LARGE:
        return session.auth_prefix + content[at:end]
    return b"".join((session.auth_prefix, memoryview(content)[at:end]))


def encode_server(session: Framing, corr_id: bytes, entity_id: bytes, reply: bytes) -> bytes:
    """A router's transmission, length-prefixed for a batch: it is never authorised."""
    prefix = session.server_prefix
    size = len(prefix) + 2 + len(corr_id) + len(entity_id) + len(reply)
    return b"".join(
        (size.to_bytes(2, "big"), prefix, LENGTH[len(corr_id)], corr_id, LENGTH[len(entity_id)], entity_id, reply)
    )


def for_auth(session: Framing, corr_id: bytes, entity_id: bytes, command: bytes) -> tuple[bytes, bytes]:
    """(what is authorised, what is sent): the session id is in the first, and in the second where it is sent."""
    sent = b"".join((LENGTH[len(corr_id)], corr_id, LENGTH[len(entity_id)], entity_id, command))
    authorized = session.auth_prefix + sent
    return authorized, sent if session.imply_session_id else authorized


def encode_client(session: Framing, t_to_send: bytes, auth: bytes, service_sig: bytes | None) -> bytes:
    """A client's transmission, length-prefixed for a batch."""
    head = LENGTH[len(auth)] + auth
    if auth and session.service_auth:
        head += b"0" if service_sig is None else b"1" + LENGTH[len(service_sig)] + service_sig
    return b"".join(((len(head) + len(t_to_send)).to_bytes(2, "big"), head, t_to_send))


def fits(encoded: bytes, block_size: int = SMP_BLOCK_SIZE) -> bool:
    """Whether a length-prefixed transmission fits into a block by itself."""
    return len(encoded) <= block_size - BATCH_OVERHEAD


def pack(encoded: list[bytes], block_size: int = SMP_BLOCK_SIZE) -> list[bytes]:
    """Block contents, filled from the last transmission backwards as the reference does it.

    Every transmission must fit into a block (`fits`): the caller answers LARGE_MSG for one that does not.
    """
    limit = block_size - BATCH_OVERHEAD
    contents: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    for one in reversed(encoded):
        length = len(one)
        if length > limit:
            raise ValueError("a transmission is larger than a block")
        if size + length > limit or len(batch) == MAX_BATCH:
            contents.append(_content(batch))
            batch, size = [], 0
        batch.append(one)
        size += length
    if batch:
        contents.append(_content(batch))
    contents.reverse()
    return contents


def _content(reversed_batch: list[bytes]) -> bytes:
    reversed_batch.append(LENGTH[len(reversed_batch)])
    reversed_batch.reverse()
    return b"".join(reversed_batch)


def pack_forward(encoded: list[bytes], block_size: int = SMP_BLOCK_SIZE) -> list[bytes]:
    """Block contents, filled from the first transmission on: for the router, whose earliest answers leave first."""
    limit = block_size - BATCH_OVERHEAD
    if len(encoded) == 1:
        return [b"\x01" + encoded[0]]
    contents: list[bytes] = []
    start = size = 0
    for index, one in enumerate(encoded):
        size += len(one)
        if size > limit or index - start == MAX_BATCH:
            contents.append(LENGTH[index - start] + b"".join(encoded[start:index]))
            start, size = index, len(one)
    if start < len(encoded):
        contents.append(LENGTH[len(encoded) - start] + b"".join(encoded[start:]))
    return contents
