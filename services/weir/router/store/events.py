"""Events as scripts write them into an inbox (lua/include/tell.lua)."""

from enum import Enum

from weir.router.store import keys
from weir.router.store.packing import unpack_status
from weir.router.store.records import (
    BlockedEvent,
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    Event,
    MovedEvent,
    MsgEvent,
    NtfEvent,
)
from weir.wire.errors import BlockingInfo


class Kind(Enum):
    """The first byte of an event; the same letters as in lua/include/event.lua."""

    MSG = b"M"
    END = b"E"
    SERVICE_END = b"S"  # ENDS
    QUEUE_MOVED = b"V"  # END for one queue of a service
    DELETED = b"D"
    NOTIFICATIONS = b"N"
    BLOCKED = b"B"


_KINDS = {kind.value: kind for kind in Kind}


def parse_event(raw: bytes) -> Event:
    """kind ‖ connection ‖ ':' ‖ generation ‖ ':' ‖ length of the id ‖ id ‖ rest, where the rest depends on the kind."""
    conn_text, gen_text, tail = raw[1:].split(b":", 2)
    conn, gen = int(conn_text), int(gen_text)
    length = tail[0]
    entity_id, rest = tail[1 : 1 + length], tail[1 + length :]
    match _KINDS[raw[:1]]:
        case Kind.MSG:
            return MsgEvent(entity_id, Entry.parse(rest), conn, gen)
        case Kind.END:
            return EndEvent(entity_id, conn, gen)
        case Kind.SERVICE_END:
            return EndsEvent(entity_id, conn, gen)
        case Kind.QUEUE_MOVED:
            return MovedEvent(entity_id, rest[: keys.ID_LENGTH], conn, gen)
        case Kind.DELETED:
            return DeldEvent(entity_id, conn, gen, rest or None)
        case Kind.NOTIFICATIONS:
            return NtfEvent(entity_id, conn, gen)
        case Kind.BLOCKED:
            info = unpack_status(b"b" + rest)
            assert isinstance(info, BlockingInfo)
            return BlockedEvent(entity_id, conn, gen, info)
