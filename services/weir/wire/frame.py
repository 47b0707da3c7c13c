"""Batches of transmissions, and the fields of a transmission around its command. SMP and NTF share them.

    block        = count, count × (two bytes of length, transmission)
    transmission = authorisation, [service signature], [session id], correlation id, entity id, command

(protocol, "SMP transmission and transport block structure")
"""

from dataclasses import dataclass, field
from typing import Final

from weir.wire.encoding import LENGTH, short
from weir.wire.versions import SMP_BLOCK_SIZE

MAX_BATCH: Final = 255
BATCH_OVERHEAD: Final = 19
"""The bytes of a block that transmissions cannot use: two for the length, one for the count, and 16 for the tag of the
block encryption. The 16 bytes are also kept free in blocks that are not encrypted."""

AUTH_SIZES: Final = frozenset((0, 64, 80, 114))
_SERVICE_SIG_SIZE: Final = 64
_LARGE: Final = 4096  # from this number of bytes on, a view costs less than a copy

Fields = tuple[bytes, bytes | None, int, bytes | None, bytes, bytes, int]
"""Authorisation, service signature, start of the authorised bytes, session id (None: implied), correlation id, entity
id, start of the command."""


@dataclass(slots=True)
class Framing:
    """How a session writes its transmissions. This follows from the TLS session id and the agreed version."""

    session_id: bytes
    version: int
    imply_session_id: bool = field(init=False)
    """Whether the session id is authorised but not sent."""
    service_auth: bool = field(init=False)
    """Whether the service's signature, or `0`, follows an authorisation."""
    auth_prefix: bytes = field(init=False, repr=False)
    """The first authorised bytes: the length-prefixed session id."""
    server_prefix: bytes = field(init=False, repr=False)
    """The first bytes of a router's transmission: an empty authorisation, and the session id unless it is implied."""

    def _frame(self, imply_session_id: bool, service_auth: bool) -> None:
        self.imply_session_id = imply_session_id
        self.service_auth = service_auth
        self.auth_prefix = short(self.session_id)
        self.server_prefix = b"\0" if imply_session_id else b"\0" + self.auth_prefix


def batch_spans(content: bytes) -> list[tuple[int, int]] | None:
    """Return the start and end of each transmission in a batch; None if the content is not a batch."""
    size = len(content)
    if not size or not content[0]:
        return None
    spans = []
    at = 1
    for _ in range(content[0]):
        start = at + 2
        if start > size:
            return None
        at = start + (content[at] << 8 | content[at + 1])
        if at > size:
            return None
        spans.append((start, at))
    return spans if at == size else None


def split_transmission(session: Framing, content: bytes, at: int, end: int) -> Fields | None:
    """Split the transmission between `at` and `end` into its fields; None if the fields do not fit into it."""
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
    """Return the authorised bytes: the length-prefixed session id, and all from the correlation id on."""
    if not session.imply_session_id:
        return content[at:end]
    if end - at < _LARGE:
        return session.auth_prefix + content[at:end]
    return b"".join((session.auth_prefix, memoryview(content)[at:end]))


def encode_server(session: Framing, corr_id: bytes, entity_id: bytes, reply: bytes) -> bytes:
    """Encode a router's transmission, which has no authorisation, with its length prefix."""
    prefix = session.server_prefix
    size = len(prefix) + 2 + len(corr_id) + len(entity_id) + len(reply)
    return b"".join(
        (size.to_bytes(2, "big"), prefix, LENGTH[len(corr_id)], corr_id, LENGTH[len(entity_id)], entity_id, reply)
    )


def for_auth(session: Framing, corr_id: bytes, entity_id: bytes, command: bytes) -> tuple[bytes, bytes]:
    """Return the bytes to authorise and the bytes to send. They differ where the session id is implied."""
    sent = b"".join((LENGTH[len(corr_id)], corr_id, LENGTH[len(entity_id)], entity_id, command))
    authorized = session.auth_prefix + sent
    return authorized, sent if session.imply_session_id else authorized


def encode_client(session: Framing, t_to_send: bytes, auth: bytes, service_sig: bytes | None) -> bytes:
    """Encode a client's transmission with its length prefix. `t_to_send` comes from `for_auth`."""
    head = LENGTH[len(auth)] + auth
    if auth and session.service_auth:
        head += b"0" if service_sig is None else b"1" + LENGTH[len(service_sig)] + service_sig
    return b"".join(((len(head) + len(t_to_send)).to_bytes(2, "big"), head, t_to_send))


def fits(encoded: bytes, block_size: int = SMP_BLOCK_SIZE) -> bool:
    """Whether a length-prefixed transmission fits into an empty block."""
    return len(encoded) <= block_size - BATCH_OVERHEAD


def pack(encoded: list[bytes], block_size: int = SMP_BLOCK_SIZE) -> list[bytes]:
    """Pack transmissions into block contents, starting with the last transmission, as the reference does.

    Every transmission must fit into a block (`fits`). The caller answers LARGE_MSG for one that does not.
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
    """Pack transmissions into block contents, starting with the first transmission, so that it leaves first."""
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
